#!/usr/bin/env python3
"""Attacks weir serve over the network at random, while honest clients use it.

    python3 hostile_run.py WEIR_SERVE [--seconds 60] [--seed 1]

Attackers send mutated requests of every method of the master service and of TensorFlow Serving's services, over REST too,
compressed ones, small requests that take much memory, and steps that do; they send halves of requests, do not read
responses, and open connections and leave them. They attack three servers in turn, each with sessions and a model: one that may use 1.5 GB of memory (RLIMIT_AS), and two with 256 and 1,024 file descriptors. Each server must survive,
then serve as before, and return the memory. The program prints what it sent, the latencies of the honest clients before
and during the attack, and the memory before and after it. Skipped without TensorFlow.
"""

import argparse
import collections
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import hostile_clients_test as clients
import raw_http2
from hostile_clients_test import SERVICE, field, grpc, tf

v1 = tf.compat.v1
MEMORY_MB = 1500
KEPT_MB = 256  # more than this after the attack would be memory that the server keeps
PATIENCE = 60  # seconds for what must happen after the attack; it takes ten on an idle machine
ATTACKERS = 6
METHODS = ("CreateSession", "ExtendSession", "PartialRunSetup", "RunStep", "CloseSession", "ListDevices",
           "MakeCallable", "RunCallable", "ReleaseCallable")
SERVING = "/tensorflow.serving."


def varint(number):
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def graph_bytes(build):
    with tf.Graph().as_default() as graph:
        build()
        return field(1, graph.as_graph_def().SerializeToString())


def train():
    x = v1.placeholder(tf.float32, [None, 8], name="x")
    w = v1.get_variable("w", [8, 4])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)), name="loss")
    v1.train.AdamOptimizer(0.1).minimize(loss)
    v1.global_variables_initializer()


def strings():
    text = tf.fill([1 << 20], "a string that is too long for the object itself")
    tf.strings.join([text, text, text], name="large")


GRAPHS = {
    "train": graph_bytes(train),
    "large": graph_bytes(lambda: tf.ones([600 << 20], name="large")),
    "strings": graph_bytes(strings),
    "numbers": graph_bytes(lambda: tf.ones([30 << 20], name="large")),
    "waits": graph_bytes(lambda: tf.identity(tf.queue.FIFOQueue(1, [tf.float32]).dequeue(), name="large")),
}
SPEC = field(1, field(1, b"m"))
ROWS = field(1, b"x") + field(2, b"\x08\1" + field(2, field(2, b"\x08\2") + field(2, b"\x08\4")) + field(4, b"\0" * 32))
INPUT = field(2, field(1, field(1, field(1, field(1, field(1, b"x") + field(2, field(2, field(1, b"\0" * 16))))))))
SERVING_REQUESTS = {
    "PredictionService/Predict": SPEC + field(2, ROWS),
    "PredictionService/Classify": SPEC + INPUT,
    "PredictionService/Regress": SPEC + INPUT,
    "PredictionService/MultiInference": field(1, SPEC + field(2, b"tensorflow/serving/regress")) + INPUT,
    "PredictionService/GetModelMetadata": SPEC + field(2, b"signature_def"),
    "ModelService/GetModelStatus": SPEC,
}
# One number that stands for 256 MB of them.
REPEATED = SPEC + field(2, field(1, b"x") + field(2, b"\x08\1" + field(2, field(2, b"\x08\x80\x80\x80\x08") + field(2, b"\x08\4")) +
                                                  field(5, b"\0\0\x80?")))
REST_REQUESTS = (
    ("POST", "/v1/models/m:predict", b'{"instances": [[1.0, 2.0, 3.0, 4.0], [-1e3, 0, 0.5, 7]]}'),
    ("POST", "/v1/models/m/versions/1:predict", b'{"signature_name": "serving_default", "inputs": {"x": [[1, 2, 3, 4]]}}'),
    ("POST", "/v1/models/m:classify", b'{"examples": [{"x": 1.0, "s": {"b64": "AAAA"}}], "context": {"y": [1, 2]}}'),
    ("GET", "/v1/models/m/metadata", b""), ("GET", "/v1/models/m", b""), ("GET", "/", b""), ("GET", "/readyz", b""),
)
BOMBS = [request for size in (1 << 15, 1 << 20, 4 << 20) for _, request in clients.bombs(size)]


