#!/usr/bin/env python3
"""Records the results of TensorFlow (2.21) for ops on CSR matrices, for csr_test.

    python3 tests/kernels/make_csr_answers.py > tests/kernels/golden/csr_answers.txt

A dense input stands for the CSR matrix of its elements that are not 0. A CSR output is written as a dense tensor. The gradients
follow the outputs: those for the inputs if the gradient of the output is 1, 2, ... in the output's order.
"""
import itertools
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_eager_execution()
RAW = tf.raw_ops
RANDOM = np.random.RandomState(5)
ROWS = []


def matrix(shape, dtype=np.float32, density=0.6):
    x = RANDOM.randint(-8, 9, shape).astype(dtype)
    if np.iscomplexobj(x):
        x = x + 1j * RANDOM.randint(-8, 9, shape).astype(dtype)
    return (x * (RANDOM.uniform(size=shape) < density)).astype(dtype)


def csr(x):
    return RAW.DenseToCSRSparseMatrix(dense_input=x, indices=tf.where(tf.not_equal(x, 0)))


def dense(x, dtype):
    return RAW.CSRSparseMatrixToDense(sparse_input=x, type=dtype)


def ask(op, inputs, build, gradients=False, **attrs):
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.constant(x) for x in inputs]
        out = build(*fed)
        out = list(out) if isinstance(out, (list, tuple)) else [out]
        if gradients:
            weights = tf.reshape(tf.cast(tf.range(1, tf.size(out[0]) + 1), out[0].dtype), tf.shape(out[0]))
            out += tf.gradients(out[0], fed, grad_ys=weights)
        ROWS.append((op, attrs, inputs, session.run(out)))


def conversions():
    for dtype in (np.float32, np.float64, np.complex64):
        for shape in ((3, 4), (2, 3, 4), (3, 0), (0, 2)):
            x = matrix(shape, dtype)
            ask("CSRSparseMatrixToDense", [x], lambda a: dense(csr(a), a.dtype))
            ask("CSRSparseMatrixToSparseTensor", [x],
                lambda a: RAW.CSRSparseMatrixToSparseTensor(sparse_matrix=csr(a), type=a.dtype))
            ask("SparseMatrixNNZ", [x], lambda a: RAW.SparseMatrixNNZ(sparse_matrix=csr(a)))
            for conjugate in (False, True):
                ask("SparseMatrixTranspose", [x], lambda a: dense(
                    RAW.SparseMatrixTranspose(input=csr(a), conjugate=conjugate, type=a.dtype), a.dtype),
                    gradients=x.size > 0, conjugate=conjugate)
        for index in (0, 1):
            ask("CSRSparseMatrixComponents", [matrix((2, 3, 4), dtype), np.int32(index)],
                lambda a, i: RAW.CSRSparseMatrixComponents(csr_sparse_matrix=csr(a), index=i, type=a.dtype))
    ask("SparseTensorToCSRSparseMatrix",
        [np.array([[0, 2], [0, 0], [2, 1]], np.int64), np.array([1, 2, 3], np.float32), np.array([3, 3], np.int64)],
        lambda i, v, s: dense(RAW.SparseTensorToCSRSparseMatrix(indices=i, values=v, dense_shape=s), v.dtype))


def flags(output):
    for t_a, t_b, adj_a, adj_b in itertools.product((False, True), repeat=4):
        if t_a and adj_a or t_b and adj_b:
            continue
        for t_out, conj_out in itertools.product((False, True), repeat=2) if output else ((False, False),):
            given = dict(transpose_a=t_a, transpose_b=t_b, adjoint_a=adj_a, adjoint_b=adj_b)
            yield dict(given, transpose_output=t_out, conjugate_output=conj_out) if output else given


def product(op, dtype, batch, given):
    a, b = (3, 4), (4, 2)
    swap_a = given["transpose_a"] or given["adjoint_a"]
    swap_b = given["transpose_b"] or given["adjoint_b"]
    inputs = [matrix(batch + (a[::-1] if swap_a else a), dtype, 0.8), matrix(batch + (b[::-1] if swap_b else b), dtype, 0.9)]
    if op == "SparseMatrixMatMul":
        build = lambda x, y: RAW.SparseMatrixMatMul(a=csr(x), b=y, **given)  # noqa: E731
    else:
        build = lambda x, y: dense(  # noqa: E731
            RAW.SparseMatrixSparseMatMul(a=csr(x), b=csr(y), type=x.dtype, **given), x.dtype)
    return inputs, build


def products():
    for op, output in (("SparseMatrixMatMul", True), ("SparseMatrixSparseMatMul", False)):
        for dtype, batch in ((np.float32, ()), (np.complex64, ()), (np.float64, (2,))):
            for given in flags(output):
                inputs, build = product(op, dtype, batch, given)
                try:
                    ask(op, inputs, build, gradients=True, **given)
                except (tf.errors.OpError, ValueError, TypeError, UnboundLocalError):
                    ask(op, inputs, build, **given)  # TensorFlow has no gradient for these flags


def factors():
    for n, density, batch in ((1, 1.0, ()), (5, 0.4, ()), (5, 0.4, (2,)), (24, 0.07, ()), (20, 0.3, ())):
        for dtype in (np.float32, np.complex64):
            x = matrix(batch + (n, n), dtype, density)
            x = x + np.conj(np.swapaxes(x, -1, -2)) + (40 * n * np.eye(n)).astype(dtype)
            ask("SparseMatrixOrderingAMD", [x], lambda a: RAW.SparseMatrixOrderingAMD(input=csr(a)))
            order = ROWS[-1][3][0]
            ask("SparseMatrixSparseCholesky", [x, order], lambda a, p: dense(
                RAW.SparseMatrixSparseCholesky(input=csr(a), permutation=p, type=a.dtype), a.dtype))


for part in (conversions, products, factors):
    part()


def words(x):
    for v in np.ravel(x):
        if np.iscomplexobj(v):
            yield "%.9g" % v.real
            yield "%.9g" % v.imag
        else:
            yield "%.9g" % v


print("# TensorFlow 2.21's answers, written by make_csr_answers.py: ops, attributes, inputs, outputs.")
for op, attrs, inputs, outputs in ROWS:
    print("op", op)
    for key, value in attrs.items():
        print("attr", key, str(value).lower())
    for kind, tensors in (("in", inputs), ("out", outputs)):
        for x in tensors:
            x = np.asarray(x)
            print(kind, x.dtype.name, ",".join(str(d) for d in x.shape) or "-", *words(x))
