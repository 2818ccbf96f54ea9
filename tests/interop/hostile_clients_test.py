#!/usr/bin/env python3
"""Attacks of clients on weir serve: accessing files, crashing it, exhausting its memory, blocking it.

Skipped without TensorFlow.
usage: hostile_clients_test.py WEIR_SERVE
"""

import collections
import ctypes
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

for name in ("http_proxy", "https_proxy", "grpc_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import grpc
    import tensorflow as tf
except ImportError:
    print("SKIPPED: Python has no TensorFlow")
    sys.exit(0)

import raw_http2

v1 = tf.compat.v1
raw = tf.raw_ops
SERVICE = "/tensorflow.MasterService/"


def field(number, contents):
    """Returns a field of bytes of a protocol buffer."""
    size, length = len(contents), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + contents


def bombs(size):
    """Yields the names and contents of requests of CreateSession with parts of a few bytes each."""
    def many(part):
        return part * (size // len(part))

    def node(name, fields=b""):
        return field(1, field(1, name) + field(2, b"NoOp") + fields)

    def attr(name, value):
        return field(5, field(1, name) + field(2, value))
    yield "empty nodes", field(1, many(field(1, b"")))
    yield "small nodes", field(1, b"".join(node(b"n%d" % i) for i in range(size // 18)))
    yield "empty inputs", field(1, node(b"n", many(field(3, b""))))
    yield "small attributes", field(1, node(b"n", b"".join(attr(b"%d" % i, b"\x18\1") for i in range(size // 14))))
    for name, number in (("strings", 2), ("shapes", 7), ("tensors", 8), ("functions", 9)):
        yield "empty " + name, field(1, node(b"n", attr(b"a", field(1, many(field(number, b""))))))
    yield "a tensor of empty strings", field(1, node(b"n", attr(b"a", field(8, many(field(8, b""))))))
    yield "small numbers", field(1, node(b"n", attr(b"a", field(8, field(10, many(b"\1"))))))
    yield "dimensions", field(1, node(b"n", attr(b"a", field(7, many(field(2, b""))))))
    yield "unknown fields", field(1, many(b"\xfa\7\0"))
    yield "empty library functions", field(1, field(2, many(field(1, b""))))
    yield "configuration", field(2, many(field(12, b"")))
    for depth in (40, 5000):
        nested = b""
        for _ in range(depth):
            nested = field(2, nested)
        yield "%d levels" % depth, field(1, many(field(1, field(7, nested))))


class Server:
    """A weir-serve process that runs for the duration of a with statement."""

    def __init__(self, weir, *flags, descriptors=None, memory=None, stderr=None):
        def limit():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
            if memory:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        self.process = subprocess.Popen([weir, "serve", "--port", "0", *flags], stdout=subprocess.PIPE, text=True,
                                        stderr=stderr, preexec_fn=limit)
        self.target = self.process.stdout.readline().split()[-1]
        self.port = int(self.target.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def alive(self):
        return self.process.poll() is None

    def peak_mb(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) // 1024


class Checks:
    """What its methods test_* expect of the server `weir`; `root` is a folder for its files."""

    def __init__(self, weir, root):
        self.weir, self.root, self.faults = weir, root, 0

    def expect(self, holds, text):
        print("ok  " if holds else "BAD ", text.replace("\n", " "), flush=True)
        self.faults += not holds


def test_all(checks):
    """Runs the tests of a class on the server that the command line names. Returns the exit status."""
    with tempfile.TemporaryDirectory() as root:
        test = checks(sys.argv[1], root)
        for name in sorted(dir(test)):
            if name.startswith("test_"):
                getattr(test, name)()
        return 1 if test.faults else 0


class Test(Checks):
    def __init__(self, weir, root):
        super().__init__(weir, root)
        self.inside = os.path.join(root, "inside")
        os.mkdir(self.inside)
        with open(os.path.join(self.inside, "a.txt"), "w") as f:
            f.write("mine")

    @staticmethod
    def run(server, build, seconds=20):
        """Returns the value of the fetch, or the name of the error."""
        with tf.Graph().as_default(), v1.Session(server.target) as session:
            try:
                return session.run(build(), options=v1.RunOptions(timeout_in_ms=1000 * seconds))
            except tf.errors.OpError as e:
                return type(e).__name__

    def test_prints_go_where_files_may(self):
        for flags in ([], ["--allow-path", self.inside]):
            with Server(self.weir, *flags) as server:
                path = os.path.join(self.root, "escaped")
                got = self.run(server, lambda: raw.PrintV2(input="x", output_stream="file://" + path))
                self.expect(got == "PermissionDeniedError" and not os.path.exists(path), "PrintV2 outside: %s" % got)
        with Server(self.weir, "--allow-path", self.inside) as server:
            path = os.path.join(self.inside, "printed")
            for _ in range(2):
                self.run(server, lambda: raw.PrintV2(input="x", output_stream="file://" + path))
            with open(path) as f:
                self.expect(f.read() == "x\nx\n", "PrintV2 inside appends")

    def test_paths_of_any_length(self):
        with Server(self.weir, "--allow-path", self.inside) as server:
            for size in (3000, 3900, 4090, 5000, 300000):
                for top in ("", self.inside):
                    path = top + "/a" * (size // 2)
                    got = self.run(server, lambda: raw.ReadFile(filename=path))
                    self.expect(str(got).endswith("Error") and server.alive(), "reads %d characters: %s" % (size, got))
                    if not top:
                        got = self.run(server, lambda: raw.WriteFile(filename=path, contents="x"))
                        # No file system allows the longer paths, regardless of permissions.
                        refusal = "PermissionDeniedError" if size < 4096 else "InvalidArgumentError"
                        self.expect(got == refusal, "writes %d characters: %s" % (size, got))
                    got = self.run(server, lambda: raw.MatchingFiles(pattern=path.replace("a", "*")))
                    self.expect(server.alive(), "matches %d characters" % size)

    def test_pipes_do_not_hold_calls(self):
        os.mkfifo(os.path.join(self.inside, "pipe"))
        with Server(self.weir, "--allow-path", self.inside) as server:
            begin = time.time()
            got = self.run(server, lambda: raw.ReadFile(filename=os.path.join(self.inside, "pipe")), 5)
            self.expect(str(got).endswith("Error") and time.time() - begin < 4, "a pipe is read: %s" % got)

    def test_finds_what_is_allowed(self):
        with Server(self.weir, "--allow-path", self.inside) as server:
            a = os.path.join(self.inside, "a.txt").encode()
            got = self.run(server, lambda: raw.MatchingFiles(pattern=self.inside + "/*.txt"))
            self.expect(list(got) == [a], "MatchingFiles: %s" % got)
            path = os.path.join(self.inside, "v1")
            got = self.run(server, lambda: raw.SaveSlices(filename=path, tensor_names=["w"], shapes_and_slices=[""],
                                                          data=[tf.constant([1.0, 2.0])]))
            got = self.run(server, lambda: raw.RestoreSlice(file_pattern=path, tensor_name="w", shape_and_slice="",
                                                            dt=tf.float32))
            self.expect(list(got) == [1.0, 2.0], "V1 checkpoint: %s" % got)

    def test_devices_are_refused(self):
        with Server(self.weir, "--allow-path", "/") as server:
            for path in ("/dev/zero", "/proc/self/environ", "/proc/self/root/etc/passwd/../../proc/version"):
                got = self.run(server, lambda: raw.ReadFile(filename=path), 5)
                self.expect(got == "PermissionDeniedError", "%s: %s" % (path, got))

    def test_replaced_links(self):
        """A directory is replaced by a link to elsewhere, and back, while clients read a file in it."""
        here, there, secret = (os.path.join(self.inside, name) for name in ("here", "there", "../secret"))
        os.mkdir(here)
        os.mkdir(secret)
        for directory, text in ((here, "mine"), (secret, "theirs")):
            with open(os.path.join(directory, "file"), "w") as f:
                f.write(text)
        os.symlink(secret, there)
        libc = ctypes.CDLL(None)
        stop = threading.Event()

        def swap():
            while not stop.is_set():
                libc.renameat2(-100, here.encode(), -100, there.encode(), 2)  # exchanges the two
        swapping = threading.Thread(target=swap)
        swapping.start()
        with Server(self.weir, "--allow-path", self.inside) as server, tf.Graph().as_default():
            read = raw.ReadFile(filename=os.path.join(here, "file"))
            got = collections.Counter()
            with v1.Session(server.target) as session:
                for _ in range(500):
                    try:
                        got[session.run(read).decode()] += 1
                    except tf.errors.OpError as e:
                        got[type(e).__name__] += 1
        stop.set()
        swapping.join()
        self.expect(got["mine"] > 0 and got["theirs"] == 0, "a replaced link: %s" % dict(got))

    @staticmethod
    def call(server, method, request, compression=None):
        """Returns the response, or the name of the error."""
        options = [("grpc.max_send_message_length", -1)]
        channel = grpc.insecure_channel("127.0.0.1:%d" % server.port, options, compression=compression)
        call = channel.unary_unary(SERVICE + method, request_serializer=lambda x: x,
                                   response_deserializer=lambda x: x)
        try:
            return call(request, timeout=60)
        except grpc.RpcError as e:
            return e.code().name
        finally:
            channel.close()

    def test_small_messages_take_little_memory(self):
        megabytes = 4
        for name, request in bombs(megabytes << 20):
            with Server(self.weir, "--max-request-mb", "4") as server:
                before = server.peak_mb()
                got = self.call(server, "CreateSession", request)
                used = server.peak_mb() - before
                self.expect(got in ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT") and used <= 4 * megabytes,
                            "%d MB of %s: %s, which take %d MB" % (megabytes, name, got, used))
        with Server(self.weir) as server:
            before = server.peak_mb()
            request = field(1, field(1, b"") * (8 << 19))
            got = self.call(server, "CreateSession", request)
            self.expect(got == "RESOURCE_EXHAUSTED", "8 MB of empty nodes: %s" % got)
            got = self.call(server, "CreateSession", request, grpc.Compression.Gzip)
            self.expect(got == "UNIMPLEMENTED", "the same, compressed: %s" % got)
            self.expect(server.peak_mb() - before < 40, "which take %d MB" % (server.peak_mb() - before))

    def test_half_sent_requests_end(self):
        with Server(self.weir, "--transfer-seconds", "2") as server, tf.Graph().as_default():
            with raw_http2.Connection(server.port) as half:
                begin = time.time()
                half.call(SERVICE + "CreateSession", raw_http2.message(b"x" * 50000, 100 << 20))
                frames = half.answer(20)
                took = time.time() - begin
                self.expect(frames[-1][0] == raw_http2.HEADERS and 1.5 < took < 4,
                            "a half-sent request ends after %.1f s" % took)
            with raw_http2.Connection(server.port) as half:
                for _ in range(400):
                    half.call(SERVICE + "RunStep", raw_http2.message(b"x", 1000))
                self.expect(self.run(server, lambda: tf.constant(1.0)) == 1.0, "others work beside 400 of them")

    def test_slow_readers_end(self):
        with Server(self.weir, "--transfer-seconds", "5", "--max-calls", "1") as server, tf.Graph().as_default() as graph:
            tf.ones([10 << 20], name="large")
            response = self.call(server, "CreateSession", field(1, graph.as_graph_def().SerializeToString()))
            step = response[:2 + response[1]] + field(3, b"large:0")  # the handle has the same number in both
            with raw_http2.Connection(server.port) as slow:
                slow.call(SERVICE + "RunStep", raw_http2.message(step), end=True)
                # The beginning of the response arrives; the rest must wait for the client.
                for _ in range(20):
                    if any(kind == raw_http2.DATA for kind, _, _ in slow.answer(1)):
                        break
                got = self.call(server, "CreateSession", b"")
                self.expect(got == "RESOURCE_EXHAUSTED", "a client that does not read has its call: %s" % got)
                time.sleep(6)
                got = self.call(server, "CreateSession", b"")
                self.expect(got != "RESOURCE_EXHAUSTED", "until it has taken too long: %s" % got)

    def test_more_connections_than_descriptors(self):
        with Server(self.weir, descriptors=256) as server, tf.Graph().as_default():
            two = tf.constant(2.0)
            with v1.Session(server.target) as old:
                old.run(two)
                connections = []
                for _ in range(400):
                    try:
                        connections.append(socket.create_connection(("127.0.0.1", server.port), timeout=5))
                    except OSError:
                        break
                time.sleep(1)
                self.expect(old.run(two) == 2.0, "an old session goes on beside %d connections" % len(connections))
                for connection in connections:
                    connection.close()
                time.sleep(1)
            done = subprocess.run([self.weir, "serve", "--status", server.target], capture_output=True, text=True)
            self.expect("is serving" in done.stdout, "new ones come in when they are gone: %s" % done.stdout.strip())

    def status(self, server):
        done = subprocess.run([self.weir, "serve", "--status", server.target], capture_output=True, text=True)
        return "is serving" in done.stdout

    def test_busy_server_can_be_administered(self):
        with Server(self.weir, "--max-calls", "3") as server, tf.Graph().as_default():
            taken, ready = tf.queue.FIFOQueue(1, [tf.float32]).dequeue(), tf.constant(1.0)
            with v1.Session(server.target) as session:
                session.run(ready)  # sends the graph, which is a call too
                time.sleep(1)
                errors = collections.Counter()

                def wait():
                    try:
                        session.run(taken)
                    except tf.errors.OpError as e:
                        errors[type(e).__name__] += 1
                waiting = [threading.Thread(target=wait) for _ in range(12)]
                for thread in waiting:
                    thread.start()
                time.sleep(2)
                self.expect(errors == {"ResourceExhaustedError": 9}, "3 of 12 calls are admitted: %s" % dict(errors))
                self.expect(self.status(server), "a busy server reports its status")
            for thread in waiting:
                thread.join()
            self.expect(errors["CancelledError"] == 3, "closing the session ends its calls: %s" % dict(errors))

    def client(self, server, tail):
        """Starts a process that opens a session, prints "open", and continues with these statements."""
        program = "\n".join(["import sys, time, tensorflow.compat.v1 as v1", "v1.disable_eager_execution()",
                             "two = v1.constant(2.0)", "session = v1.Session('%s')" % server.target,
                             "session.run(two)", "print('open', flush=True)", tail])
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        return process

    def create_sessions(self, server, seconds):
        """Returns whether a session can be created within that time."""
        until = time.time() + seconds
        while time.time() < until:
            if self.run(server, lambda: tf.constant(1.0)) == 1.0:
                return True
            time.sleep(0.2)
        return False

    def test_sessions_of_vanished_clients(self):
        for address in ("127.0.0.1", "::1"):
            flags = ["--bind", address, "--max-sessions", "1", "--orphan-minutes", "0.05", "--keepalive-seconds", "1"]
            with Server(self.weir, *flags) as server:
                client = self.client(server, "time.sleep(100)")
                self.expect(not self.create_sessions(server, 6), address + ": a connected client keeps its session")
                client.kill()
                begin = time.time()
                self.expect(self.create_sessions(server, 20), address + ": its session ends after its connection")
                self.expect(time.time() - begin > 2, "though not at once")
                client = self.client(server, "time.sleep(100)")
                client.send_signal(signal.SIGSTOP)
                self.expect(self.create_sessions(server, 20), address + ": a client that does not answer is gone")
                client.kill()

    def test_one_client_does_not_take_all_connections(self):
        with Server(self.weir, "--bind", "0.0.0.0", descriptors=256) as server, tf.Graph().as_default():
            taken = []
            for _ in range(300):
                try:
                    taken.append(socket.create_connection(("127.0.0.1", server.port), 5, ("127.0.0.2", 0)))
                except OSError:
                    break
            time.sleep(1)
            self.expect(self.run(server, lambda: tf.constant(1.0)) == 1.0, "another address can connect")
            for connection in taken:
                connection.close()

    @staticmethod
    def decompose(size):
        """A step whose kernel is one call of LAPACK, which cannot be interrupted."""
        return v1.svd(tf.random.normal([size, size]), compute_uv=True)[0]

    def test_time_limits(self):
        with Server(self.weir, "--step-seconds", "1", "--max-step-seconds", "2") as server:
            taken = lambda: tf.queue.FIFOQueue(1, [tf.float32]).dequeue()
            for build, name in ((taken, "a step that waits"), (lambda: self.decompose(3000), "a long kernel")):
                for seconds in (0, 1, 60):
                    begin = time.time()
                    got = self.run(server, build, seconds)
                    took = time.time() - begin
                    limit = 2 if seconds == 60 else 1
                    self.expect(got == "DeadlineExceededError" and limit - 0.1 < took < limit + 3,
                                "%s, limit %d s: %s after %.1f s" % (name, seconds, got, took))
            self.expect(self.status(server), "kernels that go on do not block the server")

    def test_stops_in_time(self):
        with Server(self.weir, "--grace-seconds", "1") as server:
            # TensorFlow's client waits for the server to come back.
            running = threading.Thread(target=self.run, args=(server, lambda: self.decompose(4000), 600), daemon=True)
            running.start()
            time.sleep(3)
            begin = time.time()
            server.process.terminate()
            server.process.wait(60)
            took = time.time() - begin
            self.expect(0.5 < took < 4, "SIGTERM ends a long kernel after %.1f s" % took)

    def test_half_requests_for_metrics(self):
        with Server(self.weir, "--metrics-port", "0") as server:
            port = int(re.search(r":(\d+)/metrics", server.process.stdout.readline())[1])
            half = []
            for _ in range(100):
                half.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                half[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
            begin = time.time()
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=10) as page:
                text = page.read().decode()
            took = time.time() - begin
            self.expect("weir_sessions 0" in text and took < 2, "metrics beside half requests: %.2f s" % took)
            for connection in half:
                connection.close()

    def warnings(self, *flags):
        with Server(self.weir, *flags, stderr=subprocess.PIPE) as server:
            server.process.terminate()
            server.process.wait()
            with server.process.stderr as f:
                return f.read()

    def test_exposed_servers_warn(self):
        self.expect(self.warnings() == "", "a server for this machine does not warn")
        self.expect("--tls-cert" in self.warnings("--bind", "0.0.0.0"), "others can reach it without TLS")
        self.expect("--allow-path" in self.warnings("--allow-path", "/tmp/.."), "clients may access every file")
        metrics = self.warnings("--metrics-port", "0", "--metrics-bind", "0.0.0.0")
        self.expect("metrics" in metrics, "others can read its metrics")

    def make_certificate(self, name):
        """Returns the files of a new certificate and its key."""
        cert, key = (os.path.join(self.root, name + end) for end in (".crt", ".key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", key, "-out", cert], check=True, capture_output=True)
        return cert, key

    @staticmethod
    def can_connect(server, cert):
        with open(cert, "rb") as f:
            credentials = grpc.ssl_channel_credentials(f.read())
        with grpc.secure_channel("localhost:%d" % server.port, credentials) as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=3)
                return True
            except grpc.FutureTimeoutError:
                return False

    def test_certificates_are_reloaded(self):
        if shutil.which("openssl") is None:
            print("without openssl, certificates are not tested")
            return
        cert, key = self.make_certificate("first")
        next_cert, next_key = self.make_certificate("next")
        old = shutil.copy(cert, cert + ".old")
        with Server(self.weir, "--tls-cert", cert, "--tls-key", key, stderr=subprocess.PIPE) as server:
            self.expect(self.can_connect(server, old), "TLS")
            shutil.copy(next_cert, cert)  # does not belong to the key
            server.process.send_signal(signal.SIGHUP)
            warning = server.process.stderr.readline()
            while warning and not warning.startswith("weir:"):  # gRPC logs too
                warning = server.process.stderr.readline()
            self.expect("not reloaded" in warning and "PRIVATE" not in warning, "SIGHUP: " + warning.strip())
            self.expect(self.can_connect(server, old), "the old certificate stays in use")
            shutil.copy(next_key, key)
            server.process.send_signal(signal.SIGHUP)
            self.expect("Reloaded" in server.process.stdout.readline(), "SIGHUP reloads the certificate")
            self.expect(self.can_connect(server, next_cert), "the new certificate is used")
            self.expect(not self.can_connect(server, old), "the old one is not")
            server.process.stderr.close()

    def test_memory_limit(self):
        with Server(self.weir, "--max-memory-mb", "100") as server, tf.Graph().as_default():
            small, large = tf.ones([1 << 20]), tf.ones([50 << 20])
            with v1.Session(server.target) as session:
                for _ in range(3):
                    try:
                        session.run(tf.identity(large))
                        got = "OK"
                    except tf.errors.ResourceExhaustedError as e:
                        got = e.message
                    self.expect("52428800" in got, "200 MB of 100: %s" % got.replace("\n", " "))
                    self.expect(session.run(small)[-1] == 1.0, "4 MB of 100")
            self.expect(server.peak_mb() < 150, "which take %d MB" % server.peak_mb())

    def test_message_limit(self):
        for flags, limit in ((["--bind", "0.0.0.0"], True), ([], False)):
            with Server(self.weir, *flags) as server, tf.Graph().as_default():
                x = v1.placeholder(tf.float32, [None])
                last = x[-1]
                with v1.Session(server.target) as session:
                    try:
                        got = session.run(last, {x: [1.0] * (20 << 20)})
                    except tf.errors.ResourceExhaustedError:
                        got = None
                    self.expect((got is None) == limit, "an 80 MB message to %s: %s" % (server.target, got))


if __name__ == "__main__":
    sys.exit(test_all(Test))
