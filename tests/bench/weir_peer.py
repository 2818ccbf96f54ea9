#!/usr/bin/env python3
"""Weir as a peer of the suite: runs one of W1 to W17 and prints JSON lines in the suite's form.

usage: weir_peer.py W4 [--graphs DIR] [--programs DIR]

run_peers.py of the suite runs it with `--extra weir='.../weir_peer.py'`. BENCH_BUDGET_S is the time
per measurement, BENCH_DIR the folder for checkpoints.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import model_graphs
from workloads import BERT, MODELS, WORKLOADS, for_peers, for_weir

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "..", "bazel-bin")
GRAPHS = os.path.expanduser("~/.cache/weir-bench/graphs")
BUDGET = os.environ.get("BENCH_BUDGET_S", "2")


def emit(row):
    print(json.dumps(row), flush=True)


def pass_on(command, change=lambda row: row):
    """Yields the JSON lines that a program prints; its errors go to our stderr."""
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in out.splitlines():
        if line.startswith("{"):
            emit(change(json.loads(line)))


def graphs(family, program, folder):
    for name, graph, arguments, alone, _ in WORKLOADS + BERT + MODELS:
        if name.split(".")[0] == family:
            path = os.path.join(folder, graph + ".pb")
            command = [program, name, path, "--budget=" + BUDGET] + for_weir(arguments) + alone[0]
            pass_on(command, for_peers)


def check_bert(weir, folder):
    """Compares the results of W12's inference with TensorFlow's, which make_bert.py has written."""
    import make_bert
    import numpy as np

    for size in make_bert.SIZES:
        name = "w12_bert_%dx%d" % size
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "out.npy")
            command = [weir, "run", os.path.join(folder, "w12_bert.pb"), "--fetch", "pooled=" + out]
            for feed, value in make_bert.feeds(*size).items():
                path = os.path.join(scratch, feed + ".npy")
                np.save(path, value)
                command += ["--feed", "%s=%s" % (feed, path)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            make_bert.check(name, np.load(out), folder)


def check_models(family, program, folder):
    """Compares the results of W13 to W17 with TensorFlow's, which their scripts have written."""
    for model in model_graphs.models(family):
        for fault in model_graphs.faults(model, folder, program):
            sys.exit("weir_peer.py: " + fault)


def cold(weir, folder, repeats=7):
    """Measures W9: the time of a process that runs a tiny frozen graph, from start to exit."""
    command = [weir, "run", os.path.join(folder, "w9_tiny.pb"), "--feed", "x:0=[[1,2,3,4]]",
               "--fetch", "y:0"]  # fmt: skip
    runs = []
    for i in range(repeats + 1):  # the first one warms the page cache
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit("weir_peer.py: %s: status %d" % (" ".join(command), status))
        if i > 0:
            cpu = usage.ru_utime + usage.ru_stime
            runs.append((time.perf_counter() - start, cpu, usage.ru_maxrss / 1024))
    walls = sorted(run[0] for run in runs)
    row = {"workload": "W9.cold", "peer": "weir"}
    emit(dict(row, metric="start_to_exit", value=walls[0], unit="s",
              median=walls[len(walls) // 2], repeats=repeats))  # fmt: skip
    emit(dict(row, metric="cpu", value=min(run[1] for run in runs), unit="s"))
    emit(dict(row, metric="peak_rss", value=max(run[2] for run in runs), unit="MB"))
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "-o", stripped.name, weir], check=True)
        size = os.path.getsize(stripped.name)
    emit(dict(row, metric="package_size", value=size / 1e6, unit="MB"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", metavar="W4")
    parser.add_argument("--graphs", default=GRAPHS, help="folder of the graphs from the suite's make_graphs.py")
    parser.add_argument("--programs", default=PROGRAMS, metavar="BAZEL-BIN")
    flags = parser.parse_args()
    program = lambda name: os.path.join(flags.programs, "tests", "bench", name)  # noqa: E731
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # required by the suite's rules
    budget = "--budget=" + BUDGET
    family = flags.workload
    if family == "W7":
        pass_on([program("checkpoint_bench"), "--dir", os.environ.get("BENCH_DIR", ".")])
    elif family == "W8":
        pass_on([program("scale_bench"), budget])
    elif family == "W9":
        cold(os.path.join(flags.programs, "tools", "weir"), flags.graphs)
    elif family == "W10":
        pass_on([program("ops_bench"), budget])
    elif family == "W11":
        pass_on([program("callers_bench"), budget, "--graphs", flags.graphs])
    elif family in model_graphs.SCRIPTS:
        graphs(family, program("graph_bench"), flags.graphs)
        run_steps = os.path.join(flags.programs, "tests", "interop", "run_steps")
        check_models(family, run_steps, flags.graphs)
    elif family == "W12" and not os.path.exists(os.path.join(flags.graphs, "w12_bert.pb")):
        sys.exit("weir_peer.py: make_bert.py has not written W12's graphs to " + flags.graphs)
    else:
        graphs(family, program("graph_bench"), flags.graphs)
        if family == "W12":
            check_bert(os.path.join(flags.programs, "tools", "weir"), flags.graphs)


if __name__ == "__main__":
    main()
