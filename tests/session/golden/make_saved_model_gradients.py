"""Writes saved_model_gradients/, a SavedModel of TensorFlow 2 with functions that have gradients of
their own, which use values of the forward computation.

    python3 make_saved_model_gradients.py

TensorFlow itself cannot restore such functions in branches and loops. Prints the gradients of the
results, which saved_model_gradients_test.cc expects.
"""

import os
import shutil

import tensorflow as tf


@tf.custom_gradient
def exp(x):
    """Its gradient takes its result and its argument."""
    y = tf.exp(x)
    return y, lambda dy: dy * (y * 2.0 + x)


@tf.custom_gradient
def swish(x):
    """Its gradient takes values between its argument and its result."""
    s = tf.sigmoid(x)
    return x * s, lambda dy: dy * s * 10.0


@tf.custom_gradient
def product(x, y):
    """Its gradient has a result for one of the arguments only."""
    return x * y, lambda dy: (None, dy * x * 3.0)


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable([1.5, 2.0], name="w")

        @tf.custom_gradient
        def scaled(x):
            w = self.w

            def grad(dy, variables=None):
                return dy * w * 10.0, [dy * x * 100.0]

            return x * w, grad

        self.scaled = scaled

    @tf.function
    def inner(self, x):
        return swish(x + 1.0)

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, name="x")])
    def serve(self, x):
        return {
            "exp": exp(x * 3.0),
            "variable": self.scaled(x),
            "called": self.inner(x),
            "partial": product(x * 2.0, x),
        }


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "saved_model_gradients")
    shutil.rmtree(path, ignore_errors=True)
    model = Model()
    tf.saved_model.save(model, path, signatures=model.serve,
                        options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    os.remove(os.path.join(path, "fingerprint.pb"))
    os.rmdir(os.path.join(path, "assets"))
    loaded = tf.saved_model.load(path)
    x = tf.constant([0.1, 0.2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        results = loaded.serve(x)
    for name, value in sorted(results.items()):
        print(name, [None if g is None else g.numpy().tolist()
                     for g in tape.gradient(value, [x, loaded.w])])


if __name__ == "__main__":
    main()
