#!/usr/bin/env python3
"""weir model, on models that TensorFlow and Keras write, beside what TensorFlow answers.

Skipped without TensorFlow.
usage: model_command_test.py WEIR
"""

import json
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    import keras
    import numpy as np
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2
except ImportError as error:
    print("SKIPPED: no TensorFlow to compare with (%s)" % error)
    sys.exit(0)

v1 = tf.compat.v1

X = np.array([[1, 2, 3], [-4, 5, -6]], np.float32)


class Module(tf.Module):
    """Functions with variables, constants, tables and results of several forms."""

    def __init__(self, vocabulary):
        super().__init__()
        self.w = tf.Variable(tf.random.stateless_uniform([3, 2], [1, 2]), name="w")
        self.b = tf.Variable([5.0, 6.0], name="w")
        self.offset = tf.constant([0.5, 0.25])
        self.static = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                          tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 2)
        self.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1.0)
        self.mutable.insert(tf.constant(["cat", "dog"]), tf.constant([0.5, 0.75]))
        self.parts = [tf.Module(), tf.Module()]
        self.parts[1].v = tf.Variable(2.0, name="v")
        self.parts[1].times = tf.function(lambda x: x * self.parts[1].v,
                                          input_signature=[tf.TensorSpec([None, 3], name="x")])

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def affine(self, x):
        y = tf.matmul(x, self.w) + self.b
        return {"sum": y, "nest": (y * self.offset, [tf.nn.relu(y)])}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def affine_sum(self, x):
        return {"sum": self.affine(x)["sum"]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def look(self, words):
        return self.static.lookup(words), self.mutable.lookup(words)

    @tf.function(input_signature=[{"a": tf.TensorSpec([], name="a"), "b": tf.TensorSpec([], name="b")}])
    def of_dictionary(self, both):
        return both["a"] - both["b"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="sizes")])
    def ragged(self, sizes):
        return tf.RaggedTensor.from_row_lengths(tf.range(tf.reduce_sum(sizes)), sizes)

    @tf.function
    def double(self, x):
        return x + x


