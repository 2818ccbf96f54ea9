#!/usr/bin/env python3
"""weir serve for clients that nobody trusts: --untrusted, --isolate-sessions, --clients.

Skipped without TensorFlow.
usage: untrusted_clients_test.py WEIR_SERVE
"""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time

from hostile_clients_test import Checks, Server, field, grpc, raw, test_all, tf, v1  # exits if there is no TensorFlow


def children(pid):
    """The processes that a process has started."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name) as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
        except (OSError, ValueError, IndexError):
            pass
    return found


def within(seconds, holds):
    until = time.time() + seconds
    while not holds() and time.time() < until:
        time.sleep(0.05)
    return holds()


class Caller:
    """Calls of the master service with the token of a client. Messages are bytes."""

    def __init__(self, server, token=None):
        self.metadata = [("authorization", "Bearer " + token)] if token else []
        self.channel = grpc.insecure_channel("127.0.0.1:%d" % server.port)

    def call(self, method, message=b""):
        """Returns the response, or the name and the text of the error."""
        stub = self.channel.unary_unary("/tensorflow.MasterService/" + method)
        try:
            return stub(message, timeout=30, metadata=self.metadata)
        except grpc.RpcError as e:
            return e.code().name + ": " + e.details()

    def create(self):
        return self.call("CreateSession")[2:34]

    @staticmethod
    def of(handle):
        """A request for a session."""
        return b"\x0a" + bytes([len(handle)]) + handle


class Test(Checks):
    def __init__(self, weir, root):
        super().__init__(weir, root)
        self.untouched = os.path.join(root, "untouched")
        os.mkdir(self.untouched)

    @staticmethod
    def run(target, build):
        """Returns the value of the fetch, or the name and the text of the error."""
        with tf.Graph().as_default():
            fetch = build()
            with v1.Session(target) as session:
                try:
                    return session.run(fetch)
                except tf.errors.OpError as e:
                    return type(e).__name__ + ": " + e.message

    def test_untrusted_graphs_access_nothing(self):
        def table():
            lines = tf.lookup.TextFileInitializer("/etc/passwd", tf.string, 0, tf.int64, -1)
            return tf.lookup.StaticHashTable(lines, -1).lookup(tf.constant("root"))

        reading = tf.function(lambda: raw.ReadFile(filename="/etc/passwd"))
        cases = {
            "ReadFile": lambda: raw.ReadFile(filename="/etc/passwd"),
            "WriteFile": lambda: raw.WriteFile(filename=os.path.join(self.untouched, "x"), contents="x"),
            "MatchingFiles": lambda: raw.MatchingFiles(pattern="/etc/*"),
            "PrintV2": lambda: raw.PrintV2(input="x", output_stream="stderr"),
            "Print": lambda: raw.Print(input=1.0, data=[1.0]),
            "RestoreV2": lambda: raw.RestoreV2(prefix="x", tensor_names=["x"], shape_and_slices=[""], dtypes=[1]),
            "InitializeTableFromTextFileV2": table,
            "TextLineDataset": lambda: v1.data.make_one_shot_iterator(tf.data.TextLineDataset("/etc/passwd")).get_next(),
            "TFRecordReaderV2": lambda: v1.TFRecordReader().read(tf.queue.FIFOQueue(1, [tf.string]).queue_ref)[0],
            "CreateSummaryFileWriter": lambda: raw.CreateSummaryFileWriter(
                writer=raw.SummaryWriter(), logdir=self.untouched, max_queue=1, flush_millis=1, filename_suffix=""),
        }
        with Server(self.weir, "--untrusted") as server:
            for op, build in cases.items():
                got = str(self.run(server.target, build))
                self.expect(got.startswith("PermissionDeniedError") and "(op %s)" % op in got, "%s: %s" % (op, got[:160]))
            got = str(self.run(server.target, lambda: tf.identity(reading())))
            self.expect("PermissionDeniedError" in got, "ReadFile in a function: %s" % got[:160])
            got = self.run(server.target, lambda: tf.reduce_sum(tf.ones([10])))
            self.expect(got == 10.0, "other graphs run: %s" % got)
        self.expect(not os.listdir(self.untouched), "no file was written")

    def test_untrusted_graphs_are_limited(self):
        with Server(self.weir, "--untrusted", "--max-graph-nodes", "100") as server, tf.Graph().as_default():
            x = tf.constant(1.0)
            with v1.Session(server.target) as session:
                self.expect(session.run(x) == 1.0, "a small graph runs")
                for _ in range(100):
                    x = tf.identity(x)
                try:
                    got = session.run(x)
                except tf.errors.ResourceExhaustedError as e:
                    got = e.message
                self.expect("101 nodes" in str(got), "a graph that grows: %s" % got)

    def test_untrusted_graphs_start_few_threads(self):
        def batches(count):
            return [raw.Batch(in_tensors=[tf.constant([1.0])], num_batch_threads=16, max_batch_size=1,
                              batch_timeout_micros=0, grad_timeout_micros=0).id for _ in range(count)]

        def nested_loops():
            x = tf.constant(1.0)
            for i in range(2000):
                x = raw.Enter(data=x, frame_name="loop%d" % i)
            for _ in range(2000):
                x = raw.Exit(data=x)
            return x
        with Server(self.weir, "--untrusted") as server:
            got = self.run(server.target, lambda: batches(5))
            self.expect("ResourceExhaustedError" in got and "5 nodes of Batch" in got, "batchers: %s" % got)
            got = self.run(server.target, lambda: batches(4))
            self.expect(len(got) == 4 and not isinstance(got, str), "a few batchers run: %s" % got)
            got = self.run(server.target, nested_loops)
            self.expect("InvalidArgumentError" in got and "nested so deeply" in got, "nested loops: %s" % got[:160])
            self.expect(server.alive(), "the server goes on")

    def test_options_exclude_each_other(self):
        for flags in (["--untrusted"], ["--isolate-sessions"]):
            done = subprocess.run([self.weir, "serve", "--port", "0", "--allow-path", self.root, *flags],
                                  capture_output=True, text=True)
            self.expect(done.returncode == 1 and "--allow-path" in done.stderr, done.stderr.strip())
        done = subprocess.run([self.weir, "serve", "--port", "0", "--session-cpu-seconds", "5"],
                              capture_output=True, text=True)
        self.expect(done.returncode == 1 and "--isolate-sessions" in done.stderr, done.stderr.strip())
        done = subprocess.run([self.weir, "serve", "--port", "0", "--isolate-sessions", "--clients",
                               self.clients_file(self.line("alice", "sesame", "memory-mb=5"))],
                              capture_output=True, text=True)
        self.expect(done.returncode == 1 and "--session-memory-mb" in done.stderr, done.stderr.strip())

    @staticmethod
    def attempt(session, fetch, feed=None):
        """Returns what a step returns, or the text of RESOURCE_EXHAUSTED."""
        try:
            return session.run(fetch, feed, options=v1.RunOptions(timeout_in_ms=60000))
        except tf.errors.ResourceExhaustedError as e:
            return e.message

    def test_memory_of_sessions(self):
        option = "this session (weir serve --session-memory-mb)"
        with Server(self.weir, "--session-memory-mb", "64") as server, tf.Graph().as_default():
            x = v1.placeholder(tf.float32, [None])
            small, large = tf.ones([1 << 20]), tf.identity(tf.ones([20 << 20]))
            queue = tf.queue.FIFOQueue(100, [tf.float32])
            enqueue, dequeue = queue.enqueue([x]), queue.dequeue().op
            texts = tf.strings.length(tf.strings.join([tf.fill([1 << 20], "a" * 40), tf.fill([1 << 20], "b" * 80)]))
            many = tf.queue.FIFOQueue(10 << 20, [tf.float32])
            enqueue_many = many.enqueue_many([tf.ones([1 << 16])])
            first = v1.placeholder(tf.int64, [])
            keys = tf.range(first, first + (1 << 18))
            insert = tf.lookup.experimental.MutableHashTable(tf.int64, tf.bool, False).insert(keys, keys > 0)
            with v1.Session(server.target) as session, v1.Session(server.target) as other:
                got = self.attempt(session, large)
                self.expect(option in str(got) and "83886080" in str(got), "a tensor of 80 MB: %s" % got)
                got = self.attempt(session, texts)
                self.expect("weir serve --session-memory-mb" in str(got), "strings of 120 MB: %s" % str(got)[:300])
                self.expect(session.run(small)[-1] == 1.0, "4 MB")
                fed, got = 0, None
                while got is None and fed < 100:
                    got, fed = self.attempt(session, enqueue, {x: [1.0] * (2 << 20)}), fed + 1
                self.expect(4 < fed < 9 and option in str(got), "a queue of %d times 8 MB: %s" % (fed - 1, got))
                self.expect(other.run(small)[-1] == 1.0, "another session goes on")
                for _ in range(fed - 1):
                    session.run(dequeue)
                self.expect(session.run(small)[-1] == 1.0, "so does this one, when the queue is empty")
                rounds, got = 0, None
                while got is None and rounds < 100:
                    got, rounds = self.attempt(session, enqueue_many), rounds + 1
                self.expect(1 < rounds < 5 and option in str(got), "a queue of %d times 65,536 numbers: %s" % (rounds - 1, got))
                rounds, got = 0, None
                while got is None and rounds < 100:
                    got, rounds = self.attempt(other, insert, {first: rounds << 18}), rounds + 1
                self.expect(2 < rounds < 30 and option in str(got), "a table of %d times 262,144 keys: %s" % (rounds - 1, got))
                self.expect(server.alive(), "the server lives")

    def test_memory_of_steps(self):
        with Server(self.weir, "--step-memory-mb", "32") as server, tf.Graph().as_default():
            v = v1.get_variable("v", [5 << 20], initializer=v1.zeros_initializer(), use_resource=True)
            w = v1.get_variable("w", [5 << 20], initializer=v1.zeros_initializer(), use_resource=True)
            pair = tf.stack([v, w, v, w])
            with v1.Session(server.target) as session:
                got = [self.attempt(session, variable.initializer) for variable in (v, w)]
                self.expect(got == [None, None], "two variables of 20 MB: %s" % got)
                got = self.attempt(session, tf.reduce_sum(pair))
                self.expect("this step (weir serve --step-memory-mb)" in str(got), "a step of 80 MB: %s" % got)
                self.expect(session.run(tf.reduce_sum(v)) == 0.0, "a step that reads one")

    @staticmethod
    def assign(caller, name, megabytes):
        """Assigns a variable of that size in a session, which is closed then. Returns the response, or the error."""
        with tf.Graph().as_default() as graph:
            v1.get_variable(name, [megabytes << 18], initializer=v1.zeros_initializer(), use_resource=True)
            init = v1.global_variables_initializer().name.encode()
            created = caller.call("CreateSession", field(1, graph.as_graph_def().SerializeToString()))
        got = caller.call("RunStep", created[:34] + field(4, init))
        caller.call("CloseSession", created[:34])
        return got

    def test_memory_of_clients(self):
        path = self.clients_file(self.line("alice", "sesame", "memory-mb=50") + self.line("bob", "mellon"))
        with Server(self.weir, "--clients", path) as server:
            alice, bob = Caller(server, "sesame"), Caller(server, "mellon")
            got = [self.assign(alice, name, 20) for name in ("v", "w")]
            self.expect(all(isinstance(g, bytes) for g in got), "40 MB in variables: %s" % got)
            got = self.assign(alice, "z", 20)
            self.expect("client alice (memory-mb in weir serve --clients)" in str(got), "60 MB: %s" % got)
            self.expect(isinstance(self.assign(bob, "z", 60), bytes), "another client goes on")
            alice.call("Reset")
            got = self.assign(alice, "z", 20)
            self.expect(isinstance(got, bytes), "a Reset frees the variables: %s" % got)

    def test_processes_of_sessions(self):
        with Server(self.weir, "--isolate-sessions") as server, tf.Graph().as_default():
            v = v1.get_variable("v", [], initializer=v1.constant_initializer(7.0))
            init = v1.global_variables_initializer()
            first, second = v1.Session(server.target), v1.Session(server.target)
            first.run(init)
            worker = children(server.process.pid)[0]
            with open("/proc/%d/status" % worker) as f:
                self.expect("Seccomp:\t2" in f.read(), "a process has a filter of system calls")
            second.run(init)
            os.kill(worker, signal.SIGSEGV)
            within(5, lambda: worker not in children(server.process.pid))
            try:
                got = first.run(v)
            except tf.errors.UnavailableError as e:
                got = e.message
            self.expect("signal 11" in str(got), "a crash: %s" % got)
            self.expect(second.run(v) == 7.0, "another session goes on")
            first.close()
            second.close()
            self.expect(within(5, lambda: not children(server.process.pid)), "closed sessions have no processes")

    def test_processes_end_with_the_server(self):
        for end in (signal.SIGKILL, signal.SIGTERM):
            with Server(self.weir, "--isolate-sessions", "--grace-seconds", "1") as server:
                Caller(server).create()
                workers = children(server.process.pid)
                server.process.send_signal(end)
                server.process.wait()
                gone = within(5, lambda: not any(os.path.exists("/proc/%d" % pid) for pid in workers))
                self.expect(len(workers) == 1 and gone, "%s ends the process of a session" % end.name)

    def test_processes_of_vanished_clients(self):
        flags = ["--isolate-sessions", "--orphan-minutes", "0.02", "--max-sessions", "1"]
        with Server(self.weir, *flags) as server:
            caller = Caller(server)
            caller.create()
            got = caller.call("CreateSession")
            self.expect("limit of 1 sessions" in str(got), "a second session: %s" % got)
            caller.channel.close()
            self.expect(within(10, lambda: not children(server.process.pid)), "the session of a vanished client ends")

    def clients_file(self, text):
        path = os.path.join(self.root, "clients")
        with open(path, "w") as f:
            f.write(text)
        return path

    @staticmethod
    def line(name, token, quotas=""):
        return "%s token-sha256=%s %s\n" % (name, hashlib.sha256(token.encode()).hexdigest(), quotas)

    def test_clients(self):
        for isolation in ([], ["--isolate-sessions"]):
            path = self.clients_file(self.line("alice", "sesame", "sessions=2") + self.line("bob", "mellon"))
            with Server(self.weir, "--clients", path, *isolation, stderr=subprocess.PIPE) as server:
                alice, bob, eve = (Caller(server, t) for t in ("sesame", "mellon", "guess"))
                for stranger in (eve, Caller(server)):
                    got = stranger.call("CreateSession")
                    self.expect(str(got).startswith("UNAUTHENTICATED"), "a stranger: %s" % got)
                handle = alice.create()
                self.expect(re.fullmatch(rb"[0-9a-f]{32}", handle) is not None, "a handle has 128 bits")
                for method in ("RunStep", "CloseSession", "ExtendSession", "ReleaseCallable"):
                    got = bob.call(method, Caller.of(handle))
                    unknown = bob.call(method, Caller.of(b"0" * 32))
                    self.expect(got.replace(handle.decode(), "0" * 32) == unknown, "another's handle: %s" % got)
                bob.call("Reset")
                self.expect(isinstance(alice.call("RunStep", Caller.of(handle)), bytes), "another's Reset closes nothing")
                alice.create()
                got = alice.call("CreateSession")
                self.expect("Client alice has reached its quota of 2 sessions" in str(got), "the quota: %s" % got)
                self.expect(len(bob.create()) == 32, "which is another client's")
                self.reload(server, path, alice, bob, isolation)

    def reload(self, server, path, alice, bob, isolation):
        self.clients_file("alice\nbob calls=many\n")
        server.process.send_signal(signal.SIGHUP)
        lines = [server.process.stderr.readline() for _ in range(3)]
        self.expect(all(path + ":%d:" % n in "".join(lines) for n in (1, 2)), "mistakes: %s" % "".join(lines).strip())
        quota = "memory-mb" if isolation else "cpu-seconds"
        self.clients_file(self.line("alice", "sesame", quota + "=9"))
        server.process.send_signal(signal.SIGHUP)
        line = server.process.stderr.readline()
        self.expect(quota in line, "a quota that would not hold: " + line.strip())
        self.expect(isinstance(alice.call("ListDevices"), bytes), "the old list stays in use")
        self.clients_file(self.line("alice", "sesame"))
        server.process.send_signal(signal.SIGHUP)
        self.expect("Reloaded the clients" in server.process.stdout.readline(), "SIGHUP reloads the list")
        self.expect(str(bob.call("ListDevices")).startswith("UNAUTHENTICATED"), "a removed client is unknown")
        self.expect(len(alice.create()) == 32, "a quota that is no longer in the list does not hold")
        server.process.kill()
        with server.process.stderr as f:
            log = f.read()
        self.expect(not any(token in log for token in ("sesame", "mellon", "guess")), "the log has no token")


if __name__ == "__main__":
    sys.exit(test_all(Test))
