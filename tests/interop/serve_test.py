#!/usr/bin/env python3
"""Runs TensorFlow's unchanged Python client on weir serve: the digits network and docs/serving.md.

Skipped without TensorFlow.
usage: serve_test.py DIGITS WEIR DATA DOCUMENT TRAIN_ON_SERVER   (the last: the document's program in C++)
"""

import os
import re
import signal
import subprocess
import sys
import tempfile

for name in ("http_proxy", "https_proxy", "grpc_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import digits_test  # prints SKIPPED and exits without TensorFlow
from digits_test import tf, v1


class Server:
    """A weir serve process that runs for the duration of a with statement."""

    def __init__(self, weir, *flags):
        command = [weir, "serve", "--port", "0", "--grace-seconds", "5", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.target = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.status = self.process.wait(timeout=30)
        self.process.stdout.close()


class Test(digits_test.Test):
    def test_digits_train_on_the_server_and_go_on_in_cpp(self, server):
        net, directory = digits_test.Network(132), self.folder("served")
        with v1.Session(server.target, graph=net.graph) as session:
            session.run(net.init)
            for epoch in range(3):
                for batch in self.data.epoch(epoch):
                    session.run(net.train, net.feeds(batch, 0.3))
            right = session.run(net.accuracy, net.feeds(self.data.test))
            net.saver.save(session, os.path.join(directory, "model"), global_step=66)
        self.expect(right > 0.8, "trained through gRPC: %.4f%%" % (100 * right))
        self.expect_equal(right, self.run_digits(directory, "--evaluate"), "saved by the server")
        after = self.run_digits(directory, "--resume", "--epochs", "6")
        last = tf.train.latest_checkpoint(directory)
        self.expect(last.endswith("model-132"), "C++ trains on to %.4f%%" % after)
        with v1.Session(server.target, graph=net.graph) as session:
            net.saver.restore(session, last)
            right = session.run(net.accuracy, net.feeds(self.data.test))
        self.expect_equal(right, after, "restored by the server")

    def test_document(self, server, path):
        with open(path, encoding="utf-8") as f:
            (program,) = re.findall(r"^```python\n(.*?)^```$", f.read(), re.M | re.S)
        program = program.replace("grpc://localhost:8500", server.target)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.expect("slope 3.000" in done.stdout, "docs/serving.md: " + done.stdout.strip())

    def test_cpp_program(self, program, target, whose):
        out = self.run(program, target)
        self.expect(out.strip() == "slope 3.000", "C++ on %s server: %s" % (whose, out.strip()))

    def test_files_elsewhere_are_refused(self, server):
        with tf.Graph().as_default(), v1.Session(server.target) as session:
            try:
                session.run(tf.io.read_file("/etc/passwd"))
                self.expect(False, "a file outside of --allow-path was read")
            except tf.errors.PermissionDeniedError:
                self.expect(True, "no file outside of --allow-path")

    def test_all(self, document, program):
        with Server(self.weir, "--allow-path", self.root) as server:
            self.test_digits_train_on_the_server_and_go_on_in_cpp(server)
            self.test_document(server, document)
            self.test_cpp_program(program, server.target, "Weir's")
            self.test_files_elsewhere_are_refused(server)
            status = self.run(self.weir, "serve", "--status", server.target)
            self.expect("is serving" in status, "--status: " + status.strip())
        theirs = tf.distribute.Server.create_local_server()
        self.test_cpp_program(program, theirs.target, "TensorFlow's")
        self.expect(server.status == 0, "SIGTERM ends it with status %d" % server.status)
        return 1 if self.faults else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        status = Test(folder, *sys.argv[1:4]).test_all(*sys.argv[4:6])
    sys.exit(status)
