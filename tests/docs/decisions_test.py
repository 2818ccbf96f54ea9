#!/usr/bin/env python3
"""The list of decisions, docs/decisions/README.md: checks it, or writes it.

    decisions_test.py [--update] [ROOT]

A decision is one file, docs/decisions/NNNN-short-title.md. It begins with

    # Title

    * Date: YYYY-MM-DD
    * Status: accepted            or: accepted, amended by [NNNN](FILE) or: superseded by [NNNN](FILE)
    * Area: design                one of AREAS
"""

import os
import re
import sys

AREAS = ("design", "ops", "speed", "build and tests")
NAME = re.compile(r"\d{4}-[a-z0-9-]+\.md$")
HEADER = re.compile(r"# (?P<title>[^\n]+[^.\n])\n\n\* Date: (?P<date>\d{4}-\d\d-\d\d)\n"
                    r"\* Status: (?P<status>[^\n]+)\n\* Area: (?P<area>[^\n]+)\n\n\S")
STATUS = re.compile(r"accepted$|(?:accepted, amended|superseded) by \[(\d{4})\]\((\1-[a-z0-9-]+\.md)\)$")
BEGIN = "<!-- written by tests/docs/decisions_test.py --update -->\n"


class DecisionError(Exception):
    """A decision whose file does not have the form."""


def read_decision(folder, name, number):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        match = HEADER.match(file.read())
    if not NAME.match(name) or int(name[:4]) != number:
        raise DecisionError("%s: expected a name like %04d-short-title.md" % (name, number))
    if not match:
        raise DecisionError("%s: must begin with a title, a date, a status and an area" % name)
    status = STATUS.match(match["status"])
    if not status or (status[2] and not os.path.exists(os.path.join(folder, status[2]))):
        raise DecisionError("%s: unknown status '%s'" % (name, match["status"]))
    if match["area"] not in AREAS:
        raise DecisionError("%s: the area is one of: %s" % (name, ", ".join(AREAS)))
    return match


def table(folder):
    """Returns the lines of the table of all decisions."""
    names = sorted(set(os.listdir(folder)) - {"README.md"})
    lines = ["| number | decision | date | status | area |\n", "|---|---|---|---|---|\n"]
    for number, name in enumerate(names, 1):
        d = read_decision(folder, name, number)
        lines.append("| %04d | [%s](%s) | %s | %s | %s |\n"
                     % (number, d["title"], name, d["date"], d["status"], d["area"]))
    return "".join(lines)


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    roots = [a for a in arguments if a != "--update"]
    root = roots[0] if roots else os.path.join(os.path.dirname(os.path.realpath(__file__)), "../..")
    folder = os.path.join(root, "docs/decisions")
    path = os.path.join(folder, "README.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        wanted = text.partition(BEGIN)[0] + BEGIN + "\n" + table(folder)
    except DecisionError as error:
        sys.exit("docs/decisions/%s" % error)
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(wanted)
    elif text != wanted:
        sys.exit("docs/decisions/README.md is out of date: run tests/docs/decisions_test.py --update")


if __name__ == "__main__":
    main()