class Test:
    def __init__(self, weir, folder):
        self.weir_path, self.folder, self.faults = weir, folder, 0

    def expect(self, holds, text):
        print("%s  %s" % ("ok  " if holds else "FAIL", text), flush=True)
        self.faults += not holds

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def weir(self, *arguments):
        done = subprocess.run([self.weir_path, "model", *arguments], capture_output=True, text=True)
        self.expect(done.returncode == 0, "weir model %s %s" % (" ".join(arguments[:4]), done.stderr))
        return done.stdout

    def show(self, model):
        return json.loads(self.weir("show", model, "--json"))

    def value(self, value, name):
        """Returns the value as an argument: a file for numbers, JSON for texts."""
        value = np.asarray(value)
        if value.dtype.kind in "OSU":
            return json.dumps([v.decode() if isinstance(v, bytes) else v for v in value.tolist()])
        file = self.path("%s.npy" % name)
        np.save(file, value)
        return file

    def call(self, model, name, inputs, want, *options):
        """Calls a signature or function, and compares all its results with `want`."""
        feeds = [word for key, value in inputs.items()
                 for word in ("--feed", "%s=%s" % (key, self.value(value, "input")))]
        if len(inputs) > 1:  # each in a file of its own
            feeds = [word for i, (key, value) in enumerate(inputs.items())
                     for word in ("--feed", "%s=%s" % (key, self.value(value, "input%d" % i)))]
        files = {key: self.path("result%d.npy" % i) for i, key in enumerate(want)}
        fetches = [word for key, file in files.items() for word in ("--fetch", "%s=%s" % (key, file))]
        self.weir("run", model, *(["--signature", name] if name else []), *feeds, *fetches, *options)
        for key, file in files.items():
            got = np.load(file)
            self.expect(np.allclose(got, want[key], atol=1e-6), "%s of %s" % (key, name))

    def test_module(self):
        vocabulary = self.path("animals.txt")
        with open(vocabulary, "w", encoding="utf-8") as file:
            file.write("cat\ndog\nbird\n")
        module, words = Module(vocabulary), np.array([b"dog", b"cow"], object)
        module.double(tf.constant(X))
        module.double(tf.constant([1, 2]))
        affine, look = module.affine(tf.constant(X)), module.look(tf.constant(words))
        for model, signatures in (("without", None), ("several", {"affine": module.affine_sum, "look": module.look}),
                                  ("one", module.look)):
            model = self.path(model)
            tf.saved_model.save(module, model, signatures=signatures)
            shown = self.show(model)
            names = [function["name"] for function in shown["functions"]]
            wanted = {"affine", "look", "of_dictionary", "ragged", "double[0]", "double[1]", "parts.1.times"}
            self.expect(wanted <= set(names), "functions of %s: %s" % (model, names))
            self.expect(shown["assets"][0]["file"] == "animals.txt" and not shown["missing_ops"], "assets")
            if signatures is None:
                self.call(model, "affine", {"x": X},
                          {"sum": affine["sum"], "nest/0": affine["nest"][0], "nest/1/0": affine["nest"][1][0]})
                self.call(model, "look", {"words": words}, {"output_0": look[0], "output_1": look[1]})
            self.call(model, "parts.1.times", {"x": X}, {"output_0": X * 2})
            self.call(model, "of_dictionary", {"a": np.float32(3), "b": np.float32(1)}, {"output_0": 2})
            self.call(model, "double", {"x": X[:2]}, {"output_0": X + X})
            self.call(model, "double", {"x": np.array([1, 2], np.int32)}, {"output_0": [2, 4]})
            self.call(model, "ragged", {"sizes": np.array([2, 1], np.int64)},
                      {"output_0": [0, 1, 2], "output_1": [0, 2, 3]})
        self.call(self.path("one"), "", {"words": words}, {"output_0": look[0], "output_1": look[1]})
        self.call(self.path("several"), "look", {"words": words}, {"output_0": look[0], "output_1": look[1]})

    def test_defaults(self):
        """A signature with a default value, as a SignatureDef holds it."""
        model = self.path("defaults")
        module = tf.Module()
        module.power = tf.function(lambda x, power: x ** power,
                                   input_signature=[tf.TensorSpec([None], name="x"), tf.TensorSpec([], name="power")])
        tf.saved_model.save(module, model, signatures=module.power)
        saved = saved_model_pb2.SavedModel()
        with open(os.path.join(model, "saved_model.pb"), "rb") as file:
            saved.ParseFromString(file.read())
        signature = saved.meta_graphs[0].signature_def["serving_default"]
        signature.defaults["power"].CopyFrom(tf.make_tensor_proto(2.0))
        with open(os.path.join(model, "saved_model.pb"), "wb") as file:
            file.write(saved.SerializeToString())
        self.call(model, "", {"x": np.float32([3])}, {"output_0": [9]})
        self.call(model, "", {"x": np.float32([3]), "power": np.float32(3)}, {"output_0": [27]})

    def test_keras3(self):
        layers = [keras.Input((3,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2)]
        network, model = keras.Sequential(layers), self.path("keras3")
        network.export(model, verbose=False)
        want = network(X).numpy()
        name = self.show(model)["signatures"][0]["inputs"][0]["name"]
        self.call(model, "", {name: X}, {"output_0": want})
        functions = self.show(model)["functions"]
        self.expect([f["name"] for f in functions] == ["serve"], "functions: %s" % functions)
        os.rename(os.path.join(model, "saved_model.pb"), os.path.join(model, "whole.pb"))
        self.without_signatures(os.path.join(model, "whole.pb"), os.path.join(model, "saved_model.pb"))
        self.call(model, "", {functions[0]["inputs"][0]["name"]: X}, {"output_0": want})

    @staticmethod
    def without_signatures(path, to):
        saved = saved_model_pb2.SavedModel()
        with open(path, "rb") as file:
            saved.ParseFromString(file.read())
        saved.meta_graphs[0].signature_def.clear()
        with open(to, "wb") as file:
            file.write(saved.SerializeToString())

    def test_v1(self):
        """A SavedModel of TensorFlow 1 whose tables no init op initializes, and a checkpoint."""
        vocabulary, model = self.path("v1.txt"), self.path("v1")
        with open(vocabulary, "w", encoding="utf-8") as file:
            file.write("one\ntwo\n")
        with tf.Graph().as_default(), v1.Session() as session:
            words = v1.placeholder(tf.string, [None], "words")
            x = v1.placeholder(tf.float32, [None, 3], "x")
            w = v1.get_variable("w", initializer=np.ones([3, 2], np.float32))
            table = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                              tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
            rows, y = table.lookup(words), tf.matmul(x, w)
            session.run(v1.global_variables_initializer())
            signatures = {
                "rows": v1.saved_model.predict_signature_def({"words": words}, {"rows": rows}),
                "product": v1.saved_model.predict_signature_def({"x": x}, {"y": y})}
            builder = v1.saved_model.Builder(model)
            builder.add_meta_graph_and_variables(
                session, ["serve"], signatures,
                assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS))
            builder.save()
            v1.train.Saver().save(session, self.path("run", "model"), global_step=7)
        os.remove(vocabulary)  # the model has its own copy
        self.call(model, "rows", {"words": np.array([b"two", b"six"], object)}, {"rows": [1, -1]}, "--init")
        self.call(model, "product", {"x": X}, {"y": X.sum(1, keepdims=True) * [1, 1]})
        shown = self.show(self.path("run"))
        self.expect(shown["kind"] == "MetaGraph" and shown["checkpoint"]["tensors"] == 1, "a checkpoint's folder")


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(sys.argv[1]), folder)
        test.test_module()
        test.test_defaults()
        test.test_keras3()
        test.test_v1()
        print("%d faults" % test.faults)
        return test.faults


if __name__ == "__main__":
    sys.exit(main())
