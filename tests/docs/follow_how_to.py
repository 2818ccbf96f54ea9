#!/usr/bin/env python3
"""Does what a how-to says (docs/add_a*.md): applies its snippets to a tree.

    follow_how_to.py docs/add_a_pass.md TREE       applies the snippets; prints the files that change
    follow_how_to.py --commands docs/add_a_pass.md prints the commands that the reader runs

The paragraph before a fenced block ends with a sentence that names the file and the place:

    New file `PATH`:                  the block is the whole file
    In `PATH`, after `TEXT`:          the block follows the only line that contains TEXT
    In `PATH`, before `TEXT`:         the block precedes that line
    In `PATH`, replace `TEXT`:        the block replaces that line
    At the end of `PATH`:             the block is appended

A `diff` block is applied as a patch of one file. A `bash` block has commands, to be run in the root
of the tree. Other blocks are illustrations.
"""

import collections
import os
import re
import subprocess
import sys

Snippet = collections.namedtuple("Snippet", "line kind path text code")

PLACES = [
    ("new", re.compile(r"New file `([^`]+)`:$")),
    ("after", re.compile(r"In `([^`]+)`, after `([^`]+)`:$")),
    ("before", re.compile(r"In `([^`]+)`, before `([^`]+)`:$")),
    ("replace", re.compile(r"In `([^`]+)`, replace `([^`]+)`:$")),
    ("append", re.compile(r"At the end of `([^`]+)`:$")),
]
# A sentence that is meant to be one of these.
PLACE = re.compile(r"(?:^|[.:] )(?:New file|In|At the end of) `[^`]+`[^.]*:$")


class HowToError(Exception):
    """A how-to that cannot be followed."""


def read_blocks(path):
    """Yields (line number, language, paragraph before it, code) of the fenced blocks."""
    paragraph, block = [], None
    with open(path, encoding="utf-8") as lines:
        for number, text in enumerate(lines, 1):
            text = text.rstrip("\n")
            if block is not None:
                if text != "```":
                    block[3].append(text)
                    continue
                yield block[0], block[1], block[2], "".join(line + "\n" for line in block[3])
                paragraph, block = [], None
            elif text.startswith("```"):
                block = (number, text[3:], " ".join(line.strip() for line in paragraph), [])
            elif text.strip() or (paragraph and paragraph[-1] == ""):
                paragraph = [text] if paragraph and paragraph[-1] == "" else paragraph + [text]
            else:
                paragraph.append("")
    if block is not None:
        raise HowToError("%d: the block is not closed" % block[0])


def place_of(line, paragraph):
    """Returns (kind, path, text) of the place that the paragraph names, or nothing."""
    for kind, pattern in PLACES:
        match = pattern.search(paragraph)
        if match:
            return kind, match[1], match[2] if match.lastindex > 1 else ""
    if PLACE.search(paragraph):
        raise HowToError("%d: this is no form of a place: %s" % (line, paragraph[-80:]))
    return None


def read_snippets(path):
    """Returns the snippets of a how-to, in order."""
    snippets = []
    for line, language, paragraph, code in read_blocks(path):
        if language == "diff":
            files = re.findall(r"^\+\+\+ b/(.*)$", code, re.MULTILINE)
            if len(files) != 1:
                raise HowToError("%d: a diff of %d files, not of one" % (line, len(files)))
            snippets.append(Snippet(line, "patch", files[0], "", code))
            continue
        place = place_of(line, paragraph.strip()) if language != "bash" else None
        if place:
            snippets.append(Snippet(line, *place, code))
    return snippets


def read_commands(path):
    return "".join(code for _, language, _, code in read_blocks(path) if language == "bash")


def insert(lines, snippet):
    """Returns the lines of a file after a snippet has been inserted at its anchor."""
    places = [i for i, line in enumerate(lines) if snippet.text in line]
    if len(places) != 1:
        raise HowToError("%d: %d lines of %s contain `%s`, not one"
                         % (snippet.line, len(places), snippet.path, snippet.text))
    first = places[0] + (snippet.kind == "after")
    last = places[0] + (snippet.kind != "before")
    return lines[:first] + [snippet.code] + lines[last:]


def apply_patch(snippet, tree):
    """Applies a diff. Its hunks may have moved, but their context is as in the tree."""
    tree = os.path.realpath(tree)
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(tree)}
    done = subprocess.run(["git", "apply", "--recount", "--unidiff-zero", "-"], cwd=tree,
                          env=environment, input=snippet.code, text=True, capture_output=True)
    if done.returncode != 0:
        raise HowToError("%d: %s" % (snippet.line, done.stderr.strip()))


def apply_snippet(snippet, tree):
    if snippet.kind == "patch":
        return apply_patch(snippet, tree)
    path = os.path.join(tree, snippet.path)
    if snippet.kind == "new":
        if os.path.exists(path):
            raise HowToError("%d: %s exists" % (snippet.line, snippet.path))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        result = [snippet.code]
    else:
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        result = lines + [snippet.code] if snippet.kind == "append" else insert(lines, snippet)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(result)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--commands":
        print(read_commands(sys.argv[2]), end="")
        return
    try:
        snippets = read_snippets(sys.argv[1])
        for snippet in snippets:
            apply_snippet(snippet, sys.argv[2])
    except HowToError as error:
        sys.exit("%s: %s" % (sys.argv[1], error))
    print("\n".join(sorted({snippet.path for snippet in snippets})))


if __name__ == "__main__":
    main()
