#!/usr/bin/env python3
"""The package: what its import costs, its library, and its wheel."""

import os
import subprocess
import sys
import unittest
import zipfile

import cases

import weir


class PackageTest(cases.Case):
    def python(self, code, **environment):
        """Runs a program in a new process; returns what it prints."""
        environment = dict(os.environ, **environment)
        paths = [os.path.join(cases.ROOT, "python"), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        ).stdout.strip()

    def test_import_loads_neither_numpy_nor_the_library(self):
        code = "import sys, weir; print('numpy' in sys.modules, 'libtensorflow' in open('/proc/self/maps').read())"
        self.assertEqual(self.python(code), "False False")

    def test_version(self):
        with open(os.path.join(cases.ROOT, "VERSION"), encoding="utf-8") as file:
            self.assertEqual(weir.version(), file.read().strip())

    def test_missing_library_is_an_error_that_says_so(self):
        code = "import weir\ntry: weir.Graph()\nexcept weir.LibraryError as e: print(e)"
        self.assertIn("WEIR_LIBRARY", self.python(code, WEIR_LIBRARY="/absent/libtensorflow.so.2"))

    def test_program_ends_with_objects_of_all_kinds(self):
        code = (
            "import numpy, weir\ng = weir.Graph()\nx = g.placeholder()\nv = g.variable('v')\n"
            "t = weir.Optimizer(g, 'Adam').minimize(v * 2.0)\nsaver = weir.Saver(g)\n"
            "s = weir.Session(g)\ns.initialize()\na = s.run(v)\n"
            "b = s.run(g.op('Neg', x), {x: numpy.ones(100000, 'float32')})\n"
            "k = s.step(g.op('Identity', x), [x])(numpy.ones(100000, 'float32'))\n"
            "def f(): return g, s, b, k, saver, t\nf.f = f\nprint('end')"
        )
        self.assertEqual(self.python(code), "end")

    def test_every_function_is_in_the_library(self):
        from weir._library import _FUNCTIONS, lib

        for name in _FUNCTIONS:
            self.assertIsNotNone(getattr(lib, name), name)

    def test_wheel_works_alone(self):
        library = os.environ.get("WEIR_LIBRARY")
        if not library or not os.path.exists(library):
            self.skipTest("WEIR_LIBRARY names no file")
        script = os.path.join(cases.ROOT, "python", "build_wheel.py")
        built = subprocess.run(
            [sys.executable, script, library, "--out", self.folder],
            check=True,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        ).stdout.strip()
        self.assertRegex(os.path.basename(built), r"weir-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl")
        with zipfile.ZipFile(built) as wheel:
            wheel.extractall(self.path("installed"))
        environment = {k: v for k, v in os.environ.items() if k != "WEIR_LIBRARY"}
        paths = [self.path("installed"), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        code = (
            "import weir\ng = weir.Graph()\nprint(weir.Session(g).run(g.constant(2.0) * 3.0))\n"
            "print(*{line.split()[-1] for line in open('/proc/self/maps') if '.so' in line})"
        )
        value, *loaded = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        ).stdout.split()
        self.assertEqual(value, "6.0")
        folder = self.path("installed/weir")
        inside = {name for name in os.listdir(folder) if ".so" in name}
        self.assertIn("libtensorflow.so.2", inside)
        found = {os.path.basename(path) for path in loaded if os.path.dirname(path) == folder}
        # Others in the process may have loaded a library of the same name before.
        self.assertLessEqual(inside - found, {"libz.so.1"})


if __name__ == "__main__":
    unittest.main()
