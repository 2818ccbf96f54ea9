#!/usr/bin/env python3
"""Generates C++ from a document: one function for each section with snippets.

    snippets.py docs/variables.md > variables_snippets.inc

The ```cpp blocks of a section ("## ...") are concatenated in one function
    absl::Status Section3(weir::Graph& g, const std::string& dir);
which also contains, in document order:
  - one-line HTML comments "<!--cpp ... -->": code that readers need not see, such as expectations;
  - the code in `...` in the last column of a table with the header "Weir": declarations, if it ends with ";", or
    expressions, which are passed to Works(). Each is a separate block.
kSections lists the functions with the sections' titles. Compiler and test errors refer to lines of the document.
"""

import re
import sys

HIDDEN = re.compile(r"<!--cpp (.*) -->$")


def pieces(row):
    """Yields the statements in the last column of a table row."""
    for piece in re.findall(r"`([^`]*)`", row.rstrip(" |").rsplit(" | ", 1)[-1]):
        yield "{ %s }" % (piece if piece.endswith(";") else "Works(%s);" % piece)


def read_sections(path):
    """Returns [(title, [lines of C++])] of the sections that contain code."""
    sections, in_block, in_table = [("", [])], False, False
    with open(path, encoding="utf-8") as f:
        for number, text in enumerate(f.read().split("\n"), 1):
            out, hidden = sections[-1][1], HIDDEN.match(text)
            in_table = text.startswith("|") and (in_table or text.endswith("| Weir |"))
            if in_block:
                in_block = text != "```"
                out += [text] if in_block else []
            elif text == "```cpp":
                in_block = True
                out.append('#line %d "%s"' % (number + 1, path))
            elif hidden or in_table:
                for code in [hidden[1]] if hidden else pieces(text):
                    out += ['#line %d "%s"' % (number, path), code]
            elif text.startswith("## "):
                sections.append((text[3:], []))
    if in_block:
        sys.exit("%s: the last block is not closed" % path)
    return [(title, lines) for title, lines in sections if lines]


def main():
    sections = read_sections(sys.argv[1])
    for i, (_, lines) in enumerate(sections):
        print("absl::Status Section%d(weir::Graph& g, const std::string& dir) {" % i)
        print("\n".join(lines))
        print("return absl::OkStatus();\n}\n")
    print("const Section kSections[] = {")
    for i, (title, _) in enumerate(sections):
        print('    {"%s", Section%d},' % (title, i))
    print("};")


if __name__ == "__main__":
    main()
