#!/usr/bin/env python3
"""Training: variables, optimizers, savers and MetaGraphs."""

import os
import unittest

import cases
import numpy as np

import weir


def points():
    x = np.random.RandomState(0).rand(256, 2).astype("float32")
    return x, (x @ np.array([[2.0], [-1.0]], "float32") + 0.5).astype("float32")


class Net:
    """Two layers, and a loss."""

    def __init__(self, seed=1):
        g = self.g = weir.Graph(seed=seed)
        self.x = g.placeholder("float32", [None, 2], name="x")
        self.wanted = g.placeholder("float32", [None, 1], name="wanted")
        w1, b1 = g.variable("w1", [2, 8]), g.variable("b1", [8], initializer="zeros")
        w2, b2 = g.variable("w2", [8, 1]), g.variable("b2", [1], initializer="zeros")
        hidden = g.op("Relu", g.op("BiasAdd", g.op("MatMul", self.x, w1), b1))
        self.y = g.op("BiasAdd", g.op("MatMul", hidden, w2), b2, name="y")
        self.loss = g.op(
            "Mean", g.op("SquaredDifference", self.y, self.wanted), [0, 1], name="loss"
        )
        self.variables = [w1, b1, w2, b2]

    def feeds(self):
        x, wanted = points()
        return {self.x: x, self.wanted: wanted}


