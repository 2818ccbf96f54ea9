#!/usr/bin/env python3
"""Each room includes only the rooms that tests/rooms.txt lets it include.

A room is a folder of sources, or one source that rooms.txt names. Every source lies in a room, no
folder has more than 65 sources, and the rooms of a folder that has several have a README.md. The
rooms of tests/ops/ are those of ops/, and so on. Bazel's visibility says the same of the top
folders; this sees single headers, and names the room and the rule.
"""

import os
import re
import sys

LARGEST = 65
ENDS = ("tools", "examples")  # both may include all top folders before, and not each other
# Included as "weir/weir.h".
TOP_HEADERS = {"weir.h": "session/weir.h", "proto.h": "proto/proto.h", "c_api.h": "capi/weir/c_api.h"}
SOURCES = (".h", ".cc", ".cu", ".cuh")
SKIPPED = "tools/precompiled"  # nothing includes these lists (tools/precompiled.bzl)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def top_of(room):
    return room.split("/")[0]


class Rooms:
    """The list of rooms: their order, and what each may include of its own top folder."""

    def __init__(self, path):
        self.allowed, self.tops, self.faults = {}, [], []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                words = line.split("#")[0].split()
                if words:
                    self._add("tests/rooms.txt:%d" % number, words[0], words[1:])

    def _add(self, where, room, names):
        top = top_of(room)
        if top not in self.tops:
            self.tops.append(top)
        before = {r.split("/")[-1]: r for r in self.allowed if top_of(r) == top}
        for name in names:
            if name not in before:
                self.faults.append("%s: %s may include %s only if a line before says what %s is" % (
                    where, room, name, name))
        self.allowed[room] = {before[name] for name in names if name in before}

    def of(self, path):
        """The room of a source, or None."""
        folder = os.path.dirname(path)
        return path if path in self.allowed else folder if folder in self.allowed else None

    def why_not(self, room, other):
        """The rule by which `room` may not include `other`, or None."""
        if room == other or other in self.allowed[room]:
            return None
        if top_of(room) == top_of(other):
            names = sorted(r.split("/")[-1] for r in self.allowed[room])
            return "of %s/, room %s may include only %s (tests/rooms.txt)" % (
                top_of(room), room, ", ".join([room.split("/")[-1]] + names))
        ends = top_of(room) in ENDS and top_of(other) in ENDS
        if ends or self.tops.index(top_of(other)) > self.tops.index(top_of(room)):
            line = " < ".join(t for t in self.tops if t not in ENDS) + " < " + ", ".join(ENDS)
            return "room %s may not include room %s: %s" % (room, other, line)
        return None

    def fault_of_include(self, path, included):
        """What is wrong with one #include, or None."""
        if path == "proto/proto.h":  # of all messages, for programs that want the types
            return None
        if included.split("/")[0] in self.tops + ["tests"]:
            return 'write it as "weir/%s"' % included
        if not included.startswith("weir/"):
            return None
        if included.endswith(".pb.h"):
            return "a header does not include a .pb.h: keep it in the .cc" if path.endswith(".h") \
                else None
        name = included[len("weir/"):]
        other = self.of(TOP_HEADERS.get(name, name))
        if other is None:
            return "no room of tests/rooms.txt has this header"
        return self.why_not(self.of(path), other)


def sources_by_folder(root):
    """Yields (folder, sorted names of its sources), relative to the root."""
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "bazel-"))]
        sources = sorted(n for n in names if n.endswith(SOURCES))
        if sources:
            yield os.path.relpath(folder, root), sources


def faults_of_folder(rooms, folder, names):
    top, _, room = folder.partition("/")
    faults = []
    if len(names) > LARGEST:
        faults.append("%s: %d sources; a folder has at most %d" % (folder, len(names), LARGEST))
    if top == "tests":
        tested, _, room = room.partition("/")
        if room and any(top_of(r) == tested for r in rooms.allowed) and room != "lib" and \
                "%s/%s" % (tested, room) not in rooms.allowed:
            faults.append("%s: %s/ has no room %s (tests/rooms.txt)" % (folder, tested, room))
    elif top in rooms.tops and folder not in rooms.allowed:
        faults.append("%s: not a room of tests/rooms.txt" % folder)
    return faults


def faults_of_file(rooms, root, path):
    faults = []
    with open(os.path.join(root, path), encoding="utf-8") as lines:
        for number, text in enumerate(lines, 1):
            match = INCLUDE.match(text)
            why = match and rooms.fault_of_include(path, match[1])
            if why:
                faults.append('%s:%d: #include "%s": %s' % (path, number, match[1], why))
    return faults


def main():
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    rooms = Rooms(os.path.join(root, "tests/rooms.txt"))
    faults, files, used = list(rooms.faults), 0, set()
    for folder, names in sources_by_folder(root):
        if folder == SKIPPED:
            continue
        faults += faults_of_folder(rooms, folder, names)
        paths = [os.path.join(folder, name) for name in names]
        used.update(filter(None, map(rooms.of, paths)))
        for path in paths:
            if rooms.of(path):
                files += 1
                faults += faults_of_file(rooms, root, path)
    faults += ["tests/rooms.txt: room %s has no source" % r for r in rooms.allowed
               if r not in used]
    several = [t for t in rooms.tops if t != "examples" and
               sum(top_of(r) == t for r in rooms.allowed) > 1]
    faults += ["%s: a room has a README.md" % r for r in rooms.allowed
               if top_of(r) in several and not r.endswith(SOURCES) and
               not os.path.exists(os.path.join(root, r, "README.md"))]
    print("\n".join(faults + ["%d files in %d rooms, %d faults" % (
        files, len(rooms.allowed), len(faults))]))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
