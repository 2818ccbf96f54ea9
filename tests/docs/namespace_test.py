#!/usr/bin/env python3
"""Programs of users write weir:: and do not open the namespace: those in documents and examples,
and those that tests build with an installed tree. The how-tos docs/add_*.md show code of Weir."""

import glob
import os
import re
import sys

import public_headers

OPENS = re.compile(r"^\s*(using )?namespace weir\b")
PROGRAMS = ["*.md", "docs/**/*.md", "examples/**/*.cc", "examples/**/*.h", "tests/examples/*"]


def main():
    paths = [path for pattern in PROGRAMS
             for path in glob.glob(os.path.join(public_headers.ROOT, pattern), recursive=True)
             if not os.path.basename(path).startswith("add_")]
    faults = []
    for path in sorted(paths):
        with open(path, encoding="utf-8") as lines:
            faults += ["%s:%d: write weir:: instead of: %s" % (
                os.path.relpath(path, public_headers.ROOT), number, line.strip())
                       for number, line in enumerate(lines, 1) if OPENS.match(line)]
    print("\n".join(faults + ["%d files, %d faults" % (len(paths), len(faults))]))
    return 1 if faults or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
