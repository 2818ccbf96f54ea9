#!/usr/bin/env python3
"""Writes the graphs of W12, BERT-base as Google's public code builds it, and TensorFlow's results.

usage: make_bert.py FOLDER

The networks are those of modeling.py and run_classifier.py, op by op: gathered and one-hot
embeddings, layer norms from moments and batch_normalization, an attention mask that is added to the
scaled scores, and GELU as a tanh. The weights are random. FOLDER gets

    w12_bert.pb        frozen: input_ids, input_mask and segment_ids, [batch, length], to `pooled`
    w12_bert_train.pb  variables, the gradient of a classifier and its update by Adam with weight
                       decay and clipped gradients (optimization.py): `init_all`, `loss`, `train`
    w12_bert.onnx      the frozen graph for ONNX Runtime, if this Python has tf2onnx
    w12_bert_BxL.npy   TensorFlow's `pooled` for the feeds of size B x L
    w12_bert_train_BxL.npy  the loss of its fifth training step

Needs a Python with TensorFlow, 6 GB of memory, and 1 GB in FOLDER.
"""

import argparse
import importlib.util
import math
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
from model_graphs import integers


class Network(NamedTuple):
    vocabulary: int = 30522
    width: int = 768
    layers: int = 12
    heads: int = 12
    longest: int = 512


CLASSES = 2
SIZES = [(1, 16), (1, 128), (8, 128), (16, 384)]
TRAINING_SIZE = (8, 128)
RANGES = {"input_ids": Network().vocabulary, "input_mask": 2, "segment_ids": 2}  # exclusive bounds


def feeds(batch, length):
    return {name: integers((batch, length), bound) for name, bound in RANGES.items()}


def training_feeds(batch, length):
    return dict(feeds(batch, length), labels=integers((batch,), CLASSES))


def check(name, result, folder):
    """Exits unless the result of the workload agrees with TensorFlow's to a thousandth."""
    expected = np.load(os.path.join(folder, name + ".npy"))
    difference = float(np.max(np.abs(result - expected)) / np.max(np.abs(expected)))
    if not difference < 1e-3:
        sys.exit("%s: differs from TensorFlow's result by %.2g" % (name, difference))


class Bert:
    """The network; `dropout` is the probability of training, or 0. Variables are float32 and are
    cast to `dtype`, in which the network computes."""

    def __init__(self, tf, dropout=0.0, network=Network(), dtype="float32"):
        self.tf, self.dropout, self.network, self.seed = tf, dropout, network, 0
        self.dtype = tf.as_dtype(dtype)

    def next_seed(self):
        self.seed += 1
        return self.seed

    def variable(self, name, shape, initializer=None):
        tf = self.tf
        initializer = initializer or tf.truncated_normal_initializer(stddev=0.02, seed=self.next_seed())
        value = tf.get_variable(name, shape, initializer=initializer, use_resource=False)
        return value if self.dtype == tf.float32 else tf.cast(value, self.dtype)

    def sizes(self, x):
        """get_shape_list: the known extents as numbers, the others as scalars of the graph."""
        shape = self.tf.shape(x)
        return [shape[i] if n is None else n for i, n in enumerate(x.shape.as_list())]

    def dense(self, x, width, activation=None):
        tf = self.tf
        kernel = self.variable("kernel", [x.shape[-1], width])
        bias = self.variable("bias", [width], tf.zeros_initializer())
        y = tf.nn.bias_add(tf.matmul(x, kernel), bias)
        return y if activation is None else activation(y)

    def drop(self, x):
        return self.tf.nn.dropout(x, rate=self.dropout, seed=self.next_seed()) if self.dropout else x

    def layer_norm(self, x):
        tf, width = self.tf, self.network.width
        with tf.variable_scope("LayerNorm"):
            beta = self.variable("beta", [width], tf.zeros_initializer())
            gamma = self.variable("gamma", [width], tf.ones_initializer())
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)

    def gelu(self, x):
        tf = self.tf
        return x * (0.5 * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3)))))

    def embeddings(self, ids, segments):
        tf, width = self.tf, self.network.width
        batch, length = self.sizes(ids)
        with tf.variable_scope("embeddings"):
            words = self.variable("word_embeddings", [self.network.vocabulary, width])
            x = tf.reshape(tf.gather(words, tf.reshape(ids, [-1])), [batch, length, width])
            types = self.variable("token_type_embeddings", [2, width])
            one_hot = tf.one_hot(tf.reshape(segments, [-1]), depth=2, dtype=self.dtype)
            x += tf.reshape(tf.matmul(one_hot, types), [batch, length, width])
            with tf.control_dependencies([tf.assert_less_equal(length, self.network.longest)]):
                table = self.variable("position_embeddings", [self.network.longest, width])
                positions = tf.slice(table, [0, 0], [length, -1])
            x += tf.reshape(positions, [1, length, width])
            return self.drop(self.layer_norm(x))

    def attention(self, x, mask, batch, length):
        tf, width, heads = self.tf, self.network.width, self.network.heads
        size = width // heads

        def split(name):
            with tf.variable_scope(name):
                y = tf.reshape(self.dense(x, width), [batch, length, heads, size])
            return y if name == "value" else tf.transpose(y, [0, 2, 1, 3])

        query, key, value = split("query"), split("key"), split("value")
        scores = tf.matmul(query, key, transpose_b=True)
        scores = tf.multiply(scores, 1.0 / math.sqrt(size))
        scores += (1.0 - tf.cast(tf.expand_dims(mask, axis=[1]), self.dtype)) * -10000.0
        weights = self.drop(tf.nn.softmax(scores))
        value = tf.transpose(tf.reshape(value, [batch, length, heads, size]), [0, 2, 1, 3])
        y = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        return tf.reshape(y, [batch * length, width])

    def layer(self, x, mask, batch, length):
        tf, width = self.tf, self.network.width
        with tf.variable_scope("attention"):
            with tf.variable_scope("self"):
                y = self.attention(x, mask, batch, length)
            with tf.variable_scope("output"):
                y = self.layer_norm(self.drop(self.dense(y, width)) + x)
        with tf.variable_scope("intermediate"):
            z = self.dense(y, 4 * width, self.gelu)
        with tf.variable_scope("output"):
            return self.layer_norm(self.drop(self.dense(z, width)) + y)

    def pooled(self):
        tf, width = self.tf, self.network.width
        fed = [tf.placeholder(tf.int32, [None, None], name=name) for name in RANGES]
        ids, input_mask, segments = fed
        with tf.variable_scope("bert"):
            x = self.embeddings(ids, segments)
            batch, length = self.sizes(ids)
            to_mask = tf.cast(tf.reshape(input_mask, [batch, 1, length]), self.dtype)
            mask = tf.ones([batch, length, 1], self.dtype) * to_mask
            with tf.variable_scope("encoder"):
                x = tf.reshape(x, [-1, width])
                for i in range(self.network.layers):
                    with tf.variable_scope("layer_%d" % i):
                        x = self.layer(x, mask, batch, length)
                x = tf.reshape(x, [batch, length, width])
            with tf.variable_scope("pooler"):
                first = tf.squeeze(x[:, 0:1, :], axis=1)
                return self.dense(first, width, tf.tanh)


