#!/usr/bin/env python3
"""TensorFlow continues to train a model that Weir has written, using only its collections.

Skipped without TensorFlow.
usage: meta_graph_test.py WRITE_META_GRAPH
"""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print("SKIPPED: no TensorFlow to compare with (%s)" % error)
    sys.exit(0)

v1 = tf.compat.v1
v1.disable_control_flow_v2()


def points():
    x = np.array([[(3 * i + j) % 7 - 3 for j in range(3)] for i in range(8)], np.float32) / 4
    return x, x[:, :1] * x[:, 1:2] + x[:, 2:] / 2


class Test:
    def __init__(self, writer):
        self.writer, self.faults = writer, 0

    def expect(self, holds, text):
        print("%s  %s" % ("ok  " if holds else "FAIL", text), flush=True)
        self.faults += not holds

    def expect_close(self, theirs, text):
        worst = max(abs(a - b) / abs(b) for a, b in zip(theirs, self.losses))
        self.expect(len(theirs) == 5 and worst < 1e-5, "%s: losses at most %.1e apart" % (text, worst))

    def write(self, folder, kind):
        self.folder = folder
        out = subprocess.run([self.writer, folder, kind], check=True, capture_output=True, text=True).stdout
        self.losses = [float(line) for line in out.split()]

    def train(self, graph, session, steps=5):
        inputs, (loss,), (train,) = (graph.get_collection(key) for key in ("inputs", "losses", "train_op"))
        feeds = dict(zip(inputs, points()))
        return [session.run([loss, train], feeds)[0] for _ in range(steps)]

    def test_saver_and_collections(self, scope):
        with tf.Graph().as_default() as graph, v1.Session() as session:
            saver = v1.train.import_meta_graph(tf.train.latest_checkpoint(self.folder) + ".meta", import_scope=scope)
            saver.restore(session, tf.train.latest_checkpoint(self.folder))
            self.expect_close(self.train(graph, session), "imported %s" % ("under a scope" if scope else "as it is"))

    def test_monitored_session(self):
        """TensorFlow's scaffold uses the one that Weir has added to the graph."""
        with tf.Graph().as_default() as graph:
            v1.train.import_meta_graph(tf.train.latest_checkpoint(self.folder) + ".meta")
            nodes = len(graph.get_operations())
            creator = v1.train.ChiefSessionCreator(v1.train.Scaffold(), checkpoint_dir=self.folder)
            with v1.train.MonitoredSession(creator) as session:
                self.expect(len(graph.get_operations()) == nodes, "tf.train.Scaffold finds all its pieces")
                self.expect_close(self.train(graph, session), "in tf.train.MonitoredSession")

    def test_part(self):
        path = os.path.join(self.folder, "hidden.meta")
        with tf.Graph().as_default() as graph, v1.Session() as session:
            x = tf.constant(points()[0])
            v1.train.import_meta_graph(path, import_scope="copy", input_map={"$unbound_inputs_x": x})
            names = sorted(v.op.name for v in v1.global_variables())
            # Adam's slots are named after the variables, so they are in the scope.
            self.expect(names[:1] == ["copy/b"] and "copy/w" in names, "a scope is imported: %s" % names)
            session.run(v1.global_variables_initializer())
            (hidden,) = graph.get_collection("activations")
            self.expect(session.run(hidden).shape == (8, 4), "and computes")

    def flow(self):
        """The graph of write_meta_graph.cc's WriteFlow."""
        v = v1.Variable(1.5, name="v")
        x = v1.placeholder(tf.float32, [], "x")
        zero = tf.constant(0, name="zero")
        loop = v1.while_loop(lambda i, a: i < 3,
                             lambda i, a: (i + 1, v1.cond(a < 4.0, lambda: a * v, lambda: a + 1.0)),
                             [zero, x], name="loop")[1]

        def inner(i, a):
            return [i + 1, v1.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b * x), [zero, a])[1]]

        nested = v1.while_loop(lambda i, a: i < 2, inner, [zero, x], maximum_iterations=7, name="nested")[1]
        one, five = tf.constant(1.0, name="one"), tf.constant(5.0, name="five")
        branch = v1.cond(x > one, lambda: v1.cond(x > five, lambda: tf.identity(x), lambda: x * v),
                         lambda: x + one, name="branch")
        return x, tf.add_n([loop, nested, branch], name="y")

    @staticmethod
    def contexts(graph):
        return [context.to_proto() for key in ("while_context", "cond_context") for context in graph.get_collection(key)]

    def same_contexts(self, mine, theirs):
        """Everything except the external values of branches: TensorFlow counts some that are only passed through."""
        if not mine.nested_contexts and mine.DESCRIPTOR.name == "WhileContextDef":
            self.expect(set(mine.values_def.values) == set(theirs.values_def.values),
                        "%s: the same values" % theirs.context_name)
            self.expect(mine.values_def.external_values == theirs.values_def.external_values,
                        "%s: the same values from outside" % theirs.context_name)
        nested = [list(c.nested_contexts) for c in (mine, theirs)]
        self.expect(len(nested[0]) == len(nested[1]), "%s: as many inside" % theirs.context_name)
        for a, b in zip(*nested):
            kind = a.WhichOneof("ctxt")
            self.expect(kind == b.WhichOneof("ctxt"), "of the same kind")
            self.same_contexts(getattr(a, kind), getattr(b, kind))
        for c in (mine, theirs):
            c.ClearField("values_def")
            c.ClearField("nested_contexts")
        self.expect(mine == theirs, "%s: the same otherwise" % theirs.context_name)
        if mine != theirs:
            print(mine, theirs)

    def test_flow(self, scope, resource):
        """TensorFlow uses the branches and loops: it computes gradients through them."""
        (v1.enable_resource_variables if resource else v1.disable_resource_variables)()
        with tf.Graph().as_default() as native:
            self.flow()
        with tf.Graph().as_default() as graph, v1.Session() as session:
            v1.train.import_meta_graph(os.path.join(self.folder, "flow.meta"), import_scope=scope)
            if scope is None:
                mine, theirs = self.contexts(graph), self.contexts(native)
                self.expect([c.context_name for c in mine] == [c.context_name for c in theirs], "the same contexts")
                for a, b in zip(mine, theirs):
                    self.same_contexts(a, b)
            x, y = graph.get_collection("ends")
            (v,) = v1.global_variables()
            gradients = v1.gradients(y, [x, v])
            session.run(v1.global_variables_initializer())
            got = session.run([y] + gradients, {x: 2.0})
            self.expect(np.allclose(got, [40.5, 83.75, 8.0]), "gradients through imported branches and loops: %s" % got)

    def test_all(self):
        for kind in ("ref", "resource"):
            print("--- %s variables" % kind)
            with tempfile.TemporaryDirectory() as folder:
                self.write(folder, kind)
                self.test_saver_and_collections(None)
                self.test_saver_and_collections("model")
                self.test_monitored_session()
                self.test_part()
                self.test_flow(None, kind == "resource")
                self.test_flow("under", kind == "resource")
        print("TensorFlow %s: %d faults" % (tf.__version__, self.faults))
        return 1 if self.faults else 0


if __name__ == "__main__":
    sys.exit(Test(sys.argv[1]).test_all())
