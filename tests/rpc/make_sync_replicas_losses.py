#!/usr/bin/env python3
"""Prints what sync_replicas_test.cc expects: the losses of workers that train one model together, on a cluster of
TensorFlow's servers in this process. Run with TensorFlow installed:
    python3 tests/rpc/make_sync_replicas_losses.py
"""
import os
import socket
import threading

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as tf  # noqa: E402


def free_address():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % s.getsockname()[1]


class Worker:
    """A worker's graph and its session."""

    def __init__(self, target, index, aggregate, total, num_tokens):
        with tf.Graph().as_default():
            with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:%d" % index)):
                w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
                table = tf.get_variable("table", [4, 2], initializer=tf.ones_initializer())
                step = tf.train.get_or_create_global_step()
                self.x = tf.placeholder(tf.float32, [3])
                self.ids = tf.placeholder(tf.int32, [2])
                rows = tf.nn.embedding_lookup(table, self.ids)
                self.loss = tf.reduce_sum(tf.square(w - self.x)) + 0.5 * tf.reduce_sum(tf.square(rows))
                sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), aggregate, total)
                self.train = sync.minimize(self.loss, global_step=step)
            hook = sync.make_session_run_hook(index == 0, num_tokens)
            self.session = tf.train.MonitoredTrainingSession(target, is_chief=index == 0, hooks=[hook])
        self.index = index

    def run(self, round_number):
        k = self.index
        feeds = {self.x: [round_number + k, 1, 0.5 * k], self.ids: [k, 3]}
        self.last = self.session.run([self.loss, self.train], feeds)[0]


def together(workers, round_number):
    threads = [threading.Thread(target=w.run, args=[round_number]) for w in workers]
    [t.start() for t in threads]
    [t.join() for t in threads]


def train(name, aggregate, total, num_tokens, rounds):
    """In each round the first workers complete an update; the backups then come too late."""
    cluster = tf.train.ClusterSpec(
        {"ps": [free_address(), free_address()], "worker": [free_address() for _ in range(total)]})
    servers = [tf.train.Server(cluster, job, i) for job in cluster.jobs for i in range(cluster.num_tasks(job))]
    targets = [s.target for s in servers if s.server_def.job_name == "worker"]
    workers = [Worker(target, i, aggregate, total, num_tokens) for i, target in enumerate(targets)]
    print(name)
    for r in range(rounds):
        together(workers[:aggregate], r)
        together(workers[aggregate:], r)
        print("  {%s}," % ", ".join("%.6f" % w.last for w in workers))


if __name__ == "__main__":
    tf.disable_v2_behavior()
    train("all workers", 2, 2, 0, 4)
    train("a backup", 2, 3, 0, 4)
    train("one worker, two gradients", 2, 1, 1, 6)
    os._exit(0)
