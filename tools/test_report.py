"""Counts the test cases of one `bazel test` run, from its event file and the XML logs it names.

  python3 tools/test_report.py EVENTS.json STATUS_OF_BAZEL

Prints the failed cases, one per line, and finally `N passed, N failed` (and `, N skipped`). A test
that was not built, or that crashed, counts as one failed case; a script that prints a line
`SKIPPED: why` counts as a skipped one. Exits 1 if anything failed.
"""

import json
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


class Counts:
    def __init__(self):
        self.passed, self.skipped, self.failed = 0, [], []

    def add_case(self, label, case, output):
        # For a script, or a program that crashed, Bazel writes a log with one case without a class.
        name = "%s %s.%s" % (label, case.get("classname"), case.get("name"))
        if not case.get("classname"):
            name = label + " as a whole: see its log above"
        if case.find("failure") is not None or case.find("error") is not None:
            self.failed.append(name)
        elif (case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed") or
              not case.get("classname") and re.search("^SKIPPED: ", output, re.MULTILINE)):
            self.skipped.append(name)
        else:
            self.passed += 1

    def add_result(self, label, result):
        """Adds one run of one test (or of one shard of it)."""
        logs = {o["name"]: urllib.parse.urlparse(o.get("uri", "")).path
                for o in result.get("testActionOutput", [])}
        before = len(self.failed)
        try:
            log = ElementTree.parse(logs.get("test.xml", ""))
            output = "".join(e.text or "" for e in log.iter("system-out"))
            for case in log.iter("testcase"):
                self.add_case(label, case, output)
        except (OSError, ElementTree.ParseError):
            self.failed.append("%s: no readable test log" % label)
        if result["status"] not in ("PASSED", "FLAKY") and len(self.failed) == before:
            self.failed.append("%s: %s" % (label, result["status"].lower()))


def main():
    events, bazel_status = sys.argv[1], int(sys.argv[2])
    counts, wanted, seen = Counts(), set(), set()
    with open(events, encoding="utf-8") as f:
        for event in map(json.loads, f):
            configured = event.get("configured", {})
            if configured.get("testSize"):
                wanted.add(event["id"]["targetConfigured"]["label"])
            if "testResult" in event:
                label = event["id"]["testResult"]["label"]
                seen.add(label)
                counts.add_result(label, event["testResult"])
    counts.failed += ["%s: not built" % label for label in sorted(wanted - seen)]
    if bazel_status and not counts.failed:
        counts.failed.append("bazel exited with status %d: see its message above" % bazel_status)
    for name in counts.failed:
        print("FAILED  " + name)
    line = "%d passed, %d failed" % (counts.passed, len(counts.failed))
    print(line + (", %d skipped" % len(counts.skipped) if counts.skipped else ""))
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
