#!/usr/bin/env python3
"""Writes golden/training_*_{ref,res}.pbtxt: whole training graphs that TensorFlow builds.

training_goldens_test.cc builds the same programs with Weir and compares node by node. Run with TensorFlow installed:
    python3 tests/ops/make_training_goldens.py
"""
import make_goldens

tf = make_goldens.tf
PROGRAMS = {}


def program(fn):
    PROGRAMS["training_" + fn.__name__] = fn
    return fn


def dense(name, x, n):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [x.shape[1], n])
        b = tf.get_variable("b", [n], initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b


def mlp(batch):
    x = tf.placeholder(tf.float32, [batch, 6], "x")
    labels = tf.placeholder(tf.int32, [batch], "labels")
    logits = dense("out", tf.nn.relu(dense("hidden", x, 5)), 3)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


@program
def mlp_adam():
    loss = mlp(8)
    tf.train.AdamOptimizer(0.01).minimize(loss, global_step=tf.train.get_or_create_global_step())
    tf.global_variables_initializer()


@program
def mlp_momentum_any_batch():
    tf.train.MomentumOptimizer(0.1, 0.9).minimize(mlp(None))


@program
def shared_scopes():
    def branch(x):
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            return tf.tanh(dense("layer", x, 4))

    a = tf.placeholder(tf.float32, [2, 4], "a")
    b = tf.placeholder(tf.float32, [2, 4], "b")
    loss = tf.reduce_sum(tf.square(branch(a) - branch(b)))
    tf.train.GradientDescentOptimizer(0.5).minimize(loss)


@program
def saver_sharded():
    with tf.device("/job:ps/task:0"):
        tf.get_variable("a", [2])
    with tf.device("/job:ps/task:1"):
        tf.get_variable("b", [3])
        tf.get_variable("c", [4], tf.int32)
    tf.train.Saver(sharded=True)


def averaged(num_updates=None):
    w = tf.get_variable("w", [2], initializer=tf.random_normal_initializer(seed=3))
    b = tf.Variable([1.0, 2.0, 3.0], name="b")
    loss = tf.reduce_sum(w * w) + tf.reduce_sum(b * b)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    averages = tf.train.ExponentialMovingAverage(0.9, num_updates)
    with tf.control_dependencies([train]):
        averages.apply()
    tf.global_variables_initializer()


@program
def moving_averages():
    averaged()


@program
def moving_averages_num_updates():
    averaged(tf.train.get_or_create_global_step())


@program
def embedding_adagrad():
    table = tf.get_variable("table", [10, 4])
    ids = tf.placeholder(tf.int32, [5], "ids")
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
    tf.train.AdagradOptimizer(0.1).minimize(loss)


if __name__ == "__main__":
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    make_goldens.write_goldens(PROGRAMS)
