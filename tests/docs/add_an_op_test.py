#!/usr/bin/env python3
"""The patches of docs/add_an_op.md apply to the tree, and change exactly four files.

    add_an_op_test.py        applies them to copies of these files
    add_an_op_test.py DIR    copies the tree to DIR and patches it there, to be built and tested:
                             bazel test //tests/kernels:nn_sweep_test
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
EXPECTED = [
    "kernels/math/activation-inl.h", "ops/nn/nn.h", "ops/nn/nn_activation.cc", "tests/kernels/nn/nn_cases.cc"
]


def read_patches():
    """Returns the ```diff blocks of the document: one for each file."""
    with open(os.path.join(ROOT, "docs/add_an_op.md"), encoding="utf-8") as f:
        return re.findall(r"^```diff\n(.*?)^```$", f.read(), re.MULTILINE | re.DOTALL)


def tree():
    """Returns the files of the tree, as far as they are not ignored."""
    listed = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=ROOT,
                            check=True, text=True, capture_output=True).stdout
    return [f for f in listed.split("\0") if os.path.isfile(os.path.join(ROOT, f))]


def copy(files, folder):
    for file in files:
        to = os.path.join(folder, file)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, file), to)


def apply(patch, folder):
    """Applies a patch. Its hunks may have moved, but their context is as in the tree."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
    done = subprocess.run(["git", "apply", "--recount", "--unidiff-zero", "-"], cwd=folder,
                          env=environment, input=patch, text=True, capture_output=True)
    if done.returncode:
        sys.exit("%s\nUpdate docs/add_an_op.md. This does not apply:\n%s" % (done.stderr, patch))


def main():
    patches = read_patches()
    files = re.findall(r"^\+\+\+ b/(.*)$", "".join(patches), re.MULTILINE)
    if sorted(files) != EXPECTED:
        sys.exit("docs/add_an_op.md changes %s, not %s" % (files, EXPECTED))
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else temporary)
        copy(tree() if len(sys.argv) > 1 else files, folder)
        for patch in patches:
            apply(patch, folder)
    print("The patches apply to", ", ".join(files))


if __name__ == "__main__":
    main()
