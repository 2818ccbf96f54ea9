#!/usr/bin/env python3
"""Steps per second of a small conv net that trains through gRPC, on `weir serve` and on
TensorFlow's own server, with 1 KB fed and with 10 MB more.

usage: compare_servers.py [--rounds N] [--seconds S] [--weir bazel-bin/tools/weir]

    bazel build //tools:weir && python3 tests/bench/compare_servers.py

Needs a Python with TensorFlow. Both servers run the whole time and are measured alternately.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
for variable in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
    os.environ.pop(variable, None)

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
LARGE = 10 * (1 << 20) // 4


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def network(extra_elements):
    """Returns the training op, the loss, and their feeds."""
    image = v1.placeholder(tf.float32, [4, 8, 8, 1])
    label = v1.placeholder(tf.int32, [4])
    extra = v1.placeholder(tf.float32, [extra_elements])

    def weights(name, shape):
        return v1.get_variable(name, shape, initializer=v1.glorot_uniform_initializer(seed=2))

    x = tf.nn.relu(tf.nn.conv2d(image, weights("conv1", [3, 3, 1, 16]), 1, "SAME"))
    x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.nn.relu(tf.nn.conv2d(x, weights("conv2", [3, 3, 16, 32]), 1, "SAME"))
    x = tf.reshape(tf.nn.max_pool2d(x, 2, 2, "SAME"), [4, 128])
    x = tf.nn.relu(tf.matmul(x, weights("hidden", [128, 64])))
    logits = tf.matmul(x, weights("logits", [64, 10]))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
    loss = tf.reduce_mean(loss) + 1e-9 * tf.reduce_sum(extra)
    train = v1.train.AdamOptimizer(1e-3).minimize(loss)
    ones = lambda t: np.ones(t.shape.as_list(), np.float32)  # noqa: E731
    return [loss, train], {image: ones(image), label: np.arange(4), extra: ones(extra)}


def steps_per_second(target, extra_elements, seconds):
    with tf.Graph().as_default() as graph:
        fetches, feeds = network(extra_elements)
        init = v1.global_variables_initializer()
    with v1.Session(target, graph=graph) as session:
        session.run(init)
        for _ in range(8):
            session.run(fetches, feeds)
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            session.run(fetches, feeds)
            steps += 1
        return steps / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="time per measurement")
    parser.add_argument("--weir", default="bazel-bin/tools/weir")
    parser.add_argument("--serve-tensorflow", type=int, metavar="PORT", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    v1.disable_eager_execution()
    if flags.serve_tensorflow:
        jobs = {"local": ["127.0.0.1:%d" % flags.serve_tensorflow]}
        v1.train.Server(jobs, job_name="local", task_index=0).join()
    ports = free_port(), free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    servers = [
        subprocess.Popen([flags.weir, "serve", "--port", str(ports[0])], **quiet),
        subprocess.Popen([sys.executable, __file__, "--serve-tensorflow", str(ports[1])], **quiet),
    ]
    try:
        print("| fed | Weir | TensorFlow | Weir / TensorFlow |\n|---|---|---|---|")
        for _ in range(flags.rounds):
            for name, extra in (("1 KB", 1), ("10 MB", LARGE)):
                ours, theirs = (
                    steps_per_second("grpc://127.0.0.1:%d" % port, extra, flags.seconds)
                    for port in ports
                )
                row = (name, ours, theirs, ours / theirs)
                print("| %s | %.1f | %.1f | **%.2f** |" % row, flush=True)
    finally:
        for server in servers:
            server.kill()


if __name__ == "__main__":
    main()
