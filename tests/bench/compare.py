#!/usr/bin/env python3
"""Times Weir and TensorFlow's C API on the same graphs, alternating, and prints a table.

usage: compare.py SUITE [--rounds N] [--budget S] [--only W2] [--before 'chrt -f 10']

SUITE is a folder with peers/tf_capi.cc and peers/make_graphs.py. They are built once, with the
TensorFlow of this Python, under --work. Weir's program is bazel-bin/tests/bench/graph_bench:

    bazel build //tests/bench:graph_bench && python3 tests/bench/compare.py ../shared/bench

Each round runs both programs once, one after the other, so that load on the machine affects both.
Each program repeats its step for --budget seconds. The table has the best repeat of all rounds, the
median over the rounds of their median repeats, and the median over the rounds of TensorFlow's time
divided by Weir's time in the same round. --before is a prefix for every command: a real-time
priority, if the user may have one, keeps other programs from interfering.
"""

import argparse
import importlib.util
import json
import os
import shlex
import statistics
import subprocess
import sys

import make_bert
import model_graphs
from workloads import BERT, MODELS, WORKLOADS, for_weir


def build_peer(suite, work):
    """Builds TensorFlow's program and the graphs if they do not exist."""
    os.makedirs(work, exist_ok=True)
    found = importlib.util.find_spec("tensorflow")
    if found is None:
        sys.exit("compare.py: this Python has no TensorFlow: pip install tensorflow-cpu")
    library = os.path.dirname(found.origin)
    peer, graphs = os.path.join(work, "tf_capi"), os.path.join(work, "graphs")
    if not os.path.exists(peer):
        print("Building %s" % peer, file=sys.stderr)
        subprocess.run(
            ["g++", "-O2", "-std=c++17", os.path.join(suite, "peers", "tf_capi.cc"),
             "-I" + os.path.join(library, "include"), "-L" + library, "-l:libtensorflow_cc.so.2",
             "-l:libtensorflow_framework.so.2", "-Wl,-rpath," + library, "-o", peer],
            check=True,
        )  # fmt: skip
    if not os.path.exists(os.path.join(graphs, "w9_tiny.pb")):
        print("Making the graphs (a minute or two)", file=sys.stderr)
        script = os.path.join(os.path.abspath(suite), "peers", "make_graphs.py")
        subprocess.run(
            [sys.executable, script, os.path.abspath(graphs)], check=True, stdout=subprocess.DEVNULL
        )
    return peer, graphs


def figures(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["metric"]: row for row in rows}


def compare(before, weir, peer, arguments, alone, rounds):
    ours, theirs, ratios = [], [], []
    for _ in range(rounds):
        ours.append(figures(before + [weir] + for_weir(arguments) + alone[0])["steady_run"])
        theirs.append(figures(before + [peer] + arguments + alone[1])["steady_run"])
        ratios.append(theirs[-1]["median"] / ours[-1]["median"])

    def both(rows):
        best = min(row["value"] for row in rows)
        return "%.4g | %.4g" % (best, statistics.median(row["median"] for row in rows))

    return both(ours), both(theirs), ratios


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", metavar="SUITE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=1)
    parser.add_argument("--only", default="", help="only workloads whose names contain this")
    parser.add_argument("--before", default="", metavar="COMMAND")
    parser.add_argument("--weir", default="bazel-bin/tests/bench/graph_bench")
    parser.add_argument("--work", default=os.path.expanduser("~/.cache/weir-bench"))
    flags = parser.parse_args()
    if not os.path.exists(flags.weir):
        sys.exit("compare.py: %s not found: run bazel build //tests/bench:graph_bench" % flags.weir)
    peer, graphs = build_peer(flags.suite, flags.work)
    print("| workload | unit | Weir best | median | TensorFlow best | median | TensorFlow / Weir |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, graph, arguments, alone, unit in WORKLOADS + BERT + MODELS:
        if flags.only not in name:
            continue
        if graph.startswith("w12_") and not os.path.exists(os.path.join(graphs, graph + ".pb")):
            subprocess.run([sys.executable, make_bert.__file__, graphs], check=True)
        if name.split(".")[0] in model_graphs.SCRIPTS:
            model_graphs.write_in_child(name.split(".")[0], graphs)
        path = os.path.join(graphs, graph + ".pb")
        if graph.startswith("chain"):
            make = ["--chain=1000", "--seed=" + graph[5:], "--write=" + path, "--init=init_all"]
            figures([flags.weir, name] + make)
        ours, theirs, ratios = compare(
            shlex.split(flags.before), flags.weir, peer,
            [name, path, "--budget=%g" % flags.budget] + arguments, alone, flags.rounds,
        )  # fmt: skip
        print(
            "| %s | %s | %s | %s | **%.2f** (%.2f to %.2f) |"
            % (name, unit, ours, theirs, statistics.median(ratios), min(ratios), max(ratios)),
            flush=True,
        )


if __name__ == "__main__":
    main()
