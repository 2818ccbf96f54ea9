#!/usr/bin/env python3
"""Times single ops in Weir and in TensorFlow, each at three sizes and on one thread and on all.

usage: op_sweep.py [CASE...] [--family F] [--sizes small,usual,large] [--threads 1,2] [--rounds 3]
                   [--weir bazel-bin/tools/weir] [--list] [--write]

    bazel build //tools:weir && python3 tests/bench/op_sweep.py --write

A step is fed and fetches the result. The two runtimes take turns; each turn gives the fastest step
of a third of a second, and a row has the median of the turns. The ratio is TensorFlow's time
divided by Weir's: above 1, Weir is faster. TensorFlow's steps are called from Python, which takes
some 30 microseconds, most of a small step. --write puts the table into docs/op_sweep.md, where a
case below 1 has its reason, where it is known (REASONS). Needs a Python with TensorFlow. The cases
are in op_cases.py.
"""

import argparse
import base64
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import op_cases
import run_suite

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "op_sweep.md")
TURN_S = 0.33
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

NEW_PAGES = "results above 64 MiB are not cached: their pages are new in every step"

# Why a case is slower than TensorFlow's at the usual size, as far as it has been looked into.
REASONS = {
    "depth_to_space": NEW_PAGES,
    "gather_rows": NEW_PAGES,
    "one_hot": NEW_PAGES,
    "scatter_nd": NEW_PAGES,
    "tile": NEW_PAGES,
    "to_dense": NEW_PAGES,
}


