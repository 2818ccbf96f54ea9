#!/usr/bin/env python3
"""Writes the nodes that TensorFlow's Saver makes (2.21 was used): python3 make_saver_goldens.py

One line a node: name, op, inputs, device, colocations. tests/session/model/saver_test.cc builds the same graphs.
Also saved_model/, a small SavedModel of the v1 kind, tf_model.*, a checkpoint with meta graph, and tf_parts.*, one with
partitioned variables.
"""

import os
import pathlib
import shutil

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
HERE = pathlib.Path(__file__).resolve().parent


def lines(graph):
    for node in graph.as_graph_def().node:
        if node.name.startswith("save/"):
            place = [s.decode() for s in node.attr["_class"].list.s]
            yield " ".join([node.name, node.op, ",".join(node.input) or "-", node.device or "-",
                            ",".join(place) or "-"])


def saver_graphs():
    for name, options, resource in (("ref", {}, False), ("resource", {}, True), ("sharded", {"sharded": True}, False),
                                    ("reshape", {"reshape": True}, True), ("v1", {"write_version": 1}, False),
                                    ("v1_sharded", {"write_version": 1, "sharded": True}, True)):
        graph = tf.Graph()
        with graph.as_default():
            with tf.device("/cpu:0"):
                v1.get_variable("b", shape=[2], use_resource=resource)
            with tf.device("/cpu:1" if options.get("sharded") else "/cpu:0"):
                v1.get_variable("a", shape=[3, 2], use_resource=resource, dtype=tf.float64)
            v1.get_variable("c", shape=[], use_resource=resource, dtype=tf.int32,
                            initializer=v1.zeros_initializer())
            v1.train.Saver(**options)
            (HERE / ("saver_%s.txt" % name)).write_text("".join(line + "\n" for line in lines(graph)))


def model():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        w = v1.get_variable("w", initializer=tf.constant([[1.0], [2.0]]), use_resource=False)
        b = v1.get_variable("b", initializer=tf.constant([0.5]), use_resource=True)
        y = tf.add(tf.matmul(x, w), b, name="y")
        v1.add_to_collection("losses", y)
        v1.add_to_collection("numbers", 7)
        v1.add_to_collection("words", "seven")
        saver = v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            saver.save(session, str(HERE / "tf_model"), write_state=False)
            shutil.rmtree(HERE / "saved_model", ignore_errors=True)
            v1.saved_model.simple_save(session, str(HERE / "saved_model"), {"x": x}, {"y": y})


def parts():
    graph = tf.Graph()
    with graph.as_default():
        v1.get_variable("rows", initializer=np.arange(21, dtype=np.float32).reshape(7, 3) / 8,
                        dtype=tf.float32, shape=[7, 3], partitioner=v1.fixed_size_partitioner(4))
        v1.get_variable("columns", initializer=np.arange(14, dtype=np.float64).reshape(2, 7) * 3,
                        dtype=tf.float64, shape=[2, 7], partitioner=v1.fixed_size_partitioner(3, 1))
        saver = v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            saver.save(session, str(HERE / "tf_parts"), write_state=False, write_meta_graph=False)


if __name__ == "__main__":
    saver_graphs()
    model()
    parts()
