#!/usr/bin/env python3
"""Graphs that are built in Python."""

import unittest

import cases
import numpy as np

import weir


class GraphTest(cases.Case):
    def setUp(self):
        super().setUp()
        self.g = weir.Graph()
        self.x = self.g.placeholder("float32", [None, 2], name="x")

    def run_in_session(self, fetches, feeds=None):
        with weir.Session(self.g) as session:
            return session.run(fetches, feeds)

    def test_attributes_follow_the_signature(self):
        y = self.g.op("MatMul", self.x, [[1.0, 2.0], [3.0, 4.0]], transpose_b=True, name="y")
        self.assertEqual((y.name, y.dtype, y.shape), ("y:0", "float32", (None, 2)))
        np.testing.assert_array_equal(self.run_in_session(y, {"x": [[1, 1]]}), [[3, 7]])
        pooled = self.g.op(
            "MaxPool",
            np.ones([1, 4, 4, 1], "float32"),
            ksize=[1, 2, 2, 1],
            strides=(1, 2, 2, 1),
            padding="VALID",
        )
        self.assertEqual(pooled.shape, (1, 2, 2, 1))
        cast = self.g.op("Cast", self.x, DstT="int64")
        self.assertEqual(cast.dtype, "int64")
        self.assertEqual(self.g.op("Cast", self.x, DstT=np.float64).dtype, "float64")

    def test_lists_and_several_outputs(self):
        joined = self.g.op("ConcatV2", [self.x, self.x, [[5.0, 6.0]]], 0)
        parts = self.g.op("Split", 1, joined, num_split=2)
        self.assertEqual([p.name for p in parts], ["Split:0", "Split:1"])
        values = self.run_in_session(parts, {self.x: [[1, 2]]})
        np.testing.assert_array_equal(values[1], [[2], [2], [6]])

    def test_values_become_constants_of_the_type_that_the_op_needs(self):
        half = self.g.placeholder("float16", [2])
        self.assertEqual((half * 2).dtype, "float16")
        self.assertEqual((1 - half).dtype, "float16")
        self.assertEqual(self.g.op("Sum", self.x, [0]).shape, (2,))
        self.assertEqual(self.g.op("Range", 0.0, 1.0, 0.25).dtype, "float32")
        self.assertEqual(self.g.constant(1 << 40).dtype, "int64")
        self.assertEqual(self.g.constant([1, 2]).dtype, "int32")
        self.assertEqual(self.g.constant(2.5).dtype, "float32")
        self.assertEqual(self.g.constant(np.float64(2.5)).dtype, "float64")
        self.assertEqual(self.g.constant([True]).dtype, "bool")
        self.assertEqual(self.g.constant("text").dtype, "string")

    def test_operators(self):
        a, b = self.g.constant([7.0, 8.0]), self.g.constant([2.0, 4.0])
        results = [a + b, a - b, a * b, a / b, a // b, a % b, a**b, -a, abs(-a), 1.0 / b, a > b]
        expected = [
            [9, 12],
            [5, 4],
            [14, 32],
            [3.5, 2],
            [3, 2],
            [1, 0],
            [49, 4096],
            [-7, -8],
            [7, 8],
            [0.5, 0.25],
            [True, True],
        ]
        for value, want in zip(self.run_in_session(results), expected):
            np.testing.assert_array_equal(value, want)
        left = np.ones(2, "float32") + a  # NumPy leaves it to the tensor
        self.assertIsInstance(left, weir.Tensor)
        with self.assertRaises(TypeError):
            bool(a)

    def test_names_are_unique_and_scoped(self):
        names = [self.g.op("Neg", self.x).op.name for _ in range(3)]
        self.assertEqual(names, ["Neg", "Neg_1", "Neg_2"])
        with self.g.name_scope("layer"):
            self.assertEqual(self.g.op("Neg", self.x, name="n").name, "layer/n:0")
        self.assertEqual(self.g.tensor("layer/n").op.type, "Neg")
        self.assertEqual(self.g.operation("layer/n").inputs, [self.x])
        self.assertIn(self.g.operation("Neg"), self.g.operations())
        for name in ("absent", "x:1", "x:a"):
            with self.assertRaises(weir.NotFoundError):
                self.g.tensor(name)

    def test_mistakes_say_what_is_wrong(self):
        with self.assertRaisesRegex(
            weir.InvalidArgumentError, "MatMul takes 2 inputs .a, b., got 1"
        ):
            self.g.op("MatMul", self.x)
        with self.assertRaisesRegex(weir.InvalidArgumentError, "no attribute 'transpose'"):
            self.g.op("MatMul", self.x, self.x, transpose=True)
        with self.assertRaisesRegex(
            TypeError, "Cast: attribute DstT: unknown element type 'int31'"
        ):
            self.g.op("Cast", self.x, DstT="int31")
        with self.assertRaisesRegex(
            TypeError, "argument b: expected an array of float32, got int64"
        ):
            self.g.op("MatMul", self.x, np.ones([2, 2], "int64"))
        with self.assertRaisesRegex(TypeError, "argument values is a list"):
            self.g.op("ConcatV2", self.x, 0)
        with self.assertRaisesRegex(weir.InvalidArgumentError, "rank 2"):
            self.g.op("MatMul", self.x, [1.0])
        with self.assertRaises(weir.NotFoundError):
            self.g.op("NoSuchOp", self.x)
        with self.assertRaises(ValueError):
            self.g.op("Neg", self.x, name="a\0b")
        self.assertEqual(self.g.op("Neg", self.x).op.name, "Neg")  # the graph is still good

    def test_control_inputs_run_before(self):
        v = self.g.variable("v", initializer="zeros")
        add = v.assign_add(1.0)
        late = self.g.op("Identity", 3.0, control_inputs=[add])
        with weir.Session(self.g) as session:
            session.initialize()
            session.run(late)
            session.run([], targets=[self.g.group(add, name="both")])
            self.assertEqual(session.run(v), 2)

    def test_gradients(self):
        w = self.g.variable("w", [2, 1], initializer="constant value=3")
        loss = self.g.op("Sum", self.g.op("Square", self.g.op("MatMul", self.x, w)), [0, 1])
        by_x, by_w, none = self.g.gradients(loss, [self.x, w, self.g.constant(1.0)])
        self.assertIsNone(none)
        with weir.Session(self.g) as session:
            session.initialize()
            values = session.run([by_x, by_w], {self.x: [[1, 2]]})
        np.testing.assert_array_equal(values[0], [[54, 54]])
        np.testing.assert_array_equal(values[1], [[18], [36]])

    def test_graph_defs(self):
        self.g.op("Neg", self.x, name="y")
        data = self.g.graph_def()
        other = weir.Graph()
        z = other.placeholder("float32", [None, 2], name="z")
        other.import_graph_def(data, prefix="copy", inputs={"x": z * 2})
        with open(self.path("g.pb"), "wb") as file:
            file.write(data)
        other.import_graph_def(self.path("g.pb"), prefix="again")
        with weir.Session(other) as session:
            np.testing.assert_array_equal(session.run("copy/y", {z: [[1, 2]]}), [[-2, -4]])
            np.testing.assert_array_equal(session.run("again/y", {"again/x": [[1, 2]]}), [[-1, -2]])
        with self.assertRaises(weir.InvalidArgumentError):
            other.import_graph_def(b"\xff\xff")

    def test_collections(self):
        v = self.g.variable("v", initializer="zeros", collections=["variables", "mine"])
        neg = self.g.op("Neg", self.x)
        self.g.add_to_collection("mine", neg)
        self.g.add_to_collection("mine", neg.op)
        self.assertEqual(self.g.collection("mine"), [v, neg, neg.op])
        self.assertEqual(self.g.variables(), [v])
        self.assertIn("trainable_variables", self.g.collections())
        self.assertEqual(self.g.collection("absent"), [])


if __name__ == "__main__":
    unittest.main()
