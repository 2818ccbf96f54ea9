#!/usr/bin/env python3
"""Times Weir and TensorFlow's C API on the same graphs, in turn, and prints a table.

usage: compare.py SUITE [--rounds N] [--budget S] [--only W2] [--before 'chrt -f 10']

SUITE is a folder with peers/tf_capi.cc and peers/make_graphs.py. They are built once, with the
TensorFlow of this Python, under --work. Weir's side is bazel-bin/tests/bench/graph_bench:

    bazel build //tests/bench:graph_bench && python3 tests/bench/compare.py ../bench

Each round runs both programs once, one after the other, so that a busy or slow machine is busy or
slow for both; each program repeats its step for --budget seconds. The table has the best repeat of
all rounds, the median over the rounds of their middle repeats, and the median over the rounds of
TensorFlow's time divided by Weir's of that round. --before is put before every command: a
real-time priority keeps other programs away, where the user may have one.
"""

import argparse
import importlib.util
import json
import os
import shlex
import statistics
import subprocess
import sys

CHAIN = ["--init=init_all", "--per=1000"]


TRAIN = ["--init=init_all", "--fetch=loss", "--target=train"]
IMAGES = "224,224,3"


def training(batch, image):
    return TRAIN + ["--feed=x:%d,%s" % (batch, image), "--feed=labels:%d" % batch]


def embedding(vocabulary):
    ids = ["--feed=c:1024", "--feed=o:1024", "--feed=n:64"]
    return TRAIN + ids + ["--int-range=%d" % vocabulary]


# name, graph, arguments of both programs, TensorFlow's alone, unit
WORKLOADS = [
    ("W1.read", "w1_read", ["--init=init_all"], [], "us/step"),
    ("W1.feed1k", "w1_feed1k", ["--feed=x:256"], [], "us/step"),
    ("W1.chain1000", "w1_chain1000", CHAIN, ["--noopt"], "ns/node"),
    ("W1.wide10000", "w1_wide10000", ["--init=init_all", "--per=10000"], ["--noopt"], "ns/node"),
    ("W1.while100k", "w1_while100k", ["--per=100000"], [], "ns/iteration"),
    ("random chain 1", "chain1", CHAIN, ["--noopt"], "ns/node"),
    ("random chain 2", "chain2", CHAIN, ["--noopt"], "ns/node"),
    ("W2.mlp_b32", "w2_mlp_b32", training(32, "784"), [], "us/step"),
    ("W2.mlp_b256", "w2_mlp_b256", training(256, "784"), [], "us/step"),
    ("W3.lenet_b64", "w3_lenet_b64", training(64, "28,28,1"), [], "us/step"),
    ("W3.resnet20_b32", "w3_resnet20_b32", training(32, "32,32,3"), [], "us/step"),
    ("W4.resnet50_b1", "w4_resnet50", ["--feed=x:1," + IMAGES], [], "us/step"),
    ("W4.resnet50_b16", "w4_resnet50", ["--feed=x:16," + IMAGES], [], "us/step"),
    ("W4.mobilenet_v2_b1", "w4_mobilenet_v2", ["--feed=x:1," + IMAGES], [], "us/step"),
    ("W4.mobilenet_v2_b16", "w4_mobilenet_v2", ["--feed=x:16," + IMAGES], [], "us/step"),
    ("W5.lstm", "w5_lstm", TRAIN + ["--feed=x:32,64,256"], [], "us/step"),
    ("W5.encoder", "w5_encoder", TRAIN + ["--feed=x:8,128,256"], [], "us/step"),
    ("W6.sgd_v1000000", "w6_sgd_v1000000", embedding(1000000), [], "us/step"),
    ("W6.sgd_v10000", "w6_sgd_v10000", embedding(10000), [], "us/step"),
    ("W6.adagrad_v1000000", "w6_adagrad_v1000000", embedding(1000000), [], "us/step"),
    ("W8.graph100000", "w8_graph100000", ["--feed=x:4", "--per=100000"], ["--noopt"], "ns/node"),
]


def build_peer(suite, work):
    """TensorFlow's program and the graphs, unless they are there."""
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


def compare(before, weir, peer, arguments, theirs_alone, rounds):
    ours, theirs, ratios = [], [], []
    for _ in range(rounds):
        ours.append(figures(before + [weir] + arguments)["steady_run"])
        theirs.append(figures(before + [peer] + arguments + theirs_alone)["steady_run"])
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
    parser.add_argument("--only", default="", help="workloads whose names contain this")
    parser.add_argument("--before", default="", metavar="COMMAND")
    parser.add_argument("--weir", default="bazel-bin/tests/bench/graph_bench")
    parser.add_argument("--work", default=os.path.expanduser("~/.cache/weir-bench"))
    flags = parser.parse_args()
    if not os.path.exists(flags.weir):
        sys.exit("compare.py: no %s: bazel build //tests/bench:graph_bench" % flags.weir)
    peer, graphs = build_peer(flags.suite, flags.work)
    print("| workload | unit | Weir best | median | TensorFlow best | median | TensorFlow / Weir |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, graph, arguments, theirs_alone, unit in WORKLOADS:
        if flags.only not in name:
            continue
        path = os.path.join(graphs, graph + ".pb")
        if graph.startswith("chain"):
            make = ["--chain=1000", "--seed=" + graph[5:], "--write=" + path, "--init=init_all"]
            figures([flags.weir, name] + make)
        ours, theirs, ratios = compare(
            shlex.split(flags.before), flags.weir, peer,
            [name, path, "--budget=%g" % flags.budget] + arguments, theirs_alone, flags.rounds,
        )  # fmt: skip
        print(
            "| %s | %s | %s | %s | **%.2f** (%.2f to %.2f) |"
            % (name, unit, ours, theirs, statistics.median(ratios), min(ratios), max(ratios)),
            flush=True,
        )


if __name__ == "__main__":
    main()