def write_inference(tf, folder):
    path = os.path.join(folder, "w12_bert.pb")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.identity(Bert(tf).pooled(), name="pooled")
        session.run(tf.global_variables_initializer())
        graph = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["pooled"])
        with open(path, "wb") as file:
            file.write(graph.SerializeToString())
        for batch, length in SIZES:
            fed = {name + ":0": value for name, value in feeds(batch, length).items()}
            result = session.run("pooled:0", fed)
            np.save(os.path.join(folder, "w12_bert_%dx%d.npy" % (batch, length)), result)
    return path


def update(tf, loss):
    """AdamWeightDecayOptimizer, with gradients clipped by their global norm."""
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), clip_norm=1.0)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.polynomial_decay(2e-5, step, 100000, end_learning_rate=0.0)
    assigns = []
    for gradient, variable in zip(gradients, variables):
        slot = lambda name: tf.get_variable(  # noqa: E731
            variable.op.name + name, variable.shape, trainable=False,  # noqa: B023
            initializer=tf.zeros_initializer(), use_resource=False,
        )  # fmt: skip
        m, v = slot("/adam_m"), slot("/adam_v")
        next_m = tf.multiply(0.9, m) + tf.multiply(1.0 - 0.9, gradient)
        next_v = tf.multiply(0.999, v) + tf.multiply(1.0 - 0.999, tf.square(gradient))
        change = next_m / (tf.sqrt(next_v) + 1e-6)
        if not any(part in variable.op.name for part in ("LayerNorm", "bias")):
            change += 0.01 * variable
        assigns += [variable.assign(variable - rate * change), m.assign(next_m), v.assign(next_v)]
    return tf.group(*assigns, step.assign(step + 1), name="train")


def write_training(tf, folder):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        bert = Bert(tf, dropout=0.1)
        pooled = bert.drop(bert.pooled())
        labels = tf.placeholder(tf.int32, [None], name="labels")
        weights = bert.variable("output_weights", [CLASSES, bert.network.width])
        bias = bert.variable("output_bias", [CLASSES], tf.zeros_initializer())
        logits = tf.nn.bias_add(tf.matmul(pooled, weights, transpose_b=True), bias)
        log_probabilities = tf.nn.log_softmax(logits, axis=-1)
        one_hot = tf.one_hot(labels, depth=CLASSES, dtype=tf.float32)
        loss = tf.reduce_mean(-tf.reduce_sum(one_hot * log_probabilities, axis=-1))
        update(tf, tf.identity(loss, name="loss"))
        tf.group(tf.global_variables_initializer(), name="init_all")
        with open(os.path.join(folder, "w12_bert_train.pb"), "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        session.run("init_all")
        fed = {name + ":0": value for name, value in training_feeds(*TRAINING_SIZE).items()}
        for _ in range(5):
            loss = session.run(["loss:0", "train"], fed)[0]
        np.save(os.path.join(folder, "w12_bert_train_%dx%d.npy" % TRAINING_SIZE), loss)


def write_onnx(frozen):
    inputs = ",".join(name + ":0" for name in RANGES)
    subprocess.run(
        [sys.executable, "-m", "tf2onnx.convert", "--graphdef", frozen, "--inputs", inputs,
         "--outputs", "pooled:0", "--opset", "17", "--output", frozen.removesuffix("pb") + "onnx"],
        check=True,
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER")
    folder = parser.parse_args().folder
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    os.makedirs(folder, exist_ok=True)
    write_training(tf, folder)
    frozen = write_inference(tf, folder)
    if importlib.util.find_spec("tf2onnx"):
        write_onnx(frozen)


if __name__ == "__main__":
    main()
