#!/usr/bin/env python3
"""Writes golden/partitioned_*.pbtxt and golden/devices_*.pbtxt, as make_goldens.py writes the others: what TensorFlow
builds for the programs of partitioned_goldens_test.cc. Run with TensorFlow installed:
    python3 tests/ops/make_partitioned_goldens.py
"""
import make_goldens

import numpy as np
import tensorflow.compat.v1 as tf

PROGRAMS = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def fixed(n, axis=0):
    return tf.fixed_size_partitioner(n, axis)


@program
def partitioned_use():
    w = tf.get_variable("w", [7, 3], partitioner=fixed(3))
    tf.identity(w, name="a")
    x = tf.placeholder(tf.float32, [2, 7], name="x")
    tf.matmul(x, w, name="y")
    with tf.name_scope("n"):
        tf.identity(w, name="b")
    with tf.variable_scope("s"):
        v = tf.get_variable("v", [2, 5], tf.float64, tf.zeros_initializer(), partitioner=fixed(2, 1))
        one = tf.get_variable("one", [4], partitioner=fixed(1))
    tf.identity(v, name="c")
    tf.identity(one, name="d")
    tf.identity(one, name="e")
    tf.global_variables_initializer()
    tf.report_uninitialized_variables()


@program
def partitioned_initializers():
    tf.set_random_seed(7)
    with tf.variable_scope("s", partitioner=fixed(2)):
        for name, init in [
            ("zeros", tf.zeros_initializer()),
            ("ones", tf.ones_initializer()),
            ("constant", tf.constant_initializer(0.5)),
            ("uniform", tf.random_uniform_initializer(-1.0, 2.0)),
            ("normal", tf.random_normal_initializer(1.0, 0.5)),
            ("truncated", tf.truncated_normal_initializer(0.0, 0.1, seed=3)),
            ("unit_scaling", tf.uniform_unit_scaling_initializer(1.5)),
            ("scaling", tf.variance_scaling_initializer(2.0, "fan_out", "uniform")),
            ("scaling_normal", tf.variance_scaling_initializer()),
            ("glorot_normal", tf.glorot_normal_initializer()),
            ("orthogonal", tf.orthogonal_initializer()),
            ("identity", tf.initializers.identity(2.0)),
        ]:
            tf.get_variable(name, [5, 4], initializer=init)
        tf.get_variable("scalar", [], initializer=tf.zeros_initializer())
        tf.get_variable("ints", [4], tf.int32)
        tf.get_variable("tensor", initializer=tf.constant([[1.0, 2.0], [3.0, 4.0]], name="whole"))
        tf.get_variable("literal", [3], initializer=np.array([1.0, 2.0, 3.0], np.float32))
    with tf.variable_scope("t", partitioner=tf.variable_axis_size_partitioner(16)):
        tf.get_variable("axis_size", [8, 4])
    with tf.variable_scope("u", partitioner=tf.min_max_variable_partitioner(4, 1, 16)):
        tf.get_variable("min_max", [3, 8])


@program
def partitioned_writes():
    w = tf.get_variable("w", [5, 2], initializer=tf.zeros_initializer(), partitioner=fixed(2))
    x = tf.constant(np.ones([5, 2], np.float32), name="x")
    parts = tf.split(x, [3, 2])
    w.assign(parts)
    w.assign_add(parts, use_locking=True)
    w.assign_sub(parts)
    w.assign(parts, name="set")


@program
def partitioned_embedding_mod():
    tables = tf.get_variable("tables", [7, 3], partitioner=fixed(3))
    ids = tf.placeholder(tf.int32, [2, 4], name="ids")
    y = tf.nn.embedding_lookup(tables, ids)
    tf.gradients(y, list(tables))
    tf.nn.embedding_lookup(tables, tf.placeholder(tf.int64, [None], name="more"), name="more_rows")


@program
def partitioned_embedding_div():
    tables = tf.get_variable("tables", [7, 3], partitioner=fixed(3))
    ids = tf.placeholder(tf.int64, None, name="ids")
    y = tf.nn.embedding_lookup(tables, ids, partition_strategy="div")
    tf.gradients(y, list(tables))
    known = tf.constant([1, 6, 3], name="known")
    tf.nn.embedding_lookup(tables, known, partition_strategy="div", name="known_rows")


