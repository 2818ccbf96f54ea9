#!/usr/bin/env python3
"""tools/test_report.py counts passed, failed and skipped cases, of programs and of scripts."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

REPORT = sys.argv.pop(1)

PROGRAM = """<testsuites><testsuite>
  <testcase name="Adds" classname="Sum" result="completed"/>
  <testcase name="Waits" classname="Sum" result="skipped"><skipped message="no data"/></testcase>
  <testcase name="Fails" classname="Sum" result="completed"><failure message="1 is not 2"/></testcase>
</testsuite></testsuites>"""

SCRIPT = """<testsuites><testsuite><testcase name="script" status="run"/>
  <system-out><![CDATA[%s]]></system-out></testsuite></testsuites>"""


class TestReport(unittest.TestCase):
    def report(self, logs, status="PASSED", bazel_status=0):
        with tempfile.TemporaryDirectory() as folder:
            events = os.path.join(folder, "events")
            with open(events, "w", encoding="utf-8") as f:
                for i, log in enumerate(logs):
                    path, label = os.path.join(folder, "%d.xml" % i), "//tests:%d" % i
                    with open(path, "w", encoding="utf-8") as x:
                        x.write(log)
                    f.write(json.dumps({"id": {"targetConfigured": {"label": label}},
                                        "configured": {"testSize": "SMALL"}}) + "\n")
                    f.write(json.dumps({
                        "id": {"testResult": {"label": label}},
                        "testResult": {"status": status, "testActionOutput": [
                            {"name": "test.xml", "uri": "file://" + path}]}}) + "\n")
            done = subprocess.run([sys.executable, REPORT, events, str(bazel_status)],
                                  capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    def test_cases_of_a_program_are_counted_one_by_one(self):
        status, lines = self.report([PROGRAM])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 1 skipped"))
        self.assertIn("Sum.Fails", lines[0])

    def test_a_script_that_skips_has_not_passed(self):
        status, lines = self.report([SCRIPT % "PASS", SCRIPT % "some words\nSKIPPED: no data"])
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))

    def test_a_broken_log_and_a_failed_build_are_failures(self):
        self.assertEqual(self.report(["<testsuites>"])[1][-1], "0 passed, 1 failed")
        self.assertEqual(self.report([SCRIPT % ""], bazel_status=1)[1][-1], "1 passed, 1 failed")


if __name__ == "__main__":
    unittest.main()
