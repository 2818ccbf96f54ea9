#!/usr/bin/env python3
"""TensorFlow runs the SavedModels and frozen graphs that weir converts TensorFlow's models to.

Skipped without TensorFlow.
usage: saved_model_test.py WEIR
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

X = np.array([[1, 2, 3], [-4, 5, -6]], np.float32)
ROWS = np.array([0, 2], np.int64)


class Test:
    def __init__(self, weir, folder):
        self.weir_path, self.folder, self.faults = weir, folder, 0

    def expect(self, holds, text):
        print("%s  %s" % ("ok  " if holds else "FAIL", text), flush=True)
        self.faults += not holds

    def expect_same(self, got, want, text):
        far = max(np.max(np.abs(g - w)) for g, w in zip(got, want))
        self.expect(len(got) == len(want) and far < 1e-6, "%s: %.1e apart" % (text, far))

    def weir(self, *arguments):
        done = subprocess.run([self.weir_path, *arguments], capture_output=True, text=True)
        self.expect(done.returncode == 0, "weir %s %s%s" % (" ".join(arguments[:2]), done.stdout.strip(), done.stderr))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_frozen(self, path, feeds, fetches):
        definition = v1.GraphDef()
        with open(path, "rb") as file:
            definition.ParseFromString(file.read())
        ops = {node.op for node in definition.node}
        ops |= {node.op for function in definition.library.function for node in function.node_def}
        self.expect(not any("Var" in op or "Resource" in op for op in ops), "no variable is left")
        with tf.Graph().as_default(), v1.Session() as session:
            tf.import_graph_def(definition, name="")
            return session.run(fetches, feeds)

    def make_v1(self, name, resource):
        """Builds a network with a loop, a branch and a table of words. Returns its values."""
        vocabulary = self.path("%s.txt" % name)
        with open(vocabulary, "w", encoding="utf-8") as file:
            file.write("one\ntwo\nthree\n")
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(1)
            with v1.variable_scope("net", use_resource=resource):
                x = v1.placeholder(tf.float32, [None, 3], "x")
                words = v1.placeholder(tf.string, [None], "words")
                w = v1.get_variable("w", [3, 3])
                table = v1.get_variable("table", [3, 3])
            lookup = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                              tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
            rows = lookup.lookup(words)
            _, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
            y = tf.cond(tf.reduce_sum(x) > 0, lambda: h + v1.nn.embedding_lookup(table, rows), lambda: h - w[0])
            y = tf.identity(y, "y")
            v1.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(y))
            init_tables = tf.group(v1.tables_initializer(), name="init_tables")
            session.run([v1.global_variables_initializer(), init_tables])
            v1.train.Saver().save(session, self.path(name))
            self.feeds = [{"net/x:0": sign * X, "net/words:0": ["one", "three"]} for sign in (1, -1)]
            return [session.run("y:0", feeds) for feeds in self.feeds]

    def test_v1(self, name, resource, flow_v2):
        (v1.enable_control_flow_v2 if flow_v2 else v1.disable_control_flow_v2)()
        want = self.make_v1(name, resource)
        model = self.path(name + "_saved")
        from_files = (self.path(name + ".meta"), "--checkpoint", self.path(name))
        self.weir("graph", "export", *from_files, "--input", "x=net/x", "--input", "words=net/words",
                  "--output", "y=y", "--init", "init_tables", "-o", model)
        self.expect(os.listdir(os.path.join(model, "assets")) == [name + ".txt"], "its words are an asset")
        with tf.Graph().as_default(), v1.Session() as session:
            meta = v1.saved_model.load(session, ["serve"], model)
            signature = meta.signature_def["serving_default"]
            self.expect(signature.inputs["x"].dtype == tf.float32.as_datatype_enum, "the signature has types")
            got = [session.run(signature.outputs["y"].name, feeds) for feeds in self.feeds]
        self.expect_same(got, want, "%s, loaded as TensorFlow 1 does" % name)
        serve = tf.saved_model.load(model).signatures["serving_default"]
        got = [serve(x=tf.constant(feeds["net/x:0"]), words=tf.constant(feeds["net/words:0"]))["y"].numpy()
               for feeds in self.feeds]
        self.expect_same(got, want, "%s, loaded as TensorFlow 2 does" % name)

    def test_frozen_v1(self, name, resource, flow_v2):
        """The part after the table, whose results are fed."""
        (v1.enable_control_flow_v2 if flow_v2 else v1.disable_control_flow_v2)()
        with tf.Graph().as_default(), v1.Session() as session:
            with v1.variable_scope("net", use_resource=resource):
                x = v1.placeholder(tf.float32, [None, 3], "x")
                rows = v1.placeholder(tf.int64, [None], "rows")
                w = v1.get_variable("w", [3, 3])
                table = v1.get_variable("table", [3, 3])
            _, h = tf.while_loop(lambda i, h: i < 3,
                                 lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + tf.gather(table, [i]))), [0, x])
            y = tf.cond(tf.reduce_sum(x) > 0, lambda: h + tf.gather(table, rows), lambda: h - w[0])
            y = tf.identity(y, "y")
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, self.path(name))
            feeds = [{"net/x:0": sign * X, "net/rows:0": ROWS} for sign in (1, -1)]
            want = [session.run(y, each) for each in feeds]
        frozen = self.path(name + ".pb")
        self.weir("graph", "freeze", self.path(name + ".meta"), "--checkpoint", self.path(name), "--fetch", "y",
                  "-o", frozen)
        self.expect_same([self.run_frozen(frozen, each, "y:0") for each in feeds], want, name)

    def test_frozen_v2(self):
        class Net(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = tf.Variable(tf.random.stateless_uniform([3, 3], [1, 2]), name="w")
                self.table = tf.Variable(tf.random.stateless_uniform([3, 3], [3, 4]), name="table")

            @tf.function
            def layer(self, h):
                return tf.tanh(tf.matmul(h, self.w))

            @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int64)])
            def __call__(self, x, rows):
                for _ in tf.range(3):
                    x = self.layer(x)
                if tf.reduce_sum(x) > 0:
                    x += tf.gather(self.table, rows)
                else:
                    x -= self.w[0]
                return {"y": self.layer(x)}

        net, model, frozen = Net(), self.path("v2"), self.path("v2.pb")
        tf.saved_model.save(net, model, signatures=net.__call__)
        self.weir("graph", "freeze", model, "--signature", "serving_default", "-o", frozen)
        self.weir("graph", "export", model, "-o", self.path("v2_again"))
        again = tf.saved_model.load(self.path("v2_again")).signatures["serving_default"]
        for sign in (1, -1):
            want = net(tf.constant(sign * X), tf.constant(ROWS))["y"].numpy()
            feeds = {"serving_default_x:0": sign * X, "serving_default_rows:0": ROWS}
            got = self.run_frozen(frozen, feeds, "StatefulPartitionedCall:0")
            self.expect_same([got], [want], "of TensorFlow 2")
            got = again(x=tf.constant(sign * X), rows=tf.constant(ROWS))["y"].numpy()
            self.expect_same([got], [want], "of TensorFlow 2, exported again")

    def test_frozen_function(self):
        """A function of a model that has no signatures."""
        class Net(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = tf.Variable(tf.random.stateless_uniform([3, 3], [1, 2]), name="w")

            @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
            def encode(self, x):
                return tf.tanh(tf.matmul(x, self.w))

        net, model, frozen = Net(), self.path("methods"), self.path("encode.pb")
        tf.saved_model.save(net, model)
        self.weir("graph", "freeze", model, "--signature", "encode", "-o", frozen)
        got = self.run_frozen(frozen, {"call/encode/x:0": X}, "call/encode/result:0")
        self.expect_same([got], [net.encode(tf.constant(X)).numpy()], "a function by its name")

    def test_unfrozen(self):
        """TensorFlow trains the variables that a frozen graph gets."""
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, 3], "x")
            w, b = v1.get_variable("net/w", [3, 2]), v1.get_variable("net/b", [2])
            y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b), "y")
            gradient = tf.gradients(y, w)[0]
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, self.path("trained"))
            want, want_gradient, weights = session.run([y, gradient, w], {x: X})
        self.weir("graph", "freeze", self.path("trained.meta"), "--checkpoint", self.path("trained"), "--fetch", "y",
                  "-o", self.path("trained.pb"))
        self.weir("graph", "unfreeze", self.path("trained.pb"), "-o", self.path("unfrozen"))
        with tf.Graph().as_default(), v1.Session() as session:
            v1.train.import_meta_graph(self.path("unfrozen.meta")).restore(session, self.path("unfrozen"))
            names = sorted(variable.op.name for variable in v1.trainable_variables())
            self.expect(names == ["net/b", "net/w"], "unfrozen: %s" % names)
            self.expect_same([session.run("y:0", {"x:0": X})], [want], "unfrozen, of the same values")
            loss = tf.reduce_sum(v1.get_default_graph().get_tensor_by_name("y:0"))
            session.run(v1.train.GradientDescentOptimizer(0.5).minimize(loss), {"x:0": X})
            got = session.run([v for v in v1.trainable_variables() if v.op.name == "net/w"][0])
            self.expect_same([got], [weights - 0.5 * want_gradient], "unfrozen, and trained")


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(sys.argv[1]), folder)
        for resource in (False, True):
            for flow_v2 in (False, True):
                kind = "%s_%s" % ("resource" if resource else "reference", "functions" if flow_v2 else "nodes")
                test.test_v1(kind, resource, flow_v2)
                test.test_frozen_v1("frozen_" + kind, resource, flow_v2)
        test.test_frozen_v2()
        test.test_frozen_function()
        test.test_unfrozen()
        print("%d faults" % test.faults)
        return test.faults


if __name__ == "__main__":
    sys.exit(main())
