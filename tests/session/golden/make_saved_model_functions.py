"""Writes saved_model_functions/, a SavedModel of TensorFlow 2 whose functions have no signatures.

    python3 make_saved_model_functions.py

It has a table with an asset, two variables of one name, a constant, a function that was traced for
several types, one in an object of the model, an argument with a default, and one signature. Prints what some of
them answer, which saved_function_test.cc expects.
"""

import os
import shutil
import tempfile

import tensorflow as tf


class Scale(tf.Module):
    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(3.0, name="factor")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def times(self, x):
        return x * self.factor


class Model(tf.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.b = tf.Variable([10.0, 20.0], name="w")
        self.half = tf.constant([0.5, 0.25])
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                          tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
        self.scale = Scale()

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def affine(self, x):
        return {"y": tf.matmul(x, self.w) + self.b, "part": x * self.half}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def look(self, words):
        return self.table.lookup(words)

    @tf.function
    def poly(self, x, scale=2):
        return x * scale, [x + 1, None]

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="by")])
    def bump(self, by):
        self.b.assign_add([by, by])
        return self.b.read_value()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x"),
                                  tf.TensorSpec([], tf.float32, name="power")])
    def power(self, x, power=2.0):
        return {"result": x ** power}


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "saved_model_functions")
    shutil.rmtree(path, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # names of tables have the path of their file
        with open("animals.txt", "w", encoding="utf-8") as file:
            file.write("cat\ndog\nbird\n")
        model = Model("animals.txt")
        model.poly(tf.constant([1.0, 2.0]))
        model.poly(tf.constant(1))
        tf.saved_model.save(model, path, signatures={"power": model.power})
    os.remove(os.path.join(path, "fingerprint.pb"))
    loaded = tf.saved_model.load(path)
    print({k: v.numpy().tolist() for k, v in loaded.affine(tf.constant([[1.0, 1.0]])).items()})
    print(loaded.look(tf.constant(["bird", "fish"])).numpy().tolist())
    print(loaded.scale.times(tf.constant([2.0])).numpy().tolist())
    print(loaded.bump(tf.constant(1.0)).numpy().tolist())


if __name__ == "__main__":
    main()
