#!/usr/bin/env python3
"""Every docs/add_a*.md with snippets can be followed literally, by follow_how_to.py, in a copy of the
tree.

    how_to_test.py                   applies the snippets to copies of the files that they name, and
                                     formats the C++ files that they make, where clang-format exists
    how_to_test.py --build DIR       follows all of them, one after the other, in DIR, a clone of the
                                     repository, and runs their commands: the build and the tests
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import follow_how_to  # noqa: E402


# How-tos that name what a change touches, without an example.
WITHOUT_SNIPPETS = {"docs/add_a_dtype.md"}
# The files that a how-to changes, where it promises that they are all.
ALL_FILES = {
    "docs/add_an_op.md": ["kernels/math/activation-inl.h", "ops/nn/nn.h", "ops/nn/nn_activation.cc",
                          "tests/kernels/nn/nn_cases.cc"],
}


def copy_files(snippets, tree):
    """Copies the files that the snippets change from the repository."""
    for path in {s.path for s in snippets if s.kind != "new"}:
        os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, path), os.path.join(tree, path))
    shutil.copy(os.path.join(ROOT, ".clang-format"), tree)


def apply_all(snippets, tree):
    for snippet in snippets:
        if snippet.kind == "new" and os.path.exists(os.path.join(ROOT, snippet.path)):
            raise follow_how_to.HowToError("%d: %s exists" % (snippet.line, snippet.path))
        follow_how_to.apply_snippet(snippet, tree)


def unformatted(files, tree):
    """Returns the files that clang-format would change."""
    if not shutil.which("clang-format"):
        return set()
    check = ["clang-format", "--dry-run", "--Werror"]
    return {f for f in files if os.path.exists(os.path.join(tree, f)) and
            subprocess.run(check + [f], cwd=tree, capture_output=True).returncode != 0}


def fault(how_to):
    """Follows one how-to; returns what is wrong, or nothing."""
    try:
        snippets = follow_how_to.read_snippets(how_to)
        if not snippets:
            return "has no snippets"
        changed = sorted({s.path for s in snippets})
        if changed != ALL_FILES.get(os.path.relpath(how_to, ROOT), changed):
            return "changes " + ", ".join(changed)
        with tempfile.TemporaryDirectory() as tree:
            copy_files(snippets, tree)
            apply_all(snippets, tree)
            sources = {s.path for s in snippets if s.path.endswith((".h", ".cc", ".cu"))}
            files = sorted(unformatted(sources, tree) - unformatted(sources, ROOT))
            return "the snippets are not formatted: " + " ".join(files) if files else None
    except (follow_how_to.HowToError, OSError) as error:
        return str(error)


def build(how_tos, tree):
    """Follows the how-tos in a clone of the repository and runs their commands."""
    for how_to in how_tos:
        apply_all(follow_how_to.read_snippets(how_to), tree)
    for how_to in how_tos:
        print("== " + os.path.basename(how_to), flush=True)
        commands = follow_how_to.read_commands(how_to)
        subprocess.run(["bash", "-euxc", commands], cwd=tree, check=True)


def main():
    how_tos = [path for path in sorted(glob.glob(os.path.join(ROOT, "docs/add_a*.md")))
               if os.path.relpath(path, ROOT) not in WITHOUT_SNIPPETS]
    if sys.argv[1:2] == ["--build"]:
        build(how_tos, sys.argv[2])
        return 0
    faults = [(os.path.relpath(how_to, ROOT), fault(how_to)) for how_to in how_tos]
    faults = ["%s: %s" % (name, why) for name, why in faults if why]
    print("\n".join(faults + ["%d how-tos, %d faults" % (len(how_tos), len(faults))]))
    return 1 if faults or not how_tos else 0


if __name__ == "__main__":
    sys.exit(main())
