#!/usr/bin/env python3
"""Models and MetaGraphs that TensorFlow writes, and what TensorFlow makes of Weir's.

TensorFlow runs in a process of its own. Says so and passes where Python does not have it.
"""

import importlib.util
import os
import subprocess
import sys
import unittest

import cases
import numpy as np

import weir

WRITE = """
import numpy as np, tensorflow as tf
class Net(tf.Module):
    def __init__(self):
        self.w = tf.Variable(np.arange(6, dtype="float32").reshape(3, 2))
        self.words = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1)
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x"),
                                  tf.TensorSpec([None], tf.string, "s")])
    def __call__(self, x, s):
        return {"y": tf.matmul(x, self.w), "id": self.words.lookup(s)}
net = Net()
tf.saved_model.save(net, "tf2", signatures=net.__call__.get_concrete_function())
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    x, t = v1.placeholder(tf.float32, [None, 2], "x"), v1.placeholder(tf.float32, [None, 1], "t")
    w = v1.get_variable("w", initializer=tf.constant([[0.1], [-0.2]]))
    loss = tf.reduce_mean(tf.math.squared_difference(tf.matmul(tf.tanh(x), w), t), name="loss")
    train = v1.train.AdamOptimizer(0.1).minimize(loss)
    session.run(v1.global_variables_initializer())
    v1.train.Saver().save(session, "./m")
    feeds = {x: np.linspace(-1, 1, 16).reshape(8, 2), t: np.linspace(0, 2, 8).reshape(8, 1)}
    np.save("losses.npy", [session.run([loss, train], feeds)[0] for _ in range(20)])
"""

READ = """
import numpy as np, tensorflow as tf
for name in ("plain", "objects"):
    f = tf.saved_model.load(name).signatures["serving_default"]
    np.testing.assert_array_equal(f(x=tf.constant([[1., 2.]]))["y"], [[10., 20.]])
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    saver = v1.train.import_meta_graph("w.meta")
    saver.restore(session, "w")
    assert session.run("v/Read/ReadVariableOp:0") == 10
    session.run(v1.get_collection("train_op"), {"x:0": [[1., 1.]]})
    assert session.run("v/Read/ReadVariableOp:0") < 10
"""


class TensorFlowTest(cases.Case):
    def setUp(self):
        super().setUp()
        if importlib.util.find_spec("tensorflow") is None:
            self.skipTest("Python has no TensorFlow")

    def tensorflow(self, program):
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.folder,
            check=True,
            env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"),
            stderr=subprocess.DEVNULL,
        )

    def test_models_and_meta_graphs_of_tensorflow(self):
        self.tensorflow(WRITE)
        model = weir.load(self.path("tf2"))
        got = model(x=np.eye(3, dtype="float32"), s=["b", "a", "z"])
        np.testing.assert_array_equal(got["y"], np.arange(6).reshape(3, 2))
        self.assertEqual(got["id"].tolist(), [2, 1, -1])

        g = weir.Graph()
        saver = g.import_meta_graph(self.path("m.meta"))
        x = np.linspace(-1, 1, 16).reshape(8, 2).astype("float32")
        feeds = {"x": x, "t": np.linspace(0, 2, 8).reshape(8, 1).astype("float32")}
        with weir.Session(g) as session:
            saver.restore(session, self.path("m"))
            run = session.step(["loss:0", g.collection("train_op")], ["x", "t"])
            losses = [run(*feeds.values())[0] for _ in range(20)]
        np.testing.assert_allclose(losses, np.load(self.path("losses.npy")), rtol=1e-5)

    def test_tensorflow_reads_what_weir_writes(self):
        g = weir.Graph()
        x = g.placeholder("float32", [None, 2], name="x")
        v = g.variable("v", initial_value=10.0)
        y = g.op("Mul", x, v, name="y")
        weir.Optimizer(g, "Adam", learning_rate=0.5).minimize(g.op("Sum", y, [0, 1]))
        saver = weir.Saver(g)
        signatures = {"serving_default": ({"x": x}, {"y": y})}
        with weir.Session(g) as session:
            session.initialize()
            session.export_saved_model(self.path("plain"), signatures)
            session.export_saved_model(self.path("objects"), signatures, objects=True)
            saver.save(session, self.path("w"))
        self.tensorflow(READ)


if __name__ == "__main__":
    unittest.main()
