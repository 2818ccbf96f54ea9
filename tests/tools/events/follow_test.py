#!/usr/bin/env python3
"""weir events values --follow prints what is written while it runs: new records, records that are
written in two parts, new files, and new runs. Also compares CSV and JSON with what was written.

    follow_test.py WEIR
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import write_events  # noqa: E402

WEIR = ""
START = 1700000000.25


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


class Values(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name
        self.train = self.make_run("train")

    def make_run(self, name):
        os.makedirs(f"{self.root}/{name}")
        return f"{self.root}/{name}/events.out.tfevents.1.host"

    def weir(self, *args):
        return subprocess.run([WEIR, "events", "values", self.root, *args], check=True,
                              capture_output=True, text=True).stdout

    def test_csv_and_json_have_wall_times(self):
        evaluation = self.make_run('eval,"2"')
        for step in range(3):
            append(self.train, write_events.scalar("loss", step, START + step, 1 / (step + 1)))
        append(evaluation, write_events.scalar("loss", 2, START, float("nan")))
        rows = list(csv.DictReader(self.weir("--csv").splitlines()))
        self.assertEqual([(os.path.basename(r["run"]), r["tag"], int(r["step"])) for r in rows],
                         [('eval,"2"', "loss", 2)] + [("train", "loss", s) for s in range(3)])
        self.assertEqual([float(r["wall_time"]) for r in rows[1:]], [START + s for s in range(3)])
        self.assertEqual(rows[0]["value"], "nan")
        self.assertAlmostEqual(float(rows[3]["value"]), 1 / 3, places=7)
        objects = [json.loads(line) for line in self.weir("--json").splitlines()]
        self.assertEqual(objects[0]["value"], "NaN")
        self.assertEqual(objects[2], {"run": f"{self.root}/train", "tag": "loss", "step": 1,
                                      "wall_time": START + 1, "value": 0.5})

    def test_runs_are_apart(self):
        evaluation = self.make_run("eval")
        for path in [self.train, evaluation]:
            append(path, write_events.scalar("loss", 1, START, 0.5))
        lines = self.weir().splitlines()
        self.assertRegex(lines[0], r"^run +tag +step +time \(UTC\) +value$")
        self.assertRegex(lines[1], r"^eval +loss +1 +2023-11-14 22:13:20.250 +0.5$")
        self.assertRegex(lines[2], r"^train +loss ")

    def test_follow(self):
        process = subprocess.Popen([WEIR, "events", "values", self.root, "--follow", "--csv"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def next_line():
            return process.stdout.readline().rstrip("\n")

        time.sleep(0.7)  # there is nothing yet
        append(self.train, write_events.scalar("loss", 1, START, 0.5))
        self.assertEqual(next_line(), "run,tag,step,wall_time,value")
        self.assertEqual(next_line(), f"{self.root}/train,loss,1,{START:.6f},0.5")
        parts = write_events.scalar("loss", 2, START, 0.25)
        append(self.train, parts[:20])
        time.sleep(0.7)
        append(self.train, parts[20:])
        self.assertEqual(next_line(), f"{self.root}/train,loss,2,{START:.6f},0.25")
        append(self.train.replace(".1.", ".2."), write_events.scalar("loss", 3, START, 2))
        self.assertEqual(next_line(), f"{self.root}/train,loss,3,{START:.6f},2")
        append(self.make_run("eval"), write_events.scalar("loss", 3, START, 3))
        self.assertEqual(next_line(), f"{self.root}/eval,loss,3,{START:.6f},3")
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    WEIR = os.path.realpath(sys.argv.pop(1))
    unittest.main()
