#!/usr/bin/env python3
"""TensorFlow 2 loads, calls and trains the models of objects that weir writes.

Skipped without TensorFlow.
usage: object_export_test.py WEIR
"""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    import keras
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print("SKIPPED: no TensorFlow to compare with (%s)" % error)
    sys.exit(0)

v1 = tf.compat.v1

X = np.array([[1, 2, 3], [-4, 5, -6]], np.float32)
WORDS = np.array([b"two", b"six"])


class Test:
    def __init__(self, weir, folder):
        self.weir_path, self.folder, self.faults = weir, folder, 0

    def expect(self, holds, text):
        print("%s  %s" % ("ok  " if holds else "FAIL", text), flush=True)
        self.faults += not holds

    def expect_same(self, got, want, text):
        far = np.max(np.abs(np.asarray(got, np.float64) - np.asarray(want, np.float64)))
        self.expect(far < 1e-6, "%s: %.1e apart" % (text, far))

    def weir(self, *arguments):
        done = subprocess.run([self.weir_path, *arguments], capture_output=True, text=True)
        self.expect(done.returncode == 0, "weir %s %s%s" % (" ".join(arguments[:2]), done.stdout.strip(), done.stderr))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_words(self, name, words):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("".join(word + "\n" for word in words))
        return self.path(name)

    def export_v1(self, name, resource, words):
        """Trains a network of TensorFlow 1 with a table for a step, exports it, and returns its values."""
        vocabulary = self.write_words(name + ".txt", words)
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(1)
            with v1.variable_scope("net", use_resource=resource):
                x = v1.placeholder(tf.float32, [None, 3], "x")
                text = v1.placeholder(tf.string, [None], "text")
                w, b = v1.get_variable("w", [3, 3]), v1.get_variable("b", [3])
                scale = v1.get_variable("scale", initializer=2.0, trainable=False)
            table = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                              tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
            y = tf.identity(tf.tanh(tf.matmul(x, w) + b) * scale, "y")
            tf.identity(table.lookup(text), "rows")
            step = v1.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w) + b)))
            tables = tf.group(v1.tables_initializer(), name="init_tables")
            session.run([v1.global_variables_initializer(), tables])
            session.run(step, {x: X})
            v1.train.Saver().save(session, self.path(name))
            feeds = {x: X, text: WORDS}
            values = session.run({"y": y, "rows": "rows:0", "w": w, "gradient": tf.gradients(y, w)[0]}, feeds)
        self.weir("graph", "export", self.path(name + ".meta"), "--checkpoint", self.path(name),
                  "--input", "x=net/x", "--input", "text=net/text", "--output", "y=y", "--output", "rows=rows",
                  "--signature", "look", "--init", "init_tables", "--objects", "-o", self.path(name + "_objects"))
        os.remove(vocabulary)  # the model has its own copy
        return values

    def test_v1(self, name, resource):
        want = self.export_v1(name, resource, ["one", "two"])
        folder = self.path(name + "_objects")
        model = tf.saved_model.load(folder)
        names = {variable.name: variable.trainable for variable in model.variables}
        self.expect(names["net/w:0"] and names["net/b:0"] and not names["net/scale:0"] and
                    not names["net/w/Adam:0"], "variables and their flags: %s" % names)
        self.expect(len(model.trainable_variables) == 2, "variables to train")
        inputs = {"x": tf.constant(X), "text": tf.constant(WORDS)}
        self.expect_same(model.signatures["look"](**inputs)["y"], want["y"], "the signature")
        self.expect(model.look(inputs["text"], inputs["x"])["rows"].numpy().tolist() == [1, -1], "the table, by a method")
        with tf.GradientTape() as tape:
            y = model.look(**inputs)["y"]
        gradient = tape.gradient(y, model.net.w)
        self.expect_same(gradient, want["gradient"], "the gradient")
        model.net.w.assign_sub(0.1 * gradient)
        again = model.look(**inputs)["y"]
        changed = np.tanh(X @ (want["w"] - 0.1 * want["gradient"]) + model.net.b.numpy()) * 2
        self.expect_same(again / 2, changed / 2, "after a step of training")
        tf.saved_model.save(model, self.path(name + "_again"), signatures=model.signatures)
        saved = tf.saved_model.load(self.path(name + "_again"))
        self.expect_same(saved.signatures["look"](**inputs)["y"], again, "saved by TensorFlow and loaded")
        with tf.Graph().as_default(), v1.Session() as session:
            signature = v1.saved_model.load(session, ["serve"], folder).signature_def["look"]
            got = session.run([signature.outputs["y"].name, signature.outputs["rows"].name],
                              {signature.inputs["x"].name: X, signature.inputs["text"].name: WORDS})
        self.expect_same(got[0], want["y"], "loaded as TensorFlow 1 does")
        self.expect(got[1].tolist() == [1, -1], "its table, there")

    def test_tables_of_two_models(self):
        """Two models in one process, whose tables have one name in their graphs."""
        self.export_v1("first", True, ["one", "two"])
        self.export_v1("second", True, ["two", "six"])
        models = [tf.saved_model.load(self.path(name + "_objects")) for name in ("first", "second")]
        rows = [model.look(tf.constant(WORDS), tf.constant(X))["rows"].numpy().tolist() for model in models]
        self.expect(rows == [[1, -1], [0, 1]], "tables of two models: %s" % rows)

    def test_control_flow(self, resource, flow_v2):
        (v1.enable_control_flow_v2 if flow_v2 else v1.disable_control_flow_v2)()
        kind = "flow_%d%d" % (resource, flow_v2)
        with tf.Graph().as_default(), v1.Session() as session:
            with v1.variable_scope("net", use_resource=resource):
                x = v1.placeholder(tf.float32, [None, 3], "x")
                w, table = v1.get_variable("w", [3, 3]), v1.get_variable("table", [3, 3])
            _, h = tf.while_loop(lambda i, h: i < 3,
                                 lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + tf.gather(table, [i]))), [0, x])
            y = tf.cond(tf.reduce_sum(x) > 0, lambda: h + w[1], lambda: h - w[0])
            y = tf.identity(y, "y")
            gradient = tf.gradients(y, w)[0]
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, self.path(kind))
            want = [session.run([y, gradient], {x: sign * X}) for sign in (1, -1)]
        folder = self.path(kind + "_objects")
        self.weir("graph", "export", self.path(kind + ".meta"), "--checkpoint", self.path(kind), "--input", "x=net/x",
                  "--output", "y=y", "--signature", "f", "--objects", "-o", folder)
        model = tf.saved_model.load(folder)
        for sign, (value, gradient) in zip((1, -1), want):
            with tf.GradientTape() as tape:
                got = model.f(tf.constant(sign * X))["y"] if flow_v2 else None
            if flow_v2:  # TensorFlow 2 does not differentiate loops of nodes
                self.expect_same(tape.gradient(got, model.net.w), gradient, "gradient of %s" % kind)
            self.expect_same(model.f(tf.constant(sign * X))["y"], value, kind)

    def test_v2(self):
        class Module(tf.Module):
            def __init__(self, vocabulary):
                super().__init__()
                self.w = tf.Variable(tf.random.stateless_uniform([3, 2], [1, 2]), name="w")
                self.mean = tf.Variable([0.5, 0.25], name="mean", trainable=False)
                self.words = tf.lookup.StaticHashTable(
                    tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                                  tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
                self.numbers = tf.lookup.StaticHashTable(
                    tf.lookup.KeyValueTensorInitializer(tf.constant(["six"]), tf.constant([6], tf.int64)), 0)

            @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x"), tf.TensorSpec([None], tf.string, "text")])
            def __call__(self, x, text):
                return {"y": tf.matmul(x, self.w) - self.mean,
                        "rows": self.words.lookup(text) + self.numbers.lookup(text)}

        module = Module(self.write_words("v2.txt", ["one", "two"]))
        tf.saved_model.save(module, self.path("v2"), signatures=module.__call__)
        os.remove(self.path("v2.txt"))
        want = module(tf.constant(X), tf.constant(WORDS))
        for name, options in (("v2_plain", []), ("v2_objects", ["--objects"])):
            self.weir("graph", "export", self.path("v2"), *options, "-o", self.path(name))
            model = tf.saved_model.load(self.path(name))
            got = model.signatures["serving_default"](x=tf.constant(X), text=tf.constant(WORDS))
            self.expect_same(got["y"], want["y"], "%s of TensorFlow 2" % name)
            self.expect(got["rows"].numpy().tolist() == want["rows"].numpy().tolist(), "its tables and asset")
        names = [[variable.name for variable in variables]
                 for variables in (model.trainable_variables, model.non_trainable_variables)]
        self.expect(names == [["w:0"], ["mean:0"]], "its variables: %s" % names)

    def test_mutable_tables(self):
        class Module(tf.Module):
            def __init__(self):
                super().__init__()
                self.rows = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
                self.vectors = tf.lookup.experimental.DenseHashTable(
                    tf.int64, tf.float32, default_value=[0.0, 0.0], empty_key=-1, deleted_key=-2, initial_num_buckets=8)
                self.w = tf.Variable(2.0)

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
            def look(self, text):
                rows = self.rows.lookup(text)
                return {"rows": rows, "vectors": self.vectors.lookup(rows) * self.w}

        module = Module()
        module.rows.insert(tf.constant(["one", "six"]), tf.constant([1, 6], tf.int64))
        module.vectors.insert(tf.constant([6], tf.int64), tf.constant([[1.5, 2.5]]))
        tf.saved_model.save(module, self.path("mutable"), signatures={"look": module.look})
        folder = self.path("mutable_objects")
        self.weir("graph", "export", self.path("mutable"), "--objects", "-o", folder)
        model = tf.saved_model.load(folder)
        got = model.look(tf.constant(WORDS))
        self.expect(got["rows"].numpy().tolist() == [0, 6], "contents of a mutable table")
        self.expect(got["vectors"].numpy().tolist() == [[0, 0], [3, 5]], "contents of a dense table")
        tf.saved_model.save(model, self.path("mutable_again"), signatures=model.signatures)
        again = tf.saved_model.load(self.path("mutable_again")).signatures["look"](text=tf.constant(WORDS))
        self.expect(again["rows"].numpy().tolist() == [0, 6], "saved by TensorFlow and loaded")
        with tf.Graph().as_default(), v1.Session() as session:
            signature = v1.saved_model.load(session, ["serve"], folder).signature_def["look"]
            rows = session.run(signature.outputs["rows"].name, {signature.inputs["text"].name: WORDS})
        self.expect(rows.tolist() == [0, 6], "mutable tables, loaded as TensorFlow 1 does")

    def test_keras(self):
        network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="relu"),
                                    keras.layers.BatchNormalization(), keras.layers.Dense(2)])
        network.export(self.path("keras"), verbose=False)
        self.weir("graph", "export", self.path("keras"), "--objects", "-o", self.path("keras_objects"))
        model = tf.saved_model.load(self.path("keras_objects"))
        serve = model.signatures["serving_default"]
        name = list(serve.structured_input_signature[1])[0]
        with tf.GradientTape() as tape:
            got = serve(**{name: tf.constant(X)})["output_0"]
        self.expect_same(got, network(X), "a network of Keras")
        gradients = tape.gradient(got, list(model.trainable_variables))
        self.expect(len(gradients) == 6 and all(g is not None for g in gradients) and
                    len(model.non_trainable_variables) == 2, "its gradients")

    def test_odd_names(self):
        """Names that are no names in Python, and a model without variables."""
        with tf.Graph().as_default():
            x = v1.placeholder(tf.float32, [None], "x")
            tf.identity(x * 2, "y")
            v1.train.write_graph(v1.get_default_graph(), self.folder, "odd.pb", as_text=False)
        self.weir("graph", "export", self.path("odd.pb"), "--input", "in/a b=x", "--output", "out-1=y",
                  "--signature", "class", "--objects", "-o", self.path("odd"))
        model = tf.saved_model.load(self.path("odd"))
        got = model.signatures["class"](**{"in/a b": tf.constant([1.5])})
        self.expect(list(got) == ["out-1"] and got["out-1"].numpy() == [3] and not list(model.variables), "odd names")


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(sys.argv[1]), folder)
        for resource in (False, True):
            test.test_v1("resource" if resource else "reference", resource)
            for flow_v2 in (False, True):
                test.test_control_flow(resource, flow_v2)
        test.test_tables_of_two_models()
        test.test_v2()
        test.test_mutable_tables()
        test.test_keras()
        test.test_odd_names()
        print("%d faults" % test.faults)
        return test.faults


if __name__ == "__main__":
    sys.exit(main())
