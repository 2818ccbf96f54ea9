#!/usr/bin/env python3
"""W11 of the suite for TensorFlow's C API and for ONNX Runtime; does nothing for other workloads.

usage: peer_callers.py W11 --suite SUITE [--work DIR] [--programs BAZEL-BIN]

run_peers.py of the suite runs it with `--extra callers='.../peer_callers.py'`. Prints JSON lines.
Skips a runtime that this Python does not have.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = float(os.environ.get("BENCH_BUDGET_S", "2"))
CALLERS = (1, 4, 16)


def tensorflow(flags):
    library = os.path.dirname(importlib.util.find_spec("tensorflow").origin)
    program = os.path.join(flags.work, "tf_callers")
    source = os.path.join(HERE, "tf_callers.cc")
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        subprocess.run(
            ["g++", "-O2", "-std=c++17", "-pthread", source, "-I" + os.path.join(library, "include"),
             "-L" + library, "-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2",
             "-Wl,-rpath," + library, "-o", program],
            check=True,
        )  # fmt: skip
    mlp = os.path.join(flags.work, "w11_mlp.pb")
    bench = os.path.join(flags.programs, "tests", "bench", "callers_bench")
    subprocess.run([bench, "--only=W11.mlp", "--write=" + mlp], check=True)
    image = os.path.join(flags.work, "graphs", "w4_mobilenet_v2.pb")
    for name, graph, dims, more in (
        ("W11.mlp_b1", mlp, "1,784", ["--init=init"]),
        ("W11.mobilenet_v2_b1", image, "1,224,224,3", []),
    ):
        command = [program, name, graph, dims, "--budget=%g" % BUDGET] + more
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def call_from(threads, seconds, call):
    """Measures like callers.h; ONNX Runtime releases Python's lock while it computes."""
    latencies, ends = [], time.perf_counter() + seconds

    def loop(thread):
        own = []
        while time.perf_counter() < ends:
            start = time.perf_counter()
            call(thread)
            own.append(time.perf_counter() - start)
        latencies.extend(own)

    start = time.perf_counter()
    callers = [threading.Thread(target=loop, args=(t,)) for t in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return sorted(latencies), time.perf_counter() - start


def onnxruntime(flags):
    sys.path.insert(0, os.path.join(flags.suite, "peers"))
    import nets
    import numpy as np
    import ort_w4
    from onnx import helper
    from ort_common import f32, init, model, session

    sizes = (784, 512, 512, 10)
    random = np.random.default_rng(1)
    nodes, values = [], []
    for i in range(3):
        weight = random.standard_normal((sizes[i], sizes[i + 1]), dtype=np.float32) * 0.05
        values += [init("w%d" % i, weight), init("b%d" % i, np.zeros(sizes[i + 1], np.float32))]
        last = i == 2
        nodes.append(helper.make_node("Gemm", ["x%d" % i, "w%d" % i, "b%d" % i],
                                      ["x3" if last else "p%d" % i]))  # fmt: skip
        if not last:
            nodes.append(helper.make_node("Relu", ["p%d" % i], ["x%d" % (i + 1)]))
    mlp = model(nodes, [f32("x0", [1, 784])], [f32("x3", [1, 10])], values)
    for name, graph, feed, dims in (
        ("W11.mlp_b1", mlp, "x0", (1, 784)),
        ("W11.mobilenet_v2_b1", ort_w4.build(nets.mobilenet_v2(), 1), "t0", (1, 3, 224, 224)),
    ):
        runtime = session(graph)
        for threads in CALLERS:
            inputs = [np.full(dims, (t + 1) / 16, np.float32) for t in range(threads)]
            call = lambda t: runtime.run(None, {feed: inputs[t]})  # noqa: B023, E731
            call_from(threads, BUDGET / 4, call)
            latencies, seconds = call_from(threads, BUDGET, call)
            row = {"workload": "%s_t%d" % (name, threads), "peer": "ort"}
            at = lambda q: latencies[int(q * (len(latencies) - 1))] * 1e6  # noqa: B023, E731
            for metric, value, unit in (("calls_per_s", len(latencies) / seconds, "steps/s"),
                                        ("p50", at(0.5), "us/run"), ("p99", at(0.99), "us/run")):  # fmt: skip
                print(json.dumps(dict(row, metric=metric, value=value, unit=unit)), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", metavar="W11")
    parser.add_argument("--suite", required=True)
    parser.add_argument("--work", default=os.path.expanduser("~/.cache/weir-bench"))
    parser.add_argument("--programs", default=os.path.join(HERE, "..", "..", "bazel-bin"))
    flags = parser.parse_args()
    if flags.workload != "W11":
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    sys.stdout.flush()
    if importlib.util.find_spec("tensorflow"):
        tensorflow(flags)
    if importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        onnxruntime(flags)


if __name__ == "__main__":
    main()
