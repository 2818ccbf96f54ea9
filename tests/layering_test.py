#!/usr/bin/env python3
"""Each folder includes only what stands to its left in docs' line of folders.

    proto < core < ops < kernels < session < rpc < tools, examples        tests sees everything

Bazel's visibility says the same; this says it in words, and sees headers that visibility does not.
"""

import glob
import os
import re
import sys

LINE = ["proto", "core", "ops", "kernels", "session", "rpc"]
ENDS = ["tools", "examples"]  # Both may include all of the line, and not each other.
TOP_HEADERS = {"weir.h": "session", "proto.h": "proto"}  # "weir/weir.h" is session/weir.h
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def may_include(folder):
    return LINE[:LINE.index(folder) + 1] if folder in LINE else LINE + [folder]


def fault(folder, path, included):
    """What is wrong with one #include, or nothing."""
    parts = included.split("/")
    if path.endswith("/proto/proto.h"):  # of all messages, for programs that want the types
        return None
    if included.endswith(".pb.h") and path.endswith(".h") and parts[0] == "weir":
        return "a header does not include a .pb.h: keep it in the .cc"
    if parts[0] in LINE + ENDS + ["tests"]:
        return 'write it as "weir/%s"' % included
    if parts[0] == "weir" and TOP_HEADERS.get(parts[1], parts[1]) not in may_include(folder):
        return "%s may include only %s" % (folder, ", ".join(may_include(folder)))
    return None


def main():
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    faults, files = [], 0
    for folder in LINE + ENDS:
        for path in sorted(glob.glob("%s/%s/**/*.*" % (root, folder), recursive=True)):
            if not path.endswith((".h", ".cc", ".cu", ".cuh")):
                continue
            if "/precompiled/" in path:  # nothing includes these lists (tools/precompiled.bzl)
                continue
            files += 1
            with open(path, encoding="utf-8") as f:
                for number, text in enumerate(f, 1):
                    match = INCLUDE.match(text)
                    why = match and fault(folder, path, match[1])
                    if why:
                        faults.append("%s:%d: #include \"%s\": %s" % (
                            os.path.relpath(path, root), number, match[1], why))
    print("\n".join(faults + ["%d files, %d faults" % (files, len(faults))]))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
