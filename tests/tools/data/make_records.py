#!/usr/bin/env python3
"""Writes golden/examples.tfrecord with TensorFlow: Examples and a SequenceExample with all kinds of values.

    make_records.py FOLDER
"""

import os
import sys

import tensorflow as tf


def ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def strings(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features))


def picture():
    """A PNG of 4 by 2 pixels: red, green, blue and white above, black below."""
    top = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]
    return tf.io.encode_png(tf.constant([top, [[0, 0, 0]] * 4], tf.uint8)).numpy()


def sequence():
    frames = [strings(b"a"), strings(b"b", b"c"), strings()]
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={"id": ints(7)}),
        feature_lists=tf.train.FeatureLists(feature_list={"words": tf.train.FeatureList(feature=frames)}))


def records():
    nan, inf = float("nan"), float("inf")
    yield example(label=ints(3), score=floats(0.1, 1.0, 16777216.0), name=strings(b"cat"), image=strings(picture()))
    yield example(label=ints(2**63 - 1, -2**63, 2**53 + 1), score=floats(nan, inf, -inf, -0.0, 1e-45),
                  name=strings("größe\n\"x\", [y".encode(), b"\xff\xfe", b""))
    yield example(label=ints(), score=floats(), name=strings(), none=tf.train.Feature())
    yield sequence()


def main():
    with tf.io.TFRecordWriter(os.path.join(sys.argv[1], "examples.tfrecord")) as writer:
        for record in records():
            writer.write(record.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
