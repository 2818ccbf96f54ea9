"""What the tests of the Python package share."""

import os
import shutil
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
GOLDEN = os.path.join(ROOT, "tests", "session", "golden")
sys.path.insert(0, os.path.join(ROOT, "python"))


class Case(unittest.TestCase):
    """A test with a folder of its own, `self.folder`."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)
