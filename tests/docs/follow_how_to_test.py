#!/usr/bin/env python3
"""follow_how_to.py applies each form of snippet, and rejects a how-to that cannot be followed."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import follow_how_to  # noqa: E402


class FollowHowTo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("a.cc", "one\ntwo\nthree\n")

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def read(self, name):
        with open(os.path.join(self.folder.name, name), encoding="utf-8") as file:
            return file.read()

    def follow(self, text):
        for snippet in follow_how_to.read_snippets(self.write("how_to.md", text)):
            follow_how_to.apply_snippet(snippet, self.folder.name)

    def test_each_form(self):
        self.follow("First.\n\nIn `a.cc`, after `one`:\n\n```cpp\nx\n```\n"
                    "In `a.cc`, before `one`:\n\n```cpp\ny\n```\n\n"
                    "It is long. In\n`a.cc`, replace `three`:\n\n```cpp\nz\n```\n\n"
                    "At the end of `a.cc`:\n\n```cpp\nw\n```\n\nNew file `b/c.h`:\n\n```cpp\nv\n```\n")
        self.assertEqual(self.read("a.cc"), "y\none\nx\ntwo\nz\nw\n")
        self.assertEqual(self.read("b/c.h"), "v\n")

    def test_diffs(self):
        self.follow("Add two lines.\n\n```diff\n--- a/a.cc\n+++ b/a.cc\n@@ -9,2 +9,3 @@\n one\n+x\n two\n"
                    "@@ -20 +21,2 @@\n three\n+y\n```\n")
        self.assertEqual(self.read("a.cc"), "one\nx\ntwo\nthree\ny\n")

    def test_commands_and_illustrations_are_not_applied(self):
        text = "Run it:\n\n```bash\nmake\n```\n\nA function reads its inputs:\n\n```cpp\nRead();\n```\n"
        self.follow(text)
        self.assertEqual(self.read("a.cc"), "one\ntwo\nthree\n")
        self.assertEqual(follow_how_to.read_commands(self.write("h.md", text)), "make\n")

    def test_what_cannot_be_followed_is_rejected(self):
        block = ":\n\n```cpp\nx\n```\n"
        for text, why in [("In `a.cc`, after `four`" + block, "0 lines of a.cc contain `four`"),
                          ("In `a.cc`, after `t`" + block, "2 lines of a.cc contain `t`"),
                          ("New file `a.cc`" + block, "a.cc exists"),
                          ("It is done. In `a.cc`, below `one`" + block, "no form of a place"),
                          ("```diff\n--- a/a.cc\n+++ b/a.cc\n@@ -1 +1,2 @@\n four\n+x\n```\n", "a.cc"),
                          ("In `a.cc`, after `one`:\n\n```cpp\nx\n", "is not closed")]:
            with self.assertRaisesRegex(follow_how_to.HowToError, why.replace("`", ".")):
                self.follow(text)


if __name__ == "__main__":
    unittest.main()
