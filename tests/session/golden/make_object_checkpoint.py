"""Writes object_checkpoint.*, a checkpoint of objects (tf.train.Checkpoint), with two variables of one name.

    python3 make_object_checkpoint.py
"""

import os

import tensorflow as tf


def main():
    model = tf.Module()
    model.kernel = tf.Variable([1.0, 2.0], name="net/w")
    model.bias = tf.Variable(3.0, name="net/b")
    model.twins = [tf.Variable(4.0, name="twin"), tf.Variable(5.0, name="twin")]
    folder = os.path.dirname(os.path.abspath(__file__))
    tf.train.Checkpoint(model=model).write(os.path.join(folder, "object_checkpoint"))


if __name__ == "__main__":
    main()
