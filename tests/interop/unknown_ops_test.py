#!/usr/bin/env python3
"""TensorFlow graphs with ops that Weir does not have: on a server, and in files.

Steps that do not need such an op run; steps that need one fail with NOT_FOUND, naming node and op.
Skipped without TensorFlow.
usage: unknown_ops_test.py WEIR
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serve_test import Server  # prints SKIPPED and exits without TensorFlow
from digits_test import np, tf, v1

v1.disable_eager_execution()
v1.disable_control_flow_v2()


class Test:
    def __init__(self, weir, folder):
        self.weir, self.folder, self.faults = weir, folder, 0

    def expect(self, holds, text):
        print("%s  %s" % ("ok  " if holds else "FAIL", text), flush=True)
        self.faults += not holds

    def expect_values(self, session, fetch, feeds, want, text):
        try:
            got = session.run(fetch, feeds)
            self.expect(np.allclose(got, want), "%s: %s" % (text, np.asarray(got).tolist()))
        except tf.errors.OpError as error:
            self.expect(False, "%s: %s" % (text, error.message))

    def expect_not_found(self, session, fetch, feeds, words, text):
        try:
            session.run(fetch, feeds)
            self.expect(False, text + ": ran")
        except tf.errors.OpError as error:
            told = [word for word in words if word in error.message]
            self.expect(isinstance(error, tf.errors.NotFoundError) and told == words,
                        "%s: %s" % (text, error.message.split("\n")[0:3]))

    # ---- on a server

    def test_python_function(self, server, use_resource):
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [3])
            w = v1.Variable(np.float32(2), use_resource=use_resource)
            y = x * w
            p = v1.py_func(lambda v: v + 1, [y], tf.float32, name="logged")
            taken = v1.placeholder_with_default(True, [])
            chosen = tf.cond(taken, lambda: y, lambda: v1.py_func(lambda v: v, [y], tf.float32))
            step = v1.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(y))
            with v1.Session(server.target, graph=graph) as session:
                session.run(w.initializer)
                feeds = {x: [1, 2, 3]}
                self.expect_values(session, y, feeds, [2, 4, 6], "beside a Python function")
                words = ["Op type not registered 'PyFunc' in binary running on ", "'logged'",
                         "Python functions live in the client's process"]
                self.expect_not_found(session, p, feeds, words, "a Python function")
                self.expect_not_found(session, [step, p], feeds, words, "one beside a step of training")
                self.expect_values(session, y, feeds, [2, 4, 6], "a step that fails so has no effect")
                self.expect_values(session, chosen, {x: [1, 2, 3]}, [2, 4, 6], "in a branch not taken")
                self.expect_not_found(session, chosen, {x: [1, 2, 3], taken: False}, words[2:], "in one taken")
                self.expect_values(session, p + 1, {p: [1, 2]}, [2, 3], "its value is fed")

    def test_graph_that_grows(self, server):
        with tf.Graph().as_default() as graph, v1.Session(server.target, graph=graph) as session:
            one = tf.constant(1.0)
            self.expect_values(session, one, {}, 1, "before the op is there")
            size, key = tf.raw_ops.CollectiveAssignGroupV2(group_assignment=[[0]], device_index=0, base_key=1,
                                                           name="assign")
            first = size + 1
            words = ["Op type not registered 'CollectiveAssignGroupV2'", "'assign'"]
            self.expect_values(session, one, {}, 1, "with it")
            self.expect_not_found(session, first, {}, words, "what needs it")
            second = tf.cast(key, tf.float32) + 1.0  # an output that was unused until now
            self.expect_values(session, one + 1.0, {}, 2, "with another output of it")
            self.expect_not_found(session, second, {}, words, "what needs the other output")
            self.expect_values(session, second, {key: 4}, 5, "the other output is fed")

    def test_function(self, server):
        with tf.Graph().as_default() as graph, v1.Session(server.target, graph=graph) as session:
            x = v1.placeholder_with_default(np.float32(3), [])

            @tf.function
            def logs(v):
                return tf.numpy_function(lambda a: a, [v], tf.float32) + 1.0

            needs, free = logs(x), x + 1.0
            self.expect_values(session, free, {}, 4, "beside a call of a function with a Python function")
            self.expect_not_found(session, needs, {}, ["Op type not registered", "client's process"], "the call")

    # ---- in files

    def write_model(self):
        """A meta graph with a Python function, an unknown op, and an infeed op."""
        self.prefix = os.path.join(self.folder, "model")
        with tf.Graph().as_default() as graph, v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 2], name="x")
            w = v1.get_variable("w", initializer=np.array([[1, 2], [3, 4]], np.float32))
            y = tf.identity(tf.matmul(x, w), "y")
            tf.identity(v1.py_func(lambda a: a + 1, [y], tf.float32), "logged")
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, self.prefix)
        meta = v1.MetaGraphDef()
        with open(self.prefix + ".meta", "rb") as file:
            meta.ParseFromString(file.read())
        for name, op, source in (("my_op", "ZeroOut", "y"), ("after", "Identity", "my_op:1"),
                                 ("infeed", "InfeedEnqueueTuple", "y")):
            node = meta.graph_def.node.add()
            node.name, node.op = name, op
            node.input.append(source)
            if op != "InfeedEnqueueTuple":
                node.attr["T"].type = 1
            else:
                node.attr["dtypes"].list.type.append(1)
                node.attr["shapes"].list.shape.add()
        self.graph = meta.graph_def
        with open(self.prefix + ".meta", "wb") as file:
            file.write(meta.SerializeToString())

    def call(self, *arguments):
        return subprocess.run([self.weir, *arguments], capture_output=True, text=True)

    def run_model(self, *arguments):
        return self.call("run", self.prefix + ".meta", "--checkpoint", self.prefix, "--feed", "x:0=[[1, 1]]",
                         *arguments)

    def test_files(self):
        self.write_model()
        run = self.run_model("--fetch", "y:0")
        self.expect(run.returncode == 0 and "4" in run.stdout and "6" in run.stdout, "weir run: " + run.stdout)
        for arguments, op, node in ((["--fetch", "after:0"], "ZeroOut", "my_op"),
                                    (["--fetch", "my_op:0"], "ZeroOut", "my_op"),
                                    (["--target", "infeed"], "InfeedEnqueueTuple", "infeed"),
                                    (["--fetch", "logged:0"], "PyFunc", "PyFunc")):
            run = self.run_model(*arguments)
            self.expect(run.returncode != 0 and "NOT_FOUND" in run.stderr and "not registered '%s'" % op in run.stderr
                        and "'%s'" % node in run.stderr, "weir run %s: %s" % (arguments, run.stderr.strip()))
        show = self.call("graph", "show", self.prefix + ".meta")
        self.expect(show.returncode == 0 and "y = Identity(MatMul) -> float[?,2]" in show.stdout
                    and "InfeedEnqueueTuple, PyFunc, ZeroOut" in show.stderr, "weir graph show: " + show.stderr)
        shown = json.loads(self.call("graph", "show", self.prefix + ".meta", "--json").stdout)
        outputs = {node["name"]: node["outputs"] for node in shown["nodes"]}
        self.expect(outputs["PyFunc"] == ["float[...]"] and outputs["infeed"] == [], "weir graph show --json")
        frozen = os.path.join(self.folder, "frozen.pb")
        freeze = self.call("graph", "freeze", self.prefix + ".meta", "--checkpoint", self.prefix, "--fetch", "y", "-o",
                           frozen)
        self.expect(freeze.returncode == 0, "weir graph freeze: " + freeze.stderr)
        with tf.Graph().as_default(), v1.Session() as session:
            definition = v1.GraphDef()
            with open(frozen, "rb") as file:
                definition.ParseFromString(file.read())
            tf.import_graph_def(definition, name="")
            self.expect_values(session, "y:0", {"x:0": [[1, 1]]}, [[4, 6]], "TensorFlow runs what is frozen")

    def test_saved_model(self):
        folder = os.path.join(self.folder, "saved")
        with tf.Graph().as_default() as graph, v1.Session() as session:
            x = v1.placeholder(tf.float32, [None], name="x")
            w = v1.get_variable("w", initializer=np.float32(3))
            y = tf.identity(x * w, "y")
            p = v1.py_func(lambda a: a + 1, [y], tf.float32, name="p")
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(session, folder, {"x": x}, {"y": y, "p": p})
        ask = lambda fetch: self.call("run", folder, "--signature", "serving_default", "--feed", "x=[1, 2]",
                                      "--fetch", fetch)
        run = ask("y")
        self.expect(run.returncode == 0 and "3" in run.stdout and "6" in run.stdout, "a SavedModel: " + run.stdout)
        run = ask("p")
        self.expect(run.returncode != 0 and "client's process" in run.stderr, "its Python function: " + run.stderr)

    def test_all(self):
        with Server(self.weir) as server:
            for use_resource in (False, True):
                self.test_python_function(server, use_resource)
            self.test_graph_that_grows(server)
            self.test_function(server)
        self.expect(server.status == 0, "the server ends well")
        self.test_files()
        self.test_saved_model()


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(sys.argv[1]), folder)
        test.test_all()
    sys.exit(test.faults > 0)


if __name__ == "__main__":
    main()
