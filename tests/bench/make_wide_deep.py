#!/usr/bin/env python3
"""Writes the graphs and data of W15, a wide and deep model of clicks, and TensorFlow's results.

usage: make_wide_deep.py FOLDER

The records have the columns of Criteo's logs: 13 numbers and 26 strings, and here a list of
integers. A data set reads, shuffles, batches and parses them; TensorFlow's feature columns hash the
strings, cut the numbers into buckets, cross columns, and look up embeddings, as the public wide and
deep models and DNNLinearCombinedClassifier build them. Ftrl trains the linear part and Adagrad the
deep one. FOLDER gets

    w15_clicks.tfrecord       the records
    w15_parsed_bN.pb          the data set alone: `init_all`, `numbers`, `hashes`, `labels`
    w15_wide_deep_bN.pb       data set, model and updates: `init_all`, `loss`, `train`
    and TensorFlow's values of the first steps as .npz
"""

import os

import numpy as np
from model_graphs import Model, main

NUMBERS = ["d%d" % i for i in range(13)]
STRINGS = ["c%d" % i for i in range(26)]
LONGEST = 30


def write_records(tf, path, count):
    if os.path.exists(path):
        return
    random = np.random.RandomState(0)
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(count):
            example = tf.train.Example()
            features = example.features.feature
            numbers = random.exponential(size=len(NUMBERS))
            for name, value in zip(NUMBERS, numbers):
                features[name].float_list.value.append(value)
            # Few values are frequent, as in logs.
            for name, value in zip(STRINGS, random.zipf(1.3, len(STRINGS)) % 1000000):
                features[name].bytes_list.value.append(b"%08x" % (value * 2654435761 % (1 << 32)))
            visited = random.randint(0, 1000, random.randint(1, LONGEST))
            features["visited"].int64_list.value.extend(visited.tolist())
            features["label"].int64_list.value.append(int(numbers[0] + random.normal() > 1))
            writer.write(example.SerializeToString())


def batches(tf, path, batch):
    """Returns the parsed features of an iterator, and its initializer."""
    spec = {name: tf.FixedLenFeature([1], tf.float32) for name in NUMBERS}
    spec.update({name: tf.FixedLenFeature([1], tf.string) for name in STRINGS})
    spec.update(visited=tf.VarLenFeature(tf.int64), label=tf.FixedLenFeature([1], tf.int64))
    data = tf.data.TFRecordDataset(path).shuffle(2048, seed=1).repeat().batch(batch, drop_remainder=True)
    data = data.map(lambda records: tf.io.parse_example(records, spec), num_parallel_calls=tf.data.AUTOTUNE)
    iterator = tf.data.make_initializable_iterator(data.prefetch(2))
    return iterator.get_next(), iterator.initializer


class Columns:
    """The feature columns of both parts."""

    def __init__(self, tf, buckets, width):
        fc = tf.feature_column
        numbers = [fc.numeric_column(name) for name in NUMBERS]
        strings = [fc.categorical_column_with_hash_bucket(name, buckets) for name in STRINGS]
        visited = fc.categorical_column_with_identity("visited", 1000, default_value=0)
        cut = [fc.bucketized_column(column, [0.1, 0.3, 0.7, 1.0, 2.0, 4.0]) for column in numbers]
        pairs = [("c0", "c1"), ("c2", "c3"), (cut[0], "c4"), (cut[1], cut[2])]
        crossed = [fc.crossed_column(pair, buckets) for pair in pairs]
        self.wide = cut + strings + crossed
        initial = lambda i: tf.truncated_normal_initializer(stddev=width**-0.5, seed=i)  # noqa: E731
        self.deep = numbers + [
            fc.embedding_column(column, width, initializer=initial(i))
            for i, column in enumerate(strings + [visited])
        ]
        self.deep.append(fc.indicator_column(cut[3]))


def network(tf, columns, features, layers):
    with tf.variable_scope("linear"):
        wide = tf.feature_column.linear_model(features, columns.wide)
    with tf.variable_scope("dnn"):
        x = tf.feature_column.input_layer(features, columns.deep)
        for i, width in enumerate(layers + [1]):
            initial = tf.glorot_uniform_initializer(seed=100 + i)
            kernel = tf.get_variable("kernel_%d" % i, [x.shape[-1], width], initializer=initial)
            bias = tf.get_variable("bias_%d" % i, [width], initializer=tf.zeros_initializer())
            x = tf.nn.bias_add(tf.matmul(x, kernel), bias)
            x = tf.nn.relu(x) if i < len(layers) else x
    return wide + x


def train(tf, columns, features, initializer, layers):
    labels = tf.cast(features.pop("label"), tf.float32)
    logits = network(tf, columns, features, layers)
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(entropy, name="loss")
    of = lambda scope: tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)  # noqa: E731
    wide = tf.train.FtrlOptimizer(0.2).minimize(loss, var_list=of("linear"))
    deep = tf.train.AdagradOptimizer(0.05).minimize(loss, var_list=of("dnn"))
    tf.group(wide, deep, name="train")
    tf.group(tf.global_variables_initializer(), initializer, name="init_all")


def models(small=False):
    batch, count, buckets, width = (32, 200, 50, 4) if small else (512, 16384, 100000, 16)
    layers = [16, 8] if small else [256, 128, 64]

    def data(tf, folder):
        path = os.path.join(os.path.abspath(folder), "w15_clicks.tfrecord")
        write_records(tf, path, count)
        return batches(tf, path, batch)

    def parsed(tf, folder):
        features, initializer = data(tf, folder)
        hashes = [tf.string_to_hash_bucket_fast(features[name], buckets) for name in STRINGS]
        tf.concat([features[name] for name in NUMBERS], 1, name="numbers")
        tf.concat(hashes, 1, name="hashes")
        tf.identity(features["visited"].values, name="visited")
        tf.identity(features["label"], name="labels")
        tf.group(initializer, name="init_all")

    def wide_deep(tf, folder):
        features, initializer = data(tf, folder)
        train(tf, Columns(tf, buckets, width), features, initializer, layers)

    fetches = ["hashes", "numbers", "visited", "labels"]
    return [
        Model("w15_parsed_b%d" % batch, parsed, fetches, init="init_all"),
        Model("w15_wide_deep_b%d" % batch, wide_deep, ["loss"], init="init_all", target="train", tolerance=1e-5),
    ]  # fmt: skip


if __name__ == "__main__":
    main("W15", __doc__)
