#!/usr/bin/env python3
"""tools/compile_commands.py turns Bazel's actions into commands that Clang can run."""

import json
import subprocess
import sys
import unittest

SCRIPT = sys.argv.pop(1)


def action(source, *flags):
    return {"mnemonic": "CppCompile", "arguments": [
        "/usr/bin/gcc", *flags, "-MD", "-MF", "bazel-out/bin/x.d", "-frandom-seed=x.o", "-c", source,
        "-o", "bazel-out/bin/x.o"]}


def convert(*actions):
    done = subprocess.run([sys.executable, SCRIPT, "/home/weir"], check=True, text=True,
                          input=json.dumps({"actions": actions}), stdout=subprocess.PIPE)
    return json.loads(done.stdout)


class CompileCommands(unittest.TestCase):
    def test_flags_that_only_gcc_has_and_outputs_are_dropped(self):
        flags = ["-std=c++20", "-iquote", ".", "--param=ggc-min-expand=300", "-include",
                 "tools/precompiled/library.h", "-fpch-deps", "-Ibazel-out/bin", "-DX=1"]
        self.assertEqual(convert(action("core/tensor/dtype.cc", *flags)), [{
            "directory": "/home/weir",
            "file": "core/tensor/dtype.cc",
            "arguments": ["clang++", "-I.cache/include", "-std=c++20", "-iquote", ".",
                          "-Ibazel-out/bin", "-DX=1", "-c", "core/tensor/dtype.cc"],
        }])

    def test_one_entry_per_source_in_order(self):
        found = convert(action("b.cc", "-O1"), action("a.cc"), action("b.cc", "-O2"))
        self.assertEqual([entry["file"] for entry in found], ["a.cc", "b.cc"])
        self.assertIn("-O1", found[1]["arguments"])

    def test_generated_sources_are_left_out(self):
        self.assertEqual(convert(action("bazel-out/k8-opt/bin/proto/graph.pb.cc"),
                                 action("external/x/y.cc")), [])

    def test_compilations_without_a_source_are_left_out(self):
        self.assertEqual(convert({"arguments": ["/usr/bin/gcc", "--version"]}), [])


if __name__ == "__main__":
    unittest.main()
