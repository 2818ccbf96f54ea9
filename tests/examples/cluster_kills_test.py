#!/usr/bin/env python3
"""Kills tasks of examples/cluster at random moments of the training, and starts them again.

Each run trains with 2 parameter servers and 3 workers. In each a parameter server, a worker and the chief are killed, in
any order. The training must go on from a checkpoint that is not older than the newest one before the kill, and all
workers must end, with the number of steps that was asked for.
usage: cluster_kills_test.py CLUSTER [--runs N] [--steps N] [--seed N] [--sync]
"""

import argparse
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

SAVE_EVERY = 20
LIMIT = 240  # seconds for what must happen in a run; the servers end calls to lost tasks after 60
STEP = re.compile(r"^worker \d+: step (\d+) of")
END = re.compile(r"^Accuracy on .* after (\d+) steps:")


class Failure(Exception):
    pass


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return addresses


class Training:
    """The processes of one run, which write to one log."""

    def __init__(self, program, directory, steps, sync):
        addresses = free_addresses(5)
        self.cluster = "ps|%s,worker|%s" % (";".join(addresses[:2]), ";".join(addresses[2:]))
        self.program, self.directory = program, directory
        self.arguments = ["--steps", str(steps), "--save-every", str(SAVE_EVERY), "--report-every", "1", "--dir",
                          os.path.join(directory, "run")] + (["--sync"] if sync else [])
        self.tasks = {}
        self.log = open(os.path.join(directory, "log"), "w+")
        self.position = 0
        self.end = time.time() + LIMIT
        for name in (("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1), ("worker", 2)):
            self.start(name)

    def start(self, name):
        self.tasks[name] = subprocess.Popen(
            [self.program, "--cluster=" + self.cluster, "--job=" + name[0], "--task=%d" % name[1]] + self.arguments,
            stdout=self.log, stderr=self.log)

    def kill(self, name):
        if self.tasks[name].poll() is not None:
            raise Failure("%s task %d has ended early: %d" % (*name, self.tasks[name].returncode))
        self.tasks[name].send_signal(signal.SIGKILL)
        self.tasks[name].wait()

    def new_lines(self):
        """The complete lines that have come since the last call."""
        with open(self.log.name) as f:
            f.seek(self.position)
            text = f.read()
        text = text[:text.rfind("\n") + 1]
        self.position += len(text.encode())
        return text.splitlines()

    def newest_checkpoint(self):
        try:
            with open(os.path.join(self.directory, "run", "checkpoint")) as f:
                return int(re.search(r'^model_checkpoint_path: ".*-(\d+)"', f.read(), re.M).group(1))
        except (OSError, AttributeError):
            return 0

    def check_time(self, what):
        if time.time() > self.end:
            raise Failure("hangs: %s" % what)

    def wait_for_step(self, step, floor):
        """Waits for a line with such a step; none may have one before the floor."""
        while True:
            for line in self.new_lines():
                if match := STEP.match(line):
                    if int(match.group(1)) < floor:
                        raise Failure("%s, after a checkpoint of step %d" % (line, floor))
                    if int(match.group(1)) >= step:
                        return
            for name, task in self.tasks.items():
                if task.poll() not in (None, 0):
                    raise Failure("%s task %d has ended early: %d" % (*name, task.returncode))
            self.check_time("no step %d" % step)
            time.sleep(0.01)

    def wait_for_end(self):
        for task in range(3):
            worker = self.tasks["worker", task]
            while worker.poll() is None:
                self.check_time("worker %d does not end" % task)
                time.sleep(0.02)
            if worker.returncode != 0:
                raise Failure("worker %d has ended with %d" % (task, worker.returncode))
        with open(self.log.name) as f:
            ends = [int(match.group(1)) for match in map(END.match, f) if match]
        if len(ends) != 1:
            raise Failure("%d chiefs have ended the training" % len(ends))
        return ends[0]

    def stop(self):
        for task in self.tasks.values():
            if task.poll() is None:
                task.kill()
            task.wait()
        self.log.close()


def run(program, steps, sync, rng):
    """Returns the number of kills by role."""
    roles = ["ps", "worker", "chief"]
    rng.shuffle(roles)
    moments = sorted(rng.randrange(steps // 20, steps * 3 // 4) for _ in roles)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as directory:
        training = Training(program, directory, steps, sync)
        try:
            floor = 0
            for role, moment in zip(roles, moments):
                training.wait_for_step(moment, floor)
                time.sleep(rng.random() * 0.05)
                floor = training.newest_checkpoint()
                name = {"ps": ("ps", rng.randrange(2)), "worker": ("worker", 1 + rng.randrange(2)),
                        "chief": ("worker", 0)}[role]
                training.kill(name)
                time.sleep(rng.random() * 0.5)
                training.new_lines()  # of steps before the kill
                training.start(name)
            training.wait_for_step(steps * 4 // 5, floor)
            reached = training.wait_for_end()
            if not steps <= reached <= steps + 3:
                raise Failure("%d steps instead of %d" % (reached, steps))
        except Failure as e:
            with open(training.log.name) as f:
                print("%s; kills: %s at steps %s; end of the log:\n%s" % (e, roles, moments, "".join(f.readlines()[-30:])))
            return None
        finally:
            training.stop()
    return roles


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=2, help="of which each kills one task of each role")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--sync", action="store_true", help="all runs; otherwise every other one")
    args = parser.parse_args()
    print("seed %d" % args.seed)
    failures = 0
    for i in range(args.runs):
        rng = random.Random(args.seed + i)
        sync = args.sync or i % 2 == 1
        begin = time.time()
        roles = run(args.program, args.steps, sync, rng)
        failures += roles is None
        print("run %d (%s): %s, %.1f s" % (i, "synchronous" if sync else "asynchronous",
                                           "FAILED" if roles is None else "killed " + ", ".join(roles),
                                           time.time() - begin), flush=True)
    print("%d kills of each role, %d runs failed" % (args.runs, failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
