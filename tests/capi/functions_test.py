#!/usr/bin/env python3
"""Every function that a header of the C API declares is defined, and is named in a test; and those
of the headers in capi/tensorflow/c are in functions.inc, which hostile_arguments_test.cc calls.
Eager functions have eager_arguments_test.cc."""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PLUGINS_DEFINE = {"TF_InitKernel"}
OF_EAGER = "c_api_experimental.h"  # its types are those of the eager functions
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
DECLARATION = re.compile(r"^(?:TF_CAPI_EXPORT |extern |void )[^;{}]*?\b(TFE?_\w+)\(", re.M)
DEFINITION = re.compile(r"^[A-Za-z_][\w\s*&:<>]*?\b(TFE?_\w+)\([^;{}]*\)\s*\{", re.M)


def read(paths):
    """The text of sources without comments."""
    texts = []
    for path in sorted(paths):
        with open(path, encoding="utf-8") as f:
            texts.append(COMMENT.sub("", f.read()))
    return "\n".join(texts)


def sources(folder, *ends):
    """The sources in a folder and below."""
    return [path for end in ends
            for path in glob.glob(os.path.join(ROOT, folder, "**", "*" + end), recursive=True)]


def main():
    plain = glob.glob(os.path.join(ROOT, "capi/tensorflow/c/*.h"))
    declared = set(DECLARATION.findall(read(sources("capi/tensorflow", ".h")))) - PLUGINS_DEFINE
    defined = set(DEFINITION.findall(read(sources("capi", ".cc"))))
    tested = set(re.findall(r"\bTFE?_\w+", read(sources("tests/capi", ".cc", ".c", ".h"))))
    hostile = set(DECLARATION.findall(read(p for p in plain if not p.endswith(OF_EAGER))))
    listed = set(re.findall(r"^F\((\w+)\)$", read(sources("tests/capi", ".inc")), re.M))
    faults = ["%s is declared, but not defined" % f for f in declared - defined]
    faults += ["%s is named in no test" % f for f in declared - tested]
    faults += ["%s is in only one of its header and functions.inc" % f
               for f in (hostile - PLUGINS_DEFINE) ^ listed]
    if len(listed) < 250:
        faults.append("only %d functions found in the headers" % len(listed))
    print("\n".join(sorted(faults)) or "%d functions" % len(declared))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
