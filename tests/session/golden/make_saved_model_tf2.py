"""Writes saved_model_tf2/, a SavedModel of TensorFlow 2: functions, branches, loops and variables.

    python3 make_saved_model_tf2.py

Prints what its signature answers, which saved_model_test.cc expects.
"""

import os
import shutil

import tensorflow as tf


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable([2.0, 3.0], name="w")
        self.calls = tf.Variable(0, dtype=tf.int64, name="calls")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def serve(self, x):
        calls = self.calls.assign_add(1)
        y = x
        for _ in tf.range(3):
            y = y * self.w + 1.0
        if tf.reduce_sum(x) > 0.0:
            z = tf.reduce_sum(y, axis=1)
        else:
            z = -self.halved(y)
        return {"out": z, "calls": calls}

    @tf.function
    def halved(self, y):
        return tf.reduce_sum(y * 0.5, axis=1)


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "saved_model_tf2")
    shutil.rmtree(path, ignore_errors=True)
    model = Model()
    tf.saved_model.save(model, path, signatures=model.serve)
    os.remove(os.path.join(path, "fingerprint.pb"))
    os.rmdir(os.path.join(path, "assets"))
    loaded = tf.saved_model.load(path).signatures["serving_default"]
    for x in ([[1.0, 2.0], [3.0, 4.0]], [[-1.0, -2.0]]):
        print({k: v.numpy().tolist() for k, v in loaded(tf.constant(x)).items()})


if __name__ == "__main__":
    main()
