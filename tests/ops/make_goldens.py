#!/usr/bin/env python3
"""Writes golden/<program>_{ref,res}.pbtxt: the graphs that TensorFlow builds for small programs with variables.

variable_goldens_test.cc builds the same programs with Weir and compares node by node. Run with TensorFlow installed:
    python3 tests/ops/make_goldens.py
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as tf  # noqa: E402

from google.protobuf import text_format  # noqa: E402

PROGRAMS = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


@program
def variable_of_constant():
    tf.Variable([1.0, 2.0], name="w")
    tf.Variable(3, name="w", trainable=False)


@program
def variable_in_scopes():
    with tf.name_scope("n"):
        tf.Variable(1.0)
        tf.Variable(2.0)
    with tf.variable_scope("s"):
        tf.Variable(3.0, name="v")
        tf.get_variable("v", [2])


@program
def default_initializers():
    tf.get_variable("f", [4, 6])
    tf.get_variable("i", [3], tf.int32)
    tf.get_variable("b", [2], tf.bool)
    tf.get_variable("d", [3, 3, 4, 8], tf.float64)


@program
def initializer_kinds():
    tf.set_random_seed(7)
    for name, init in [
        ("zeros", tf.zeros_initializer()),
        ("ones", tf.ones_initializer()),
        ("constant", tf.constant_initializer(0.5)),
        ("constant_list", tf.constant_initializer([1.0, 2.0, 3.0])),
        ("uniform", tf.random_uniform_initializer(-1.0, 2.0)),
        ("normal", tf.random_normal_initializer(1.0, 0.5)),
        ("truncated", tf.truncated_normal_initializer(0.0, 0.1, seed=3)),
        ("unit_scaling", tf.uniform_unit_scaling_initializer(1.5)),
        ("scaling", tf.variance_scaling_initializer(2.0, "fan_out", "uniform")),
        ("scaling_normal", tf.variance_scaling_initializer()),
        ("scaling_untruncated", tf.variance_scaling_initializer(1.0, "fan_avg", "untruncated_normal")),
        ("glorot_normal", tf.glorot_normal_initializer()),
        ("he_uniform", tf.initializers.he_uniform()),
        ("lecun_normal", tf.initializers.lecun_normal()),
    ]:
        tf.get_variable(name, [3, 2], initializer=init)
    tf.get_variable("big_zeros", [50, 30], initializer=tf.zeros_initializer())
    tf.get_variable("big_ones", [50, 30], initializer=tf.ones_initializer())


@program
def orthogonal_and_identity():
    tf.set_random_seed(7)
    tf.get_variable("square", [3, 3], initializer=tf.orthogonal_initializer())
    tf.get_variable("wide", [2, 2, 6], initializer=tf.orthogonal_initializer(gain=2.0))
    tf.get_variable("eye", [3, 3], initializer=tf.initializers.identity())
    tf.get_variable("wide_eye", [2, 4], initializer=tf.initializers.identity(2.0))


@program
def literal_and_callable_initializers():
    tf.get_variable("literal", initializer=[1, 2])
    tf.get_variable("tensor", initializer=tf.fill([2], 3.0))
    tf.get_variable("callable", initializer=lambda: tf.fill([2], 3.0))
    tf.Variable(lambda: tf.fill([2], 4.0), name="made")
    with tf.control_dependencies([tf.no_op("before")]):
        tf.Variable(lambda: tf.fill([2], 5.0), name="apart")
        tf.get_variable("also_apart", [2], initializer=tf.zeros_initializer())


@program
def scopes():
    for _ in range(2):
        with tf.variable_scope("foo"):
            tf.constant(1.0, name="c")
    with tf.variable_scope("bar") as bar:
        tf.get_variable("v", [1], initializer=tf.zeros_initializer())
        with tf.variable_scope("baz", default_name="no"):
            tf.get_variable("v", [1], initializer=tf.zeros_initializer())
            with tf.variable_scope(bar, reuse=True):
                tf.constant(2.0, name="c")
                tf.get_variable("v", [1])
    for _ in range(2):
        with tf.variable_scope(None, default_name="layer"):
            tf.get_variable("v", [1], initializer=tf.zeros_initializer())
    with tf.variable_scope(bar, auxiliary_name_scope=False):
        tf.constant(3.0, name="c")
        with tf.name_scope(bar.original_name_scope):
            tf.constant(4.0, name="c")


@program
def reads_and_arithmetic():
    w = tf.Variable([1.0, 2.0], name="w")
    tf.identity(w.value(), name="a")
    w.value()
    w.read_value()
    with tf.name_scope("n"):
        w.read_value()
        tf.identity(w.value(), name="b")
    w + 1.0
    w[0]


@program
def writes():
    w = tf.Variable([1.0, 2.0], name="w")
    w.assign([3.0, 4.0])
    w.assign_add([3.0, 4.0])
    w.assign_sub([3.0, 4.0], use_locking=True)
    w.assign([5.0, 6.0], read_value=False)
    tf.assign(w, [7.0, 8.0])
    tf.assign_add(w, [7.0, 8.0])
    tf.assign_sub(w, [7.0, 8.0])
    with tf.name_scope("n"):
        w.assign(tf.constant([9.0, 10.0], name="nine"))


@program
def scatters():
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    i = tf.constant([1], name="i")
    v = tf.constant([[5.0, 6.0]], name="v")
    slices = tf.IndexedSlices(v, i)
    w.scatter_add(slices)
    w.scatter_sub(slices)
    w.scatter_update(slices)
    w.scatter_mul(slices)
    w.scatter_div(slices)
    w.scatter_min(slices)
    w.scatter_max(slices)
    tf.scatter_add(w, i, v)
    tf.scatter_update(w, i, v)
    ii = tf.constant([[1]], name="ii")
    w.scatter_nd_add(ii, v)
    w.scatter_nd_sub(ii, v)
    w.scatter_nd_update(ii, v)


@program
def slices():
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    w[0:1, 1].assign([5.0])
    w[..., tf.newaxis, ::-1]


@program
def counting():
    w = tf.Variable(0, name="w")
    w.count_up_to(3)


@program
def initializing():
    a = tf.Variable([1.0, 2.0], name="a")
    tf.get_variable("b", [2], collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    tf.global_variables_initializer()
    tf.local_variables_initializer()
    tf.variables_initializer([a], name="some")
    tf.global_variables_initializer()
    tf.is_variable_initialized(a)
    tf.report_uninitialized_variables()
    tf.assert_variables_initialized()
    tf.variables_initializer([])


def initialized_value(v):
    # Resource variables lost this method in TensorFlow 2; the code is equivalent to it.
    if hasattr(v, "_ref"):
        return v.initialized_value()
    return tf.cond(tf.is_variable_initialized(v), v.read_value, lambda: v.initial_value)


@program
def initialized_values():
    a = tf.Variable(tf.random_uniform([2], seed=1), name="a")
    tf.Variable(initialized_value(a) * 2.0, name="b")
    tf.Variable(a, name="c")
    tf.Variable(lambda: initialized_value(a), name="d")


@program
def global_steps():
    tf.train.get_or_create_global_step()
    tf.train.get_or_create_global_step()


@program
def unknown_shapes():
    x = tf.placeholder(tf.float32, None, name="x")
    tf.Variable(x, name="w", validate_shape=False)
    tf.get_variable("v", initializer=lambda: tf.placeholder_with_default([1.0], [None]), validate_shape=False)


@program
def caching():
    w = tf.Variable([1.0], name="w", caching_device="/cpu:0")
    tf.identity(w.value(), name="a")
    with tf.device("/gpu:1"):
        v = tf.Variable([1.0], name="v")
        tf.identity(v.value(), name="b")
        w.assign_add([3.0])
    v.assign([2.0])


@program
def implicit_reads():
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    v = tf.Variable([[5.0, 6.0], [7.0, 8.0]], name="v")
    a = w * 2.0
    2.0 - w
    w * v
    tf.matmul(a, w)
    tf.matmul(w, v, name="product")
    tf.nn.relu(w)
    tf.nn.relu(w)
    tf.add_n([w, v, a])
    tf.concat([w, a, v], 0)
    tf.stack([v, w])
    tf.reshape(w, [4])
    tf.transpose(w, [1, 0])
    tf.reduce_sum(w, [0])
    tf.square(tf.exp(w) + v)
    tf.maximum(w, 0.5)
    tf.clip_by_value(w, 0.0, 1.0)
    tf.nn.bias_add(w, a[0])
    tf.cast(w, tf.float64)
    v.assign(w)
    v.assign_add(w * v)
    with tf.name_scope("n"):
        -w
        tf.nn.softmax(w)
        v.read_value()
    w.value()
    v.value()


def collections_of(graph):
    """Yields a line for each collection of tensors, ops and variables: "# collection losses: a:0 b:0"."""
    for key in sorted(graph.get_all_collection_keys()):
        items = graph.get_collection(key)
        # The result of a write to a resource variable represents the read after it.
        items = [item._graph_element if type(item).__name__ == "_UnreadVariable" else item for item in items]
        names = [getattr(item, "name", None) for item in items]
        if all(isinstance(name, str) for name in names):
            yield "# collection %s: %s\n" % (key, " ".join(names))


def write_goldens(programs, kinds=("ref", "res"), with_collections=False):
    """Writes golden/<program>_<kind>.pbtxt for all programs."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
    os.makedirs(folder, exist_ok=True)
    for kind in kinds:
        use_resource = kind == "res"
        for name, build in programs.items():
            with tf.Graph().as_default() as graph:
                tf.get_variable_scope().set_use_resource(use_resource)
                (tf.enable_resource_variables if use_resource else tf.disable_resource_variables)()
                build()
            with open(os.path.join(folder, f"{name}_{kind}.pbtxt"), "w") as out:
                if with_collections:
                    out.writelines(collections_of(graph))
                for node in graph.as_graph_def().node:
                    if node.op == "DisableCopyOnRead":  # TensorFlow 2's hint for reads of slices to save
                        continue
                    node.attr.pop("_has_manual_control_dependencies", None)  # specific to TensorFlow 2
                    out.write("node { %s }\n" % text_format.MessageToString(node, as_one_line=True))


if __name__ == "__main__":
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    write_goldens(PROGRAMS)
