#!/usr/bin/env python3
"""The documents are in order: all .md files of the repository.

* Lines of prose have at most 100 columns. Tables, code and lines with a link are excepted.
* Links to files of the repository resolve, and so do their headings.
* Sources and documents that the text names in backquotes (`session/plan/plan.h`) exist.
* docs/README.md lists all documents, docs/notes/README.md all notes.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
COLUMNS = 100
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
NAMED = re.compile(r"`((?:core|docs|examples|kernels|ops|proto|rpc|session|tests|third_party|tools)"
                   r"/[\w./-]*\w\.(?:h|cc|cu|py|sh|bzl|md|txt|proto))`")
# Documents that may name files which are gone, or which the reader makes.
HISTORY = re.compile(r"CHANGELOG\.md$|docs/decisions/|docs/notes/|docs/add_a")


def documents():
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith((".", "bazel-"))]
        found += [os.path.relpath(os.path.join(folder, f), ROOT) for f in files if f.endswith(".md")]
    return sorted(found)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def prose_lines(text):
    """Yields (number, line) of the lines that are neither code nor a table nor a comment."""
    in_block, before = False, ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            in_block = not in_block
        elif not in_block and not line.lstrip().startswith(("|", "<!--")):
            is_code = line.startswith("    ") and (not before.strip() or before == "code")
            if not is_code:
                yield number, line
            before = "code" if is_code else line
            continue
        before = line


def headings(text):
    """Returns the anchors of a document, as GitHub makes them."""
    found = [re.sub(r"`|\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip())
             for _, line in prose_lines(text) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


def link_faults(path, text):
    prose = "\n".join(line for _, line in prose_lines(text))
    tables = "\n".join(line for line in text.split("\n") if line.startswith("|"))
    for target in LINK.findall(prose + "\n" + tables):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        name = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(os.path.join(ROOT, name)):
            yield "%s: the link %s leads nowhere" % (path, target)
        elif anchor and anchor not in headings(read(name)):
            yield "%s: %s has no heading #%s" % (path, name, anchor)


def faults_of(path):
    text = read(path)
    for number, line in prose_lines(text):
        if len(line) > COLUMNS and "](" not in line and "http" not in line:
            yield "%s:%d: %d columns" % (path, number, len(line))
    yield from link_faults(path, text)
    if not HISTORY.search(path):
        for name in sorted(set(NAMED.findall(text))):
            if not os.path.exists(os.path.join(ROOT, name)):
                yield "%s: %s does not exist" % (path, name)


def unlisted():
    for folder in ("docs", "docs/notes"):
        index = folder + "/README.md"
        listed = set(LINK.findall(read(index)))
        for path in glob.glob(os.path.join(ROOT, folder, "*.md")):
            name = os.path.basename(path)
            if name != "README.md" and name not in listed:
                yield "%s does not list %s" % (index, name)


def main():
    names = documents()
    faults = [fault for name in names for fault in faults_of(name)] + list(unlisted())
    print("\n".join(faults + ["%d documents, %d faults" % (len(names), len(faults))]))
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main())