class Attacker:
    """One hostile client, which does random things until the time is over."""

    def __init__(self, server, seed, counts, memory):
        self.server, self.random, self.counts = server, random.Random(seed), counts
        self.until = 0
        self.attacks = [self.mutate, self.mutate, self.predict, self.rest, self.compress, self.half_send, self.send_garbage,
                        self.read_slowly, self.leave]
        if memory:
            self.attacks += [self.bomb, self.take_memory]

    def run(self, until):
        self.until = until
        while time.time() < until:
            attack = self.random.choice(self.attacks)
            try:
                outcome = attack()
            except (OSError, ValueError) as e:  # the server closed the connection
                outcome = type(e).__name__
            self.counts[attack.__name__, outcome or "done"] += 1

    def call(self, method, request, compression=None, seconds=10):
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1),
                   ("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel("127.0.0.1:%d" % self.server.port, options, compression=compression) as channel:
            call = channel.unary_unary(method, request_serializer=lambda x: x, response_deserializer=lambda x: x)
            try:
                return call(request, timeout=min(seconds, max(0, self.until - time.time()) + 1))
            except grpc.RpcError as e:
                return e.code().name

    def open(self, name):
        """Returns the handle of a session as a field of a request; None if it was refused."""
        response = self.call(SERVICE + "CreateSession", GRAPHS[name] + field(2, b"\x78\1"))
        return response[:2 + response[1]] if isinstance(response, bytes) else None

    def requests(self):
        handle = self.open("train") or field(1, b"0" * 32)
        callable_options = field(2, field(1, b"x:0") + field(2, b"loss:0"))
        feed = field(1, b"x:0") + field(2, b"\x08\1" + field(2, field(2, b"\x08\1") + field(2, b"\x08\x08")) + field(5, b"\0" * 32))
        return {
            "CreateSession": GRAPHS["train"],
            "ExtendSession": handle + field(2, field(1, field(1, b"n") + field(2, b"NoOp"))),
            "PartialRunSetup": handle + field(2, b"x:0") + field(3, b"loss:0"),
            "RunStep": handle + field(2, feed) + field(3, b"loss:0") + field(4, b"init") + field(5, b"\x08\3"),
            "CloseSession": handle, "ListDevices": handle,
            "MakeCallable": handle + callable_options,
            "RunCallable": handle + b"\x10\0" + field(3, feed),
            "ReleaseCallable": handle + b"\x10\0",
        }

    def mutated(self, data):
        data = bytearray(data)
        for _ in range(self.random.choice((1, 1, 2, 5, 20))):
            at = self.random.randrange(len(data) + 1)
            kind = self.random.randrange(5)
            if kind == 0:
                data[at:at + 1] = bytes([self.random.randrange(256)])
            elif kind == 1:
                del data[at:at + self.random.randrange(1, 50)]
            elif kind == 2:
                other = self.random.randrange(len(data) + 1)
                data[at:at] = data[other:other + self.random.randrange(200)]
            elif kind == 3:
                data[at:at + 1] = varint(self.random.choice((0, 127, 2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1)))
            else:
                data[at:at] = bytes(self.random.randrange(256) for _ in range(self.random.randrange(1, 30)))
        return bytes(data)

    def mutate(self):
        requests = self.requests()
        for method in self.random.sample(METHODS, 4):
            response = self.call(SERVICE + method, self.mutated(requests[method]), seconds=5)
            self.counts["request", response if isinstance(response, str) else "OK"] += 1
        path = self.random.choice(("/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", SERVICE + "Nothing", "/"))
        self.call(path, self.mutated(b"x" * 10), seconds=1)

    def predict(self):
        for method, request in self.random.sample(sorted(SERVING_REQUESTS.items()), 3):
            response = self.call(SERVING + method, self.mutated(request), seconds=5)
            self.counts["serving", response if isinstance(response, str) else "OK"] += 1
        if self.random.random() < 0.1:
            response = self.call(SERVING + "PredictionService/Predict", REPEATED, seconds=5)
            return response if isinstance(response, str) else "OK"

    def rest(self):
        """Sends a mutated request, sometimes a part of it, and sometimes does not read the response."""
        method, path, body = self.random.choice(REST_REQUESTS)
        if self.random.random() < 0.05:
            body = b'{"instances": [' + b"[]," * (1 << 20) + b"[]]}"
        elif body:
            body = self.mutated(body)
        size = len(body) + self.random.choice((0, 0, 0, 1, 1 << 20))
        request = b"%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (method.encode(), path.encode(), size) + body
        if self.random.random() < 0.2:
            request = self.mutated(request)
        with socket.create_connection(("127.0.0.1", self.server.rest_port), timeout=3) as connection:
            connection.sendall(request)
            if self.random.random() < 0.2:
                return "not read"
            connection.settimeout(0.3 if size > len(body) else 3)
            line = connection.recv(4096).split(b"\r\n")[0]
            return line[9:12].decode(errors="replace") if line.startswith(b"HTTP/1.1 ") else "closed"

    def compress(self):
        compression = self.random.choice((grpc.Compression.Gzip, grpc.Compression.Deflate))
        return self.call(SERVICE + "CreateSession", b"\x0a\0" * (1 << 20), compression)

    def bomb(self):
        response = self.call(SERVICE + "CreateSession", self.random.choice(BOMBS), seconds=30)
        return response if isinstance(response, str) else "OK"

    def take_memory(self):
        handle = self.open(self.random.choice(("large", "strings", "numbers")))
        if handle is None:
            return "refused"
        request = handle + field(3, b"large:0") + field(5, self.random.choice((b"", b"\x08\3", b"\x18\1")))
        response = self.call(SERVICE + "RunStep", request, seconds=self.random.choice((1, 30)))
        if self.random.random() < 0.8:
            self.call(SERVICE + "CloseSession", handle)
        return response if isinstance(response, str) else "OK"

    def half_send(self):
        with raw_http2.Connection(self.server.port) as half:
            for _ in range(self.random.randrange(1, 20)):
                size = self.random.choice((10, 1000, 60000))
                half.call(SERVICE + self.random.choice(METHODS), raw_http2.message(b"x" * size, self.random.choice((size + 1, 1 << 20, 1 << 31))))
            half.answer(self.random.random() * 3)

    def send_garbage(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=5) as connection:
            start = self.random.choice((b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"))
            connection.sendall(start)
            for _ in range(self.random.randrange(10)):
                frame = raw_http2.frame(self.random.randrange(12), self.random.randrange(256), self.random.randrange(6),
                                        bytes(self.random.randrange(256) for _ in range(self.random.randrange(100))))
                connection.sendall(frame)
            if self.random.random() < 0.3:  # resets it
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def read_slowly(self):
        handle = self.open("numbers")
        if handle is None:
            return "refused"
        with raw_http2.Connection(self.server.port, self.random.choice((0, 100, 65535))) as slow:
            for _ in range(self.random.randrange(1, 4)):
                slow.call(SERVICE + "RunStep", raw_http2.message(handle + field(3, b"large:0")), end=True)
            slow.answer(self.random.random() * 3)

    def leave(self):
        """Leaves a step that waits, and its session."""
        handle = self.open("waits")
        if handle is None:
            return "refused"
        with raw_http2.Connection(self.server.port) as gone:
            gone.call(SERVICE + "RunStep", raw_http2.message(handle + field(3, b"large:0")), end=True)


def storm(server, until, counts):
    """Opens as many connections as possible, in bursts, and closes them."""
    while time.time() < until:
        connections = []
        try:
            for _ in range(1500):
                connections.append(socket.create_connection(("127.0.0.1", server.port), timeout=0.5))
                counts["connection", "opened"] += 1
        except OSError:
            counts["connection", "refused"] += 1
        time.sleep(0.5)
        for connection in connections:
            connection.close()


def be_honest(target):
    """Runs small steps until the process is killed; prints the time of each, or the error."""
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [])
        y = x * 2.0
        with v1.Session(target) as session:
            session.run(y, {x: 1.0})
            while True:
                begin = time.time()
                try:
                    wrong = session.run(y, {x: 21.0}) != 42.0
                    print("wrong" if wrong else "%.6f" % (time.time() - begin), flush=True)
                except tf.errors.OpError as e:
                    print(type(e).__name__, flush=True)
                time.sleep(0.01)


class Honest:
    """An honest client in a process of its own."""

    def __init__(self, server):
        self.process = subprocess.Popen([sys.executable, __file__, "--honest", server.target], text=True,
                                        stdout=subprocess.PIPE)
        self.times, self.errors = [], collections.Counter()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line[0].isdigit():
                self.times.append(float(line))
            else:
                self.errors[line.strip()] += 1

    def take(self):
        """Returns the 99th percentile of the latencies in ms since the last call, and their number."""
        times, self.times = sorted(self.times), []
        return (1000 * times[len(times) * 99 // 100] if times else float("inf")), len(times)

    def stop(self):
        self.process.kill()
        self.process.wait()


def resident_mb(server):
    with open("/proc/%d/status" % server.process.pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) // 1024


def wait_for(condition):
    """Returns whether it holds soon."""
    until = time.time() + PATIENCE
    while not condition():
        if time.time() > until:
            return False
        time.sleep(0.5)
    return True


def write_model(directory):
    """y = 2 x, for rows of four numbers."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        v1.saved_model.simple_save(session, directory, {"x": x}, {"y": 2 * x})


class Run:
    def __init__(self, weir, seed, root):
        self.weir, self.seed, self.root, self.faults = weir, seed, root, 0
        write_model(os.path.join(root, "1"))

    def expect(self, holds, text):
        print("ok  " if holds else "BAD ", text, flush=True)
        self.faults += not holds

    def attack(self, name, seconds, storms=False, **limits):
        flags = ["--max-calls", "32", "--max-sessions", "200", "--transfer-seconds", "2", "--orphan-minutes", "0.05",
                 "--keepalive-seconds", "5", "--max-request-mb", "64"]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            rest_port = probe.getsockname()[1]
        flags += ["--model", "m=" + self.root, "--sessions", "--allow-path", self.root, "--rest_api_port", str(rest_port)]
        counts = collections.Counter()
        with clients.Server(self.weir, *flags, stderr=subprocess.DEVNULL, **limits) as server:
            server.rest_port = rest_port
            honest = Honest(server)
            while not honest.times and server.alive():
                time.sleep(0.1)
            honest.take()
            time.sleep(3)
            before, _ = honest.take()
            memory = resident_mb(server)
            until = time.time() + seconds
            attackers = [Attacker(server, self.seed * 100 + i, counts, not storms) for i in range(ATTACKERS)]
            threads = [threading.Thread(target=attacker.run, args=(until,)) for attacker in attackers]
            if storms:
                threads += [threading.Thread(target=storm, args=(server, until, counts)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            during, number = honest.take()
            alive = server.alive()
            self.expect(alive, "%s: the process lives%s" % (name, "" if alive else ": %d" % server.process.returncode))
            if alive:
                returned = wait_for(lambda: resident_mb(server) < memory + KEPT_MB)
                honest.take()
                served = wait_for(lambda: len(honest.times) > 100)
                after, _ = honest.take()
                peak, left = server.peak_mb(), resident_mb(server)
                print("     p99 of honest steps: %.1f ms, %.1f during the attack, %.1f after it; %d steps, errors %s" %
                      (before, during, after, number, dict(honest.errors)))
                print("     memory: %d MB, at most %d, %d after it" % (memory, peak, left))
                self.expect(served, "%s: honest clients are served afterwards" % name)
                self.expect(returned, "%s: memory returns" % name)
                self.expect("wrong" not in honest.errors, "%s: no result is wrong" % name)
            honest.stop()
        for key, number in sorted(counts.items()):
            print("     %-14s %-24s %d" % (*key, number))
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print("seed %d" % args.seed)
    with tempfile.TemporaryDirectory() as root:
        run = Run(args.weir, args.seed, root)
        run.attack("1.5 GB of memory", 0.6 * args.seconds, memory=MEMORY_MB << 20)
        for descriptors in (256, 1024):
            run.attack("%d descriptors" % descriptors, 0.2 * args.seconds, storms=True, descriptors=descriptors)
    return 1 if run.faults else 0


if __name__ == "__main__":
    if sys.argv[1] == "--honest":
        be_honest(sys.argv[2])
    else:
        sys.exit(main())