class TrainingTest(cases.Case):
    def test_optimizers_train(self):
        for name, hyperparameters in (
            ("Adam", {"learning_rate": 0.05, "clip_norm": 1.0}),
            ("Momentum", {"learning_rate": 0.05, "momentum": 0.9, "use_nesterov": True}),
            ("RMSProp", {"learning_rate": 0.01}),
            ("Adagrad", {"learning_rate": 0.3}),
            ("AdamW", {"learning_rate": 0.05, "weight_decay": 1e-5}),
            ("Ftrl", {"learning_rate": 0.5}),
        ):
            net = Net()
            step = net.g.global_step()
            train = weir.Optimizer(net.g, name, **hyperparameters).minimize(
                net.loss, global_step=step
            )
            with weir.Session(net.g) as session:
                self.assertEqual(len(session.uninitialized()), len(net.g.variables()))
                session.initialize()
                self.assertEqual(session.uninitialized(), [])
                first = session.run(net.loss, net.feeds())
                run = session.step([net.loss, train], [net.x, net.wanted])
                for _ in range(150):
                    last, _ = run(*points())
                self.assertLess(last, 0.05 * first, name)
                self.assertEqual(session.run(step), 150)

    def test_seeds_repeat(self):
        values = []
        for _ in range(2):
            net = Net(seed=5)
            with weir.Session(net.g) as session:
                session.initialize()
                values.append(session.run(net.variables[0]))
        np.testing.assert_array_equal(values[0], values[1])

    def test_chosen_variables_and_schedules(self):
        net = Net()
        w1, _, w2, _ = net.variables
        step = net.g.global_step()
        rate = 0.1 / (1.0 + net.g.op("Cast", step, DstT="float32"))
        optimizer = weir.Optimizer(net.g, "Adam", learning_rate=rate)
        train = optimizer.minimize(net.loss, variables=[w2], global_step=step)
        self.assertEqual(optimizer.slot_names(), ["m", "v"])
        self.assertEqual(optimizer.slot(w2, "m").shape, (8, 1))
        with self.assertRaises(weir.NotFoundError):
            optimizer.slot(w1, "m")
        with weir.Session(net.g) as session:
            session.initialize()
            before = session.run([w1, w2])
            session.run(train, net.feeds())
            after = session.run([w1, w2])
        np.testing.assert_array_equal(before[0], after[0])
        np.testing.assert_allclose(np.abs(before[1] - after[1]).max(), 0.1, rtol=0.01)

    def test_given_gradients(self):
        g = weir.Graph()
        v = g.variable("v", initial_value=[3.0, 4.0])
        grads = g.gradients(g.op("Sum", v * v, [0]), [v])
        sgd = weir.Optimizer(g, "GradientDescent", learning_rate=1.0, clip_norm=5.0)
        train = sgd.apply_gradients(grads, [v])
        with weir.Session(g) as session:
            session.initialize()
            session.run(train)
            np.testing.assert_allclose(session.run(v), [0, 0], atol=1e-6)
        with self.assertRaises(ValueError):
            sgd.apply_gradients([], [v])

    def test_variables(self):
        g = weir.Graph()
        v = g.variable("v", initial_value=np.array([1, 2], "int64"), trainable=False)
        w = g.variable("w", initial_value=v.value + 1, use_resource=False)
        s = g.variable("s", initial_value="text")
        self.assertEqual(
            (v.dtype, v.shape, w.op.type, s.dtype), ("int64", (2,), "VariableV2", "string")
        )
        self.assertEqual(g.variables("trainable_variables"), [w, s])
        with weir.Session(g) as session:
            session.run(v.initializer)
            session.run(v.assign([5, 6]))
            session.initialize()
            self.assertEqual(session.run(w).tolist(), [2, 3])
            self.assertEqual(session.run(w.assign_sub([1, 1])).tolist(), [1, 2])
            self.assertEqual(session.run(s).item(), b"text")
            self.assertEqual(session.run(v * 10).tolist(), [10, 20])
        with self.assertRaises(weir.AlreadyExistsError):
            g.variable("v", [2])
        with self.assertRaisesRegex(weir.NotFoundError, "glorot_uniform"):
            g.variable("u", [2], initializer="glorot")

    def test_savers(self):
        net = Net()
        train = weir.Optimizer(net.g, "Adam", learning_rate=0.05).minimize(net.loss)
        saver = weir.Saver(net.g, max_to_keep=2, synced=False)
        losses = []
        with weir.Session(net.g) as session:
            session.initialize()
            for step in range(3):
                session.run(train, net.feeds())
                losses.append(session.run(net.loss, net.feeds()))
                path = saver.save(session, self.path("m"), step=step, mode="async")
            saver.wait()
            self.assertEqual(path, self.path("m-2"))
            self.assertEqual(saver.checkpoints(), [self.path("m-1"), self.path("m-2")])
            saver.restore(session, self.path("m-1"))
            self.assertEqual(session.run(net.loss, net.feeds()), losses[1])
        self.assertEqual(weir.latest_checkpoint(self.folder), self.path("m-2"))
        self.assertTrue(weir.verify_checkpoint(path)["sound"])
        checkpoint = weir.Checkpoint(path)
        self.assertIn("w1/Adam", checkpoint)
        self.assertEqual(checkpoint["w1"].shape, (2, 8))
        self.assertEqual(checkpoint.info["b1"], {"name": "b1", "dtype": "float", "shape": [8]})
        with open(path + ".data-00000-of-00001", "r+b") as file:
            file.write(b"\x55\x55\x55\x55")
        self.assertFalse(weir.verify_checkpoint(path)["sound"])
        with weir.Session(net.g) as session:
            other = weir.Saver(net.g, synced=False)
            with self.assertRaises(weir.DataLossError):
                other.restore_latest(session, self.folder)
            self.assertEqual(
                other.restore_latest(session, self.folder, skip_damaged=True), self.path("m-1")
            )
        with self.assertRaises(weir.NotFoundError):
            weir.latest_checkpoint(self.path("absent"))

    def test_meta_graphs_resume(self):
        net = Net()
        weir.Optimizer(net.g, "Adam", learning_rate=0.05).minimize(net.loss)
        saver = weir.Saver(net.g, synced=False)
        with weir.Session(net.g) as session:
            session.initialize()
            path = saver.save(session, self.path("m"))
            before = session.run(net.loss, net.feeds())
        g = weir.Graph()
        again = g.import_meta_graph(path + ".meta")
        (train,) = g.collection("train_op")
        x, wanted = points()
        feeds = {"x": x, "wanted": wanted}
        with weir.Session(g) as session:
            again.restore(session, path)
            self.assertEqual(session.run("loss:0", feeds), before)
            for _ in range(50):
                session.run(train, feeds)
            self.assertLess(session.run("loss:0", feeds), before)
        self.assertIsNone(weir.Graph().import_meta_graph(net.g.meta_graph()))

    def test_meta_graph_of_tensorflow_trains(self):
        g = weir.Graph()
        saver = g.import_meta_graph(os.path.join(cases.GOLDEN, "trained.meta"))
        self.assertIsNotNone(saver)
        self.assertTrue(g.variables("trainable_variables"))
        with weir.Session(g) as session:
            saver.restore(session, os.path.join(cases.GOLDEN, "trained"))
            self.assertEqual(session.uninitialized(), [])


if __name__ == "__main__":
    unittest.main()
