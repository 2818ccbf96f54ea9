#!/usr/bin/env python3
"""No source, document or help text uses a word of tests/retired_words.txt.

Each line of that file is a word and what says it today. CHANGELOG.md and the tables of deprecated
names may mention the old ones.
"""

import os
import re
import subprocess
import sys

EXEMPT = {"CHANGELOG.md", "tests/retired_words.txt", "tests/vocabulary_test.py"}
SUFFIXES = (".cc", ".h", ".cu", ".py", ".sh", ".md", ".bzl", "BUILD")


def read_words(path):
    words = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#") or not line.strip():
                continue
            word, _, today = line.rstrip("\n").rpartition("|")
            pattern = word[1:-1] if word.startswith("[") else r"\b" + re.escape(word)
            words.append((word, re.compile(pattern, re.IGNORECASE if " " in word or word[0] == "["
                                           else 0), today))
    return words


def sources(root):
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "bazel-"))]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files
                  if f.endswith(SUFFIXES)]
    return sorted(found)


def main():
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    words = read_words(os.path.join(root, "tests/retired_words.txt"))
    faults, count = [], 0
    for path in sources(root):
        if path in EXEMPT or "/golden/" in path:
            continue
        count += 1
        with open(os.path.join(root, path), encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                for word, pattern, today in words:
                    match = pattern.search(text)
                    if match:
                        faults.append("%s:%d: '%s' is retired: say '%s'" % (path, number, match[0],
                                                                           today))
    print("\n".join(faults + ["%d files, %d retired words" % (count, len(faults))]))
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
