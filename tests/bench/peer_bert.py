#!/usr/bin/env python3
"""W12 of the suite for TensorFlow's session and for ONNX Runtime; does nothing for other workloads.

usage: peer_bert.py W12 [--graphs DIR]

run_peers.py of the suite runs it with `--extra bert='.../peer_bert.py'`. Prints JSON lines. Writes
the graphs if they do not exist (make_bert.py). Skips a runtime that this Python does not have.
Exits with an error if results differ from TensorFlow's.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time

import make_bert
import numpy as np

BUDGET = float(os.environ.get("BENCH_BUDGET_S", "2"))
GRAPHS = os.path.expanduser("~/.cache/weir-bench/graphs")


def seconds_per_call(call):
    """Times `call` by the suite's rules, best repeat first."""
    start, calls = time.perf_counter(), 0
    while calls < 3 or time.perf_counter() - start < 0.3:
        call()
        calls += 1
    each = max(1, int(0.02 * calls / (time.perf_counter() - start)))
    seconds, end = [], time.perf_counter() + BUDGET
    while len(seconds) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(each):
            call()
        seconds.append((time.perf_counter() - start) / each)
    return sorted(seconds)


def emit(workload, peer, seconds):
    rate = [1 / s for s in seconds]
    row = {"workload": workload, "peer": peer, "metric": "steps_per_s", "unit": "steps/s"}
    row.update(value=rate[0], median=rate[len(rate) // 2], repeats=len(rate))
    print(json.dumps(row), flush=True)


def measure(name, peer, folder, call):
    """`call` returns what make_bert.check compares."""
    make_bert.check(name.replace("W12.", "w12_"), call(), folder)
    emit(name, peer, seconds_per_call(call))


def tensorflow(folder):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    config = tf.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=2)

    def session(name):
        graph = tf.GraphDef()
        with open(os.path.join(folder, name), "rb") as file:
            graph.ParseFromString(file.read())
        tf.import_graph_def(graph, name="")
        return tf.Session(config=config)

    with tf.Graph().as_default(), session("w12_bert.pb") as s:
        run = s.make_callable("pooled:0", [name + ":0" for name in make_bert.RANGES])
        for size in make_bert.SIZES:
            fed = list(make_bert.feeds(*size).values())
            measure("W12.bert_%dx%d" % size, "tf", folder, lambda: run(*fed))  # noqa: B023
    with tf.Graph().as_default(), session("w12_bert_train.pb") as s:
        s.run("init_all")
        size = make_bert.TRAINING_SIZE
        feeds = make_bert.training_feeds(*size)
        run = s.make_callable(["loss:0", "train"], [name + ":0" for name in feeds])
        emit("W12.bert_train_%dx%d" % size, "tf", seconds_per_call(lambda: run(*feeds.values())))


def onnxruntime(folder):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    s = ort.InferenceSession(os.path.join(folder, "w12_bert.onnx"), options)
    for size in make_bert.SIZES:
        fed = {name + ":0": value for name, value in make_bert.feeds(*size).items()}
        run = lambda: s.run(None, fed)[0]  # noqa: B023, E731
        measure("W12.bert_%dx%d" % size, "ort", folder, run)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", metavar="W12")
    parser.add_argument("--graphs", default=GRAPHS)
    flags = parser.parse_args()
    if flags.workload != "W12":
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # required by the suite's rules
    has = importlib.util.find_spec
    if has("tensorflow"):
        if not os.path.exists(os.path.join(flags.graphs, "w12_bert.pb")):
            subprocess.run([sys.executable, make_bert.__file__, flags.graphs], check=True)
        tensorflow(flags.graphs)
    if has("onnxruntime") and os.path.exists(os.path.join(flags.graphs, "w12_bert.onnx")):
        onnxruntime(flags.graphs)


if __name__ == "__main__":
    main()
