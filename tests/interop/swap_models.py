#!/usr/bin/env python3
"""Clients of two models on weir serve, with batching, while new versions replace old ones.

Every answer names its version, whose values it must have. No call may fail, and the server's memory
must not grow. Skipped without TensorFlow or its Serving API (pip install --no-deps
tensorflow-serving-api).
usage: swap_models.py WEIR_SERVE [--seconds 1800] [--swap-seconds 20] [--clients 64]
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

for name in ("http_proxy", "https_proxy", "grpc_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import grpc
    import numpy as np
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
except ImportError as e:
    print("SKIPPED: %s" % e)
    sys.exit(0)

MODELS = ("first", "second")
PROCESSES = 4
BATCHING = """max_batch_size { value: 32 }
batch_timeout_micros { value: 1000 }
max_enqueued_batches { value: 100 }
"""


def write_version(directory, version):
    """y = 2 x + version, written aside and renamed."""
    v1 = tf.compat.v1
    aside = directory + ".new"
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 16], "x")
        b = v1.get_variable("b", initializer=tf.fill([16], float(version)))
        large = v1.get_variable("large", initializer=tf.zeros([1 << 20]))  # 4 MB, to see leaks
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, aside, {"x": x}, {"y": 2 * x + b + large[0]})
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    os.rename(aside, directory)


def run_client(stub, seed, end, latencies, faults):
    """Calls both models in turn until `end`, each time with other values and numbers of rows."""
    random = np.random.default_rng(seed)
    while time.time() < end:
        rows = int(random.integers(1, 6))
        x = random.integers(-1000, 1000, [rows, 16]).astype(np.float32)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = MODELS[int(random.integers(2))]
        request.inputs["x"].CopyFrom(tf.make_tensor_proto(x))
        start = time.time()
        try:
            response = stub.Predict(request, timeout=60)
        except grpc.RpcError as e:
            faults.append("%s: %s" % (e.code(), e.details()))
            continue
        latencies.append(time.time() - start)
        version = response.model_spec.version.value
        y = tf.make_ndarray(response.outputs["y"])
        if not np.array_equal(y, 2 * x + version):
            faults.append("wrong answer of version %d" % version)


def run_clients(target, threads, seconds):
    """A process of clients. Prints their results as JSON."""
    stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(target))
    latencies, faults, end = [], [], time.time() + seconds
    clients = [threading.Thread(target=run_client,
                                args=(stub, os.getpid() * 100 + i, end, latencies, faults))
               for i in range(threads)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    step = max(1, len(latencies) // 20000)
    print(json.dumps({"calls": len(latencies), "latencies": sorted(latencies)[::step],
                      "faults": faults[:20], "num_faults": len(faults)}))


def resident_mb(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS"))


class Swapper:
    """Replaces the version of each model in turn, and samples the server's memory."""

    def __init__(self, root, pid, swap_seconds):
        self.root, self.pid, self.swap_seconds = root, pid, swap_seconds
        self.version, self.memory = 1, []

    def run(self, seconds):
        end, swap = time.time() + seconds, time.time() + self.swap_seconds
        while time.time() < end:
            if time.time() >= swap:
                self.version += 1
                for model in MODELS:
                    write_version(os.path.join(self.root, model, str(self.version)), self.version)
                    old = os.path.join(self.root, model, str(self.version - 2))
                    shutil.rmtree(old, ignore_errors=True)
                swap = time.time() + self.swap_seconds
            self.memory.append(resident_mb(self.pid))
            time.sleep(0.5)


def serve(weir, root):
    for model in MODELS:
        write_version(os.path.join(root, model, "1"), 1)
    batching = os.path.join(root, "batching.txt")
    with open(batching, "w") as f:
        f.write(BATCHING)
    flags = ["--model=%s=%s" % (model, os.path.join(root, model)) for model in MODELS]
    server = subprocess.Popen(
        [weir, "serve", "--port", "0", "--enable_batching", "--batching_parameters_file", batching,
         *flags], stdout=subprocess.PIPE, text=True)
    return server, server.stdout.readline().split()[-1].split("//")[1]


def wait_until_served(target):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(target))
    for model in MODELS:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = model
        request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.zeros([1, 16], np.float32)))
        for attempt in range(600):
            try:
                stub.Predict(request, timeout=10)
                break
            except grpc.RpcError:
                if attempt == 599:
                    raise
                time.sleep(0.1)


def soak(args, root):
    server, target = serve(args.weir, root)
    try:
        wait_until_served(target)
        command = [sys.executable, os.path.realpath(__file__), args.weir, "--target", target,
                   "--clients", str(args.clients // PROCESSES), "--seconds", str(args.seconds)]
        clients = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                   for _ in range(PROCESSES)]
        swapper = Swapper(root, server.pid, args.swap_seconds)
        swapper.run(args.seconds)
        results = [json.loads(client.communicate()[0]) for client in clients]
    finally:
        server.send_signal(signal.SIGTERM)
        status = server.wait(timeout=60)
    return results, swapper, status


def report(results, swapper, status):
    """Prints what was seen. Returns whether it is as it must be."""
    latencies = sorted(x for result in results for x in result["latencies"])
    num_faults = sum(result["num_faults"] for result in results)
    for fault in sorted({fault for result in results for fault in result["faults"]}):
        print("BAD", fault)
    quarter = max(1, len(swapper.memory) // 4)
    early = statistics.median(swapper.memory[quarter:2 * quarter] or swapper.memory)
    late = statistics.median(swapper.memory[-quarter:])
    print("%d calls, %d faults, version %d, p50 %.1f ms, p99 %.1f ms, memory %.0f MB, then %.0f MB"
          % (sum(result["calls"] for result in results), num_faults, swapper.version,
             1e3 * latencies[len(latencies) // 2], 1e3 * latencies[len(latencies) * 99 // 100],
             early, late))
    is_flat = late < 1.1 * early + 32
    if not is_flat:
        print("BAD the server's memory grows")
    if status != 0:
        print("BAD the server ended with status", status)
    return num_faults == 0 and is_flat and status == 0 and swapper.version > 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("weir", help="the program weir-serve")
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--swap-seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--target", help="be one of the processes of clients of this server")
    args = parser.parse_args()
    if args.target:
        return run_clients(args.target, args.clients, args.seconds)
    with tempfile.TemporaryDirectory() as root:
        sys.exit(0 if report(*soak(args, root)) else 1)


if __name__ == "__main__":
    main()
