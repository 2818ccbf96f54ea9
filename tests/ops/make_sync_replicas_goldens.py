#!/usr/bin/env python3
"""Writes golden/sync_replicas_*.pbtxt, as make_goldens.py writes the others: what TensorFlow builds for the programs of
tests/session/train/sync_replicas_goldens_test.cc. Run with TensorFlow installed:
    python3 tests/ops/make_sync_replicas_goldens.py
"""
import make_goldens

import tensorflow.compat.v1 as tf

PROGRAMS = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def build(optimizer, is_chief, num_tokens=-1, averages=None, **replicas):
    """A dense, a sparse and an unused variable, trained by replicas."""
    w = tf.get_variable("w", [2, 3], initializer=tf.zeros_initializer())
    table = tf.get_variable("table", [5, 2], initializer=tf.zeros_initializer())
    unused = tf.get_variable("unused", [4], initializer=tf.zeros_initializer())
    step = tf.train.get_or_create_global_step()
    rows = tf.nn.embedding_lookup(table, tf.constant([1, 3], name="ids"))
    loss = tf.add(tf.reduce_sum(tf.square(w)), tf.reduce_sum(rows), name="loss")
    sync = tf.train.SyncReplicasOptimizer(
        optimizer, variable_averages=averages, variables_to_average=[w] if averages else None, **replicas)
    grads = sync.compute_gradients(loss, [w, table, unused])
    sync.apply_gradients(grads, global_step=step)
    sync.make_session_run_hook(is_chief, num_tokens).begin()


@program
def sync_replicas_chief():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
        build(tf.train.GradientDescentOptimizer(0.1), True, replicas_to_aggregate=2, total_num_replicas=3)


@program
def sync_replicas_worker():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:1")):
        build(tf.train.GradientDescentOptimizer(0.1), False, replicas_to_aggregate=2)


@program
def sync_replicas_averages():
    build(
        tf.train.MomentumOptimizer(0.1, 0.9), True, num_tokens=0, averages=tf.train.ExponentialMovingAverage(0.9),
        replicas_to_aggregate=2, total_num_replicas=2, name="together")


if __name__ == "__main__":
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    make_goldens.write_goldens(PROGRAMS)
