#!/usr/bin/env python3
"""The program in docs/python.md runs."""

import os
import re
import unittest

import cases


class DocsTest(cases.Case):
    def test_blocks_are_a_program(self):
        path = os.path.join(cases.ROOT, "docs", "python.md")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        self.assertGreater(len(blocks), 3)
        names = {}
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for block in blocks:
            line = text[: text.index(block)].count("\n")
            exec(compile("\n" * line + block, path, "exec"), names)


if __name__ == "__main__":
    unittest.main()
