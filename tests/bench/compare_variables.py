#!/usr/bin/env python3
"""Times Weir and TensorFlow creating and initializing 10,000 variables of 1 KiB, alternating, and prints a table.

    bazel build //tests/bench:variables_bench && python3 tests/bench/compare_variables.py --rounds 3

Both create them with get_variable and constant initializers, then run global_variables_initializer once, each in a new
process: resource variables in both, and ref variables in both. The table has the median of the rounds and the median of
TensorFlow's value divided by Weir's value in the same round. A round takes about a minute.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time


def peer(count, use_resource):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf

    def megabytes():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    tf.disable_eager_execution()
    with tf.Graph().as_default():
        tf.get_variable_scope().set_use_resource(use_resource)
        before, start = megabytes(), time.perf_counter()
        for i in range(count):
            last = tf.get_variable("v%d" % i, [256], initializer=tf.constant_initializer(float(i)))
        init = tf.global_variables_initializer()
        built = time.perf_counter()
        with tf.Session() as session:
            session.run(init)
            initialized = time.perf_counter()
            check = float(session.run(last)[255])
    figures = {"build": built - start, "init": initialized - built, "memory": megabytes() - before, "check": check}
    for metric, value in figures.items():
        print(json.dumps({"metric": metric, "value": value}))


def figures(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["metric"]: row["value"] for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--weir", default="bazel-bin/tests/bench/variables_bench")
    parser.add_argument("--peer", choices=["resource", "reference"], help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.peer:
        return peer(flags.count, flags.peer == "resource")
    if not os.path.exists(flags.weir):
        sys.exit("compare_variables.py: %s not found: run bazel build //tests/bench:variables_bench" % flags.weir)
    count = "--count=%d" % flags.count
    kinds = ["resource", "reference"]
    ours, theirs = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
    for _ in range(flags.rounds):
        for kind in kinds:
            ours[kind].append(figures([flags.weir, count] + ["--reference"] * (kind == "reference")))
            theirs[kind].append(figures([sys.executable, os.path.abspath(__file__), count, "--peer=" + kind]))
            if theirs[kind][-1]["check"] != ours[kind][-1]["check"]:
                sys.exit("the last variable is %s in Weir and %s in TensorFlow" % (ours[kind][-1], theirs[kind][-1]))
    print("| variables | | Weir | TensorFlow | TensorFlow / Weir |\n|---|---|---|---|---|")
    for kind in kinds:
        for metric, unit in (("build", "s"), ("init", "s"), ("memory", "MiB")):
            row = [statistics.median(f[metric] for f in rows[kind]) for rows in (ours, theirs)]
            ratio = statistics.median(t[metric] / o[metric] for t, o in zip(theirs[kind], ours[kind]))
            print("| %s | %s, %s | %.4g | %.4g | **%.0f** |" % (kind, metric, unit, *row, ratio))


if __name__ == "__main__":
    main()