@program
def partitioned_embedding_norms():
    tables = tf.get_variable("tables", [7, 3], partitioner=fixed(3))
    one = tf.get_variable("one", [7, 3])
    for name, shape in (("vector", [4]), ("unknown", None)):
        ids = tf.placeholder(tf.int32, shape, name=name + "_ids")
        tf.nn.embedding_lookup(tables, ids, max_norm=1.5, name=name + "_parts")
        tf.nn.embedding_lookup(one, ids, max_norm=1.5, name=name + "_one")
    tensors = [tf.placeholder(tf.float32, s, name="t") for s in ([2, 3], [None, 3])]
    tf.nn.embedding_lookup(tensors, tf.constant([0, 1], name="i"), "div", name="of_tensors")
    tensors = [tf.placeholder(tf.float32, s, name="u") for s in ([2, None], None)]
    tf.nn.embedding_lookup(tensors, tf.constant([0, 1], name="j"), name="of_unknown")


@program
def partitioned_adam():
    tf.set_random_seed(3)
    with tf.variable_scope("m", partitioner=fixed(2)):
        w = tf.get_variable("w", [4, 3])
        tables = tf.get_variable("tables", [5, 3])
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    w_value = tf.identity(w, name="w_value")
    loss = tf.reduce_sum(tf.tanh(tf.multiply(x, w_value)))
    rows = tf.nn.embedding_lookup(tables, tf.placeholder(tf.int32, [2], name="ids"))
    tf.train.AdamOptimizer(0.1).minimize(tf.add(loss, tf.reduce_sum(tf.tanh(rows))))
    tf.global_variables_initializer()
    tf.train.Saver()


@program
def partitioned_saver():
    w = tf.get_variable("w", [7, 2], partitioner=fixed(3))
    tf.get_variable("a", [2])
    tf.train.Saver()
    tf.train.Saver({"renamed": w})
    tf.train.Saver(sharded=True)


def model():
    with tf.variable_scope("m"):
        w = tf.get_variable("w", [2])
        b = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
        with tf.device("/gpu:1"):
            c = tf.get_variable("c", [2], initializer=tf.zeros_initializer())
        with tf.device("/job:other/task:5"):
            d = tf.get_variable("d", [2], initializer=tf.zeros_initializer())
        with tf.device("/job:ps/task:0"):
            tf.get_variable("e", [2], initializer=tf.zeros_initializer())
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.add(tf.multiply(x, w), b)
    with tf.device("/gpu:0"):
        y = tf.multiply(y, c)
    y = tf.subtract(y, d)
    step = tf.Variable(0, name="step", trainable=False, dtype=tf.int64)
    tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(tf.tanh(y)), global_step=step)


@program
def devices_round_robin():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        model()
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        tf.get_variable("parts", [5, 2], partitioner=fixed(3))


@program
def devices_cluster():
    cluster = {"ps": ["a:1", "b:1", "c:1"], "worker": ["d:1"]}
    setter = tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:3/gpu:0", ps_device="/job:ps/cpu:0")
    with tf.device(setter):
        model()


@program
def devices_unmerged():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, merge_devices=False, ps_ops=["Const"])):
        model()


@program
def devices_greedy():
    class Greedy:  # tf.contrib.training.GreedyLoadBalancingStrategy with byte_size_load_fn
        def __init__(self, tasks):
            self.loads = [0] * tasks

        def __call__(self, op):
            task = self.loads.index(min(self.loads))
            shape = tf.TensorShape(op.node_def.attr["shape"].shape)
            self.loads[task] += shape.num_elements() * tf.as_dtype(op.node_def.attr["dtype"].type).size
            return task

    with tf.device(tf.train.replica_device_setter(ps_tasks=3, ps_strategy=Greedy(3))):
        tf.get_variable("big", [100, 10])
        for i in range(5):
            tf.get_variable("small_%d" % i, [10 * (i + 1)], tf.float64 if i == 2 else tf.float32)


if __name__ == "__main__":
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    make_goldens.write_goldens(PROGRAMS)
