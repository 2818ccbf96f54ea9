#!/usr/bin/env python3
"""Writes what TensorFlow 1 code leaves for others to train on (2.21 was used): python3 make_training_goldens.py

scaffold_{ref,resource}.txt   the nodes that tf.train.Scaffold makes, one line each, and the collections it fills
trained.*                     a model with its checkpoint after three steps, to be trained on by its collections alone,
                              and trained_losses.txt, the losses of the next five steps
scoped.meta                   the part of a graph in one name scope
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
v1.disable_control_flow_v2()
HERE = pathlib.Path(__file__).resolve().parent


def lines(graph):
    for node in graph.as_graph_def().node:
        place = [s.decode() for s in node.attr["_class"].list.s]
        yield " ".join([node.name, node.op, ",".join(node.input) or "-", node.device or "-",
                        ",".join(place) or "-"])
    for key in ("init_op", "local_init_op", "ready_op", "ready_for_local_init_op", "summary_op"):
        yield "collection %s %s" % (key, ",".join(item.name for item in graph.get_collection(key)))


def scaffolds():
    for name, resource in (("ref", False), ("resource", True)):
        with tf.Graph().as_default() as graph:
            v1.get_variable("w", [2], initializer=v1.zeros_initializer(), use_resource=resource)
            v1.get_variable("count", [], initializer=v1.zeros_initializer(), trainable=False,
                            collections=["local_variables"], use_resource=resource)
            v1.summary.scalar("loss", tf.constant(1.0))
            v1.train.Scaffold().finalize()
            (HERE / ("scaffold_%s.txt" % name)).write_text("".join(line + "\n" for line in lines(graph)))


def points():
    x = np.array([[(3 * i + j) % 7 - 3 for j in range(3)] for i in range(8)], np.float32) / 4
    return x, x[:, :1] * x[:, 1:2] + x[:, 2:] / 2


def model():
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [None, 3], "x")
        y = v1.placeholder(tf.float32, [None, 1], "y")
        with v1.variable_scope("hidden"):
            w = v1.get_variable("w", [3, 4], use_resource=False)
            b = v1.get_variable("b", [4], initializer=v1.zeros_initializer(), use_resource=True)
            h = tf.tanh(tf.matmul(x, w) + b)
        out = tf.matmul(h, v1.get_variable("out", [4, 1], use_resource=False))
        loss = tf.reduce_mean(tf.square(out - y), name="loss")
        step = v1.train.get_or_create_global_step()
        rate = v1.train.exponential_decay(0.1, step, 2, 0.9, staircase=True)
        average = tf.train.ExponentialMovingAverage(0.9)
        train = v1.train.AdamOptimizer(rate).minimize(loss, global_step=step)
        with tf.control_dependencies([train]):
            both = tf.group(average.apply([w]), name="step")
        v1.get_default_graph().clear_collection("train_op")
        v1.add_to_collection("train_op", both)
        v1.add_to_collection("losses", loss)
        for tensor in (x, y):
            v1.add_to_collection("inputs", tensor)
        v1.train.Scaffold().finalize()
        (saver,) = v1.get_collection("savers")
        feeds = dict(zip((x, y), points()))
        with v1.Session() as session:
            session.run(v1.get_collection("init_op"))
            for _ in range(3):
                session.run(both, feeds)
            saver.save(session, str(HERE / "trained"), write_state=False)
            losses = [session.run([loss, both], feeds)[0] for _ in range(5)]
        (HERE / "trained_losses.txt").write_text("".join("%.9g\n" % value for value in losses))


def scoped():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 3], "x")
        ready = tf.no_op("ready")
        with v1.variable_scope("hidden"):
            w = v1.get_variable("w", [3, 2], initializer=v1.zeros_initializer(), use_resource=False)
            b = v1.get_variable("b", [2], initializer=v1.zeros_initializer(), use_resource=True)
            with tf.control_dependencies([ready]), tf.device("/cpu:0"):
                h = tf.add(tf.matmul(x, w, name="xw"), b, name="h")
        out = tf.identity(h, "out")
        for tensor in (h, out):
            v1.add_to_collection("activations", tensor)
        v1.add_to_collection("numbers", 7)
        v1.train.export_meta_graph(str(HERE / "scoped.meta"), graph=graph, export_scope="hidden", clear_devices=True)


if __name__ == "__main__":
    scaffolds()
    model()
    scoped()
