#!/usr/bin/env python3
"""Writes golden/sparse_*_ref.pbtxt: the graphs that TensorFlow builds for functions of sparse and ragged tensors and
for their gradients.

sparse_goldens_test.cc builds the same programs with Weir. Run with TensorFlow installed:
    python3 tests/ops/make_sparse_goldens.py
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as tf  # noqa: E402

from make_goldens import write_goldens  # noqa: E402

PROGRAMS = {}


def program(fn):
    PROGRAMS["sparse_" + fn.__name__] = fn
    return fn


def placeholder(name, dtype, shape):
    return tf.placeholder(dtype, shape, name=name)


def parts(static):
    indices, values = placeholder("i", tf.int64, [None, 2]), placeholder("v", tf.float32, [None])
    if static:
        return indices, values, tf.constant([3, 4], tf.int64, name="s")
    return indices, values, placeholder("s", tf.int64, [2])


def moves(static):
    x = tf.SparseTensor(*parts(static))
    tf.sparse.reorder(x)
    tf.sparse.reshape(x, [2, -1])
    tf.sparse.concat(1, [x, x])
    tf.sparse.split(sp_input=x, num_split=2, axis=1)
    tf.sparse.slice(x, [0, 1], [2, 2])
    tf.sparse.to_dense(x)
    tf.sparse.fill_empty_rows(x, tf.constant(0.5, name="d"))
    tf.deserialize_many_sparse(tf.serialize_many_sparse(x), tf.float32)


def arithmetic(static):
    x = tf.SparseTensor(*parts(static))
    dense = placeholder("d", tf.float32, [3, 4])
    tf.sparse.add(x, x)
    tf.sparse.add(x, dense)
    tf.sparse.maximum(x, x)
    tf.sparse.minimum(x, x)
    tf.sparse.reduce_sum(x, [1])
    tf.sparse.reduce_max(x, keepdims=True)
    tf.sparse.reduce_max_sparse(x, [1])
    tf.sparse.softmax(x)
    tf.sparse.sparse_dense_matmul(x, dense, adjoint_b=True)
    tf.edit_distance(x, x)


@program
def moves_static():
    moves(True)


@program
def moves_open():
    moves(False)


@program
def arithmetic_static():
    arithmetic(True)


@program
def arithmetic_open():
    arithmetic(False)


@program
def move_gradients():
    x = tf.SparseTensor(*parts(False))
    filled, _ = tf.sparse.fill_empty_rows(x, tf.constant(0.5, name="d"))
    ys = [tf.sparse.reorder(x).values, tf.sparse.slice(x, [0, 1], [2, 2]).values, tf.sparse.to_dense(x), filled.values]
    for y in ys:
        tf.gradients(y, x.values)


@program
def sum_gradients():
    x = tf.SparseTensor(*parts(True))
    dense = placeholder("d", tf.float32, [3, 4])
    ys = [tf.sparse.add(x, x).values, tf.sparse.add(x, dense), tf.sparse.reduce_sum(x, [1]), tf.sparse.reduce_sum(x),
          tf.sparse.softmax(x).values]
    for y in ys:
        tf.gradients(y, [x.values, dense])


@program
def product_gradients():
    indices, values, shape = parts(False)
    row = placeholder("r", tf.float32, [4])
    for op in tf.raw_ops.SparseDenseCwiseMul, tf.raw_ops.SparseDenseCwiseDiv:
        tf.gradients(op(sp_indices=indices, sp_values=values, sp_shape=shape, dense=row), [values, row])
    x, dense = tf.SparseTensor(indices, values, shape), placeholder("d", tf.float32, [None, None])
    for adjoint_a in False, True:
        for adjoint_b in False, True:
            tf.gradients(tf.sparse.sparse_dense_matmul(x, dense, adjoint_a, adjoint_b), [values, dense])
    a, b = placeholder("a", tf.float32, [2, 3]), placeholder("b", tf.float32, [3, 4])
    tf.gradients(tf.raw_ops.SparseMatMul(a=a, b=b, a_is_sparse=True), [a, b])


@program
def ragged_gradients():
    splits, values = placeholder("sp", tf.int64, [4]), placeholder("v", tf.float32, [5, 2])
    default = placeholder("dv", tf.float32, [2])
    dense = tf.raw_ops.RaggedTensorToTensor(
        shape=tf.constant(-1, tf.int64, name="sh"), values=values, default_value=default,
        row_partition_tensors=[splits], row_partition_types=["ROW_SPLITS"])
    tf.gradients(dense, [values, default])
    sparse = tf.raw_ops.RaggedTensorToSparse(rt_nested_splits=[splits], rt_dense_values=values)
    tf.gradients(sparse[1], values)


if __name__ == "__main__":
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    write_goldens(PROGRAMS, kinds=("ref",))
