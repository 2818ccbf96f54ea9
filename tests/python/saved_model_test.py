#!/usr/bin/env python3
"""SavedModels: written, loaded, called."""

import os
import unittest

import cases
import numpy as np

import weir


class SavedModelTest(cases.Case):
    def export(self, **options):
        """Writes a model with two signatures: f is 2 x, and g is 2 x + b."""
        g = weir.Graph()
        x = g.placeholder("float32", [None, 2], name="x")
        b = g.placeholder("float32", [2], name="b")
        w = g.variable("w", initial_value=2.0)
        y = g.op("Mul", x, w, name="y")
        signatures = {"f": ({"x": x}, {"y": y}), "g": ({"x": "x:0", "b": b}, {"sum": y + b})}
        with weir.Session(g) as session:
            session.initialize()
            session.export_saved_model(self.path("model"), signatures, **options)
            frozen = session.freeze(y)
        return frozen

    def test_signatures_are_functions(self):
        self.export()
        model = weir.load(self.path("model"), signature="f")
        self.assertEqual(sorted(model.signatures), ["f", "g"])
        x = np.array([[1, 2]], "float32")
        for got in (model(x), model(x=x), model({"x": x}), model([[1, 2]])):
            np.testing.assert_array_equal(got["y"], [[2, 4]])
        got = model.signatures["g"](x=x, b=[1, 1])
        np.testing.assert_array_equal(got["sum"], [[3, 5]])
        spec = model.signatures["g"].inputs["x"]
        self.assertEqual((spec.name, spec.dtype, spec.shape), ("x:0", "float32", (None, 2)))

    def test_arguments_are_checked(self):
        self.export()
        model = weir.load(self.path("model"))
        with self.assertRaisesRegex(weir.NotFoundError, "it has: f, g"):
            model(1)
        f, g = model.signatures["f"], model.signatures["g"]
        with self.assertRaisesRegex(TypeError, "float32, got float64"):
            f(np.ones([1, 2]))
        with self.assertRaisesRegex(weir.InvalidArgumentError, r"shape \(1, 3\), expected"):
            f(np.ones([1, 3], "float32"))
        with self.assertRaisesRegex(TypeError, "g takes b: float32.2., x: float32"):
            g(x=[[1, 2]])
        with self.assertRaisesRegex(TypeError, "by name"):
            g([[1, 2]])
        with self.assertRaises(weir.NotFoundError):
            weir.load(self.path("model"), signature="h")
        with self.assertRaises(weir.NotFoundError):
            weir.load(self.path("model"), tags=["train"])
        with self.assertRaises(weir.NotFoundError):
            weir.load(self.path("absent"))
        with self.assertRaises(weir.AlreadyExistsError):
            self.export()

    def test_frozen_graphs_need_no_variables(self):
        frozen = self.export(tags=["serve", "mine"])
        g = weir.Graph()
        g.import_graph_def(frozen)
        with weir.Session(g) as session:
            np.testing.assert_array_equal(session.run("y", {"x": [[1, 2]]}), [[2, 4]])
        model = weir.load(self.path("model"), tags=["mine", "serve"], signature="f")
        self.assertEqual(model.graph.variables()[0].name, "w")

    def test_models_of_tensorflow(self):
        for name in ("saved_model", "saved_model_tf2"):
            model = weir.load(os.path.join(cases.GOLDEN, name))
            self.assertTrue(model.signatures, name)
            for signature in model.signatures.values():
                if all(spec.dtype == "float32" for spec in signature.inputs.values()):
                    feeds = {
                        key: np.ones([size or 1 for size in spec.shape or ()], "float32")
                        for key, spec in signature.inputs.items()
                    }
                    got = signature(feeds)
                    self.assertEqual(sorted(got), sorted(signature.outputs))


if __name__ == "__main__":
    unittest.main()
