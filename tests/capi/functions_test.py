#!/usr/bin/env python3
"""Every function that a header of the C API declares is defined, tested, and called with hostile
arguments (hostile_arguments_test.cc), or is one that plug-ins define."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PLUGINS_DEFINE = {"TF_InitKernel"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def read(folder, ends, is_skipped=lambda path: False):
    """The text, without comments, of the sources in a folder and below."""
    texts = []
    for directory, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            path = os.path.join(directory, name)
            if name.endswith(ends) and not is_skipped(path):
                with open(path, encoding="utf-8") as f:
                    texts.append(COMMENT.sub("", f.read()))
    return "\n".join(texts)


def main():
    headers = read("capi/tensorflow/c", ".h")
    # `extern`, a type, and a name at the level of the file.
    declared = set(re.findall(r"^(?:TF_CAPI_EXPORT |extern |void )[^;{}]*?\b(TFE?_\w+)\(", headers,
                              re.M))
    defined = set(re.findall(r"^[A-Za-z_][\w\s*&:<>]*?\b(TFE?_\w+)\([^;{}]*\)\s*\{",
                             read("capi", (".cc",)), re.M))
    hostile = os.path.join("tests", "capi", "hostile_arguments_test.cc")
    tests = set(re.findall(r"\bTFE?_\w+\b",
                           read("tests/capi", (".cc", ".c", ".h"), lambda p: p.endswith(hostile))))
    with open(os.path.join(ROOT, hostile), encoding="utf-8") as f:
        called = set(re.findall(r"\bTFE?_\w+\b", f.read()))
    faults = ["%s is declared, but not defined" % f for f in declared - defined - PLUGINS_DEFINE]
    faults += ["%s is named in no test" % f for f in declared - tests]
    # eager/ has its own test of hostile arguments.
    faults += ["%s is not in %s" % (f, hostile) for f in declared - called - PLUGINS_DEFINE
               if f.startswith("TF_")]
    if len(declared) < 250:
        faults.append("only %d functions found in the headers" % len(declared))
    print("\n".join(sorted(faults)) or "%d functions" % len(declared))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