def worker(threads):
    """TensorFlow with so many threads: reads cases from standard input, writes times in seconds.
    The threads are those of the process, so there is one process for each number."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    cases = {case.name: case for case in op_cases.cases(tf)}
    config = tf.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
    )
    step = arguments = None
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "build":
            case = cases[command["case"]]
            tf.reset_default_graph()
            arguments = case.inputs(command["size"])
            fed = [
                tf.placeholder(a.dtype if a.dtype.kind != "S" else tf.string, a.shape, "i%d" % k)
                for k, a in enumerate(arguments)
            ]
            y = tf.identity(case.build(*fed), "y")
            with open(os.path.join(command["folder"], "graph.pb"), "wb") as f:
                f.write(tf.get_default_graph().as_graph_def().SerializeToString())
            step = tf.Session(config=config).make_callable(y, fed)
            step(*arguments)
            answer = None
        else:
            answer, end, count = float("inf"), time.time() + TURN_S, 0
            while count < 3 or (time.time() < end and count < 10000):
                start = time.perf_counter()
                step(*arguments)
                answer, count = min(answer, time.perf_counter() - start), count + 1
        print("answer " + json.dumps(answer), flush=True)


class TensorFlow:
    def __init__(self, threads):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("answer "):
                return json.loads(line[7:])
        raise RuntimeError("TensorFlow's process has ended")


def save(folder, arguments):
    """Writes the inputs as files that `weir run` feeds."""
    flags = []
    for k, a in enumerate(arguments):
        path = os.path.join(folder, "i%d" % k) + (".json" if a.dtype.kind == "S" else ".npy")
        if a.dtype.kind == "S":
            with open(path, "w") as f:
                json.dump(
                    {
                        "shape": a.shape,
                        "data_base64": [base64.b64encode(text).decode() for text in a],
                    },
                    f,
                )
        else:
            np.save(path, a)
        flags += ["--feed", "i%d:0=%s" % (k, path)]
    return flags


def run_weir(weir, folder, feeds, threads, expected):
    repeat = int(min(10000, max(3, TURN_S / max(expected, 1e-6))))
    result = subprocess.run(
        [
            weir,
            "run",
            os.path.join(folder, "graph.pb"),
            "--fetch",
            "y=" + os.path.join(folder, "y.npy"),
            "--repeat",
            str(repeat),
            "--threads",
            str(threads),
        ]
        + feeds,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    found = re.search(r"the fastest ([\d.e+]+) (\S+)", result.stdout)
    if not found:
        raise RuntimeError(result.stdout.strip()[-300:])
    return float(found.group(1)) * UNITS[found.group(2)]


def measure(case, size, threads, peer, flags):
    with tempfile.TemporaryDirectory() as folder:
        peer.ask(do="build", case=case.name, size=size, folder=folder)
        feeds = save(folder, case.inputs(size))
        theirs, ours = [], []
        for _ in range(flags.rounds):
            theirs.append(peer.ask(do="time"))
            ours.append(run_weir(flags.weir, folder, feeds, threads, theirs[-1]))
    return statistics.median(theirs), statistics.median(ours)


def seconds(value):
    for unit, scale in (("s", 1), ("ms", 1e-3)):
        if value >= scale:
            return "%.3g %s" % (value / scale, unit)
    return "%.3g us" % (value / 1e-6)


def page(rows, command):
    """The document: a summary, what is slower and why, and all rows."""
    lines = [
        "# Op sweep",
        "",
        "Single ops in TensorFlow 2.21 and in Weir on %s," % run_suite.processor(),
        "measured on %s by the following command. [The tool](../tests/bench/op_sweep.py) says"
        % datetime.date.today(),
        "how. A ratio above 1 means that Weir is faster.",
        "",
        "    " + command,
        "",
        "| size | threads | cases | median ratio | below 1 |",
        "|---|---|---|---|---|",
    ]
    for size in op_cases.SIZES:
        for threads in sorted({row["threads"] for row in rows}):
            ratios = [r["ratio"] for r in rows if r["size"] == size and r["threads"] == threads]
            if ratios:
                lines.append(
                    "| %s | %d | %d | %.2f | %d |"
                    % (
                        size,
                        threads,
                        len(ratios),
                        statistics.median(ratios),
                        sum(ratio < 1 for ratio in ratios),
                    )
                )
    lines += [
        "",
        "## Below 1",
        "",
        "| case | size | threads | ratio | why |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda r: r["ratio"]):
        if row["ratio"] < 1:
            lines.append(
                "| %s | %s | %d | %.2f | %s |"
                % (
                    row["case"],
                    row["size"],
                    row["threads"],
                    row["ratio"],
                    REASONS.get(row["case"], "not looked into"),
                )
            )
    lines += [
        "",
        "## All",
        "",
        "| family | case | size | threads | TensorFlow | Weir | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            "| %s | %s | %s | %d | %s | %s | %.2f |"
            % (
                row["family"],
                row["case"],
                row["size"],
                row["threads"],
                seconds(row["tensorflow_s"]),
                seconds(row["weir_s"]),
                row["ratio"],
            )
        )
    return "\n".join(lines) + "\n"


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--family", default="")
    parser.add_argument("--sizes", default=",".join(op_cases.SIZES))
    parser.add_argument("--threads", default="1,%d" % os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weir", default="bazel-bin/tools/weir")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    flags = parse()
    if flags.worker:
        return worker(flags.worker)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf

    chosen = [
        case
        for case in op_cases.cases(tf)
        if (not flags.cases or case.name in flags.cases) and flags.family in ("", case.family)
    ]
    if not chosen:
        sys.exit("op_sweep.py: no such case; --list prints them")
    if not set(flags.sizes.split(",")) <= set(op_cases.SIZES):
        sys.exit("op_sweep.py: the sizes are " + ", ".join(op_cases.SIZES))
    if flags.list:
        return print("\n".join("%-12s %s" % (case.family, case.name) for case in chosen))
    if not os.path.exists(flags.weir):
        sys.exit("op_sweep.py: %s not found: run bazel build //tools:weir" % flags.weir)
    rows = []
    for threads in sorted({int(n) for n in flags.threads.split(",")}):
        peer = TensorFlow(threads)
        for case in chosen:
            for size in flags.sizes.split(","):
                try:
                    theirs, ours = measure(case, op_cases.SIZES.index(size), threads, peer, flags)
                except (RuntimeError, OSError) as error:
                    print("%-24s %-6s %2d  %s" % (case.name, size, threads, error), flush=True)
                    if peer.process.poll() is not None:
                        peer = TensorFlow(threads)
                    continue
                rows.append(
                    {
                        "family": case.family,
                        "case": case.name,
                        "size": size,
                        "threads": threads,
                        "tensorflow_s": theirs,
                        "weir_s": ours,
                        "ratio": theirs / ours,
                    }
                )
                print(
                    "%-24s %-6s %2d  TensorFlow %9s  Weir %9s  ratio %6.2f"
                    % (case.name, size, threads, seconds(theirs), seconds(ours), theirs / ours),
                    flush=True,
                )
    if flags.json:
        with open(flags.json, "w") as f:
            json.dump(rows, f, indent=1)
    if flags.write:
        with open(PAGE, "w") as f:
            f.write(page(rows, "python3 tests/bench/op_sweep.py " + " ".join(sys.argv[1:])))


if __name__ == "__main__":
    main()
