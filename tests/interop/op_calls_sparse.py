"""Random valid calls of ops on sparse matrices, counts and feature crosses."""

import numpy as np
import tensorflow as tf

from op_calls import call, floats, integers, strings

raw = tf.raw_ops
_COMPLEX = (np.float32, np.float64, np.complex64, np.complex128)


# ---- sparse matrices

def _matrix(rng, shape, dtype, symmetric=False):
    x = floats(rng, shape, dtype=dtype) * (np.array([rng.random() < 0.5 for _ in range(int(np.prod(shape)))]).reshape(shape))
    if symmetric:
        x = x + np.conj(np.swapaxes(x, -1, -2)) + 20 * np.eye(shape[-1])
    return x.astype(dtype)


def _csr(x):
    return raw.DenseToCSRSparseMatrix(dense_input=x, indices=np.argwhere(x))


def _shape(rng):
    return rng.choice(([], [2])) + [rng.randint(1, 4), rng.randint(1, 4)]


def _dense(matrix, dtype):
    return raw.CSRSparseMatrixToDense(sparse_input=matrix, type=dtype)


@call()
def DenseToCSRSparseMatrix(op, rng):
    x = _matrix(rng, _shape(rng), rng.choice(_COMPLEX))
    return _dense(op(dense_input=x, indices=np.argwhere(x)), x.dtype)


@call()
def SparseTensorToCSRSparseMatrix(op, rng):
    x = _matrix(rng, _shape(rng), rng.choice(_COMPLEX))
    where = np.argwhere(x)
    return _dense(op(indices=where, values=x[tuple(where.T)], dense_shape=np.array(x.shape, np.int64)), x.dtype)


@call('CSRSparseMatrixToDense')
def csr_to_dense(op, rng):
    x = _matrix(rng, _shape(rng), rng.choice(_COMPLEX))
    return op(sparse_input=_csr(x), type=x.dtype)


@call()
def CSRSparseMatrixComponents(op, rng):
    x = _matrix(rng, _shape(rng), rng.choice(_COMPLEX))
    return op(csr_sparse_matrix=_csr(x), index=rng.randint(0, x.shape[0] - 1) if x.ndim == 3 else 0, type=x.dtype)


@call()
def CSRSparseMatrixToSparseTensor(op, rng):
    x = _matrix(rng, _shape(rng), rng.choice(_COMPLEX))
    return op(sparse_matrix=_csr(x), type=x.dtype)


@call()
def SparseMatrixNNZ(op, rng):
    return op(sparse_matrix=_csr(_matrix(rng, _shape(rng), rng.choice(_COMPLEX))))


@call()
def SparseMatrixTranspose(op, rng):
    x = _matrix(rng, _shape(rng), rng.choice(_COMPLEX))
    return _dense(op(input=_csr(x), conjugate=rng.random() < 0.5, type=x.dtype), x.dtype)


def _factors(rng):
    """Two matrices whose product exists under the returned flags."""
    dtype, batch = rng.choice(_COMPLEX), rng.choice(([], [2]))
    m, k, n = (rng.randint(1, 3) for _ in range(3))
    flags = [rng.choice(((False, False), (True, False), (False, True))) for _ in range(2)]
    a, b = ([k, m] if any(flags[0]) else [m, k]), ([n, k] if any(flags[1]) else [k, n])
    attrs = dict(transpose_a=flags[0][0], adjoint_a=flags[0][1], transpose_b=flags[1][0], adjoint_b=flags[1][1])
    return _matrix(rng, batch + a, dtype), _matrix(rng, batch + b, dtype), attrs


@call()
def SparseMatrixMatMul(op, rng):
    a, b, attrs = _factors(rng)
    return op(a=_csr(a), b=b, transpose_output=rng.random() < 0.3, conjugate_output=rng.random() < 0.3, **attrs)


@call()
def SparseMatrixSparseMatMul(op, rng):
    a, b, attrs = _factors(rng)
    return _dense(op(a=_csr(a), b=_csr(b), type=a.dtype, **attrs), a.dtype)


@call()
def SparseMatrixOrderingAMD(op, rng):
    n = rng.randint(1, 5)
    return op(input=_csr(_matrix(rng, rng.choice(([], [2])) + [n, n], np.float32, True)))


@call()
def SparseMatrixSparseCholesky(op, rng):
    n, dtype, batch = rng.randint(1, 5), rng.choice(_COMPLEX), rng.choice(([], [2]))
    x = _matrix(rng, batch + [n, n], dtype, True)
    order = np.array([rng.sample(range(n), n) for _ in range(2 if batch else 1)], np.int32)
    return _dense(op(input=_csr(x), permutation=order if batch else order[0], type=dtype), dtype)


# ---- counts and crosses

def _count_attrs(rng):
    return dict(minlength=rng.choice((-1, -1, 0, 5)), maxlength=rng.choice((-1, -1, 0, 3, 9)), binary_output=rng.random() < 0.5)


def _weights(rng, shape):
    dtype = rng.choice((np.int32, np.int64, np.float32, np.float64))
    return np.zeros([0], dtype) if rng.random() < 0.4 else integers(rng, shape, -3, 3).astype(dtype)


@call()
def DenseCountSparseOutput(op, rng):
    shape = rng.choice(([rng.randint(0, 4)], [2, rng.randint(0, 3)]))
    attrs = _count_attrs(rng)
    weights = np.zeros([0], np.float32) if attrs['binary_output'] else _weights(rng, shape)
    return op(values=integers(rng, shape, 0, 6, rng.choice((np.int32, np.int64))), weights=weights, **attrs)


@call()
def SparseCountSparseOutput(op, rng):
    shape = np.array(rng.choice(([6], [3, 4])), np.int64)
    where = np.argwhere(integers(rng, list(shape), 0, 1))
    attrs = _count_attrs(rng)
    return op(indices=where, values=integers(rng, [len(where)], 0, 6, rng.choice((np.int32, np.int64))), dense_shape=shape,
              weights=np.zeros([0], np.float32) if attrs['binary_output'] else _weights(rng, [len(where)]), **attrs)


@call()
def RaggedCountSparseOutput(op, rng):
    sizes = [rng.randint(0, 3) for _ in range(rng.randint(1, 4))]
    attrs = _count_attrs(rng)
    return op(splits=np.cumsum([0] + sizes), values=integers(rng, [sum(sizes)], 0, 6, rng.choice((np.int32, np.int64))),
              weights=np.zeros([0], np.float32) if attrs['binary_output'] else _weights(rng, [sum(sizes)]), **attrs)


@call()
def RaggedCross(op, rng):
    splits = rng.choice((tf.int32, tf.int64))  # TensorFlow crashes where the types of splits differ
    rows, order = rng.randint(1, 3), ''.join(rng.choice('RSD') for _ in range(rng.randint(1, 3)))
    inputs = {key: [] for key in ('ragged_values', 'ragged_row_splits', 'sparse_indices', 'sparse_values', 'sparse_shape', 'dense')}

    def features(shape):
        return strings(rng, shape) if rng.random() < 0.5 else integers(rng, shape, 0, 99)
    for kind in order:
        if kind == 'R':
            sizes = [rng.randint(0, 2) for _ in range(rows)]
            inputs['ragged_values'].append(features([sum(sizes)]))
            inputs['ragged_row_splits'].append(np.cumsum([0] + sizes).astype(splits.as_numpy_dtype))
        elif kind == 'S':
            where = np.argwhere(integers(rng, [rows, 3], 0, 1))
            inputs['sparse_indices'].append(where)
            inputs['sparse_values'].append(features([len(where)]))
            inputs['sparse_shape'].append(np.array([rows, 3], np.int64))
        else:
            inputs['dense'].append(features([rows, rng.randint(1, 2)]))
    hashed = rng.random() < 0.5
    return op(dense_inputs=inputs.pop('dense'), input_order=order, hashed_output=hashed, num_buckets=rng.choice((0, 7)),
              hash_key=rng.choice((0, 956888297470)), out_values_type=tf.int64 if hashed else tf.string,
              out_row_splits_type=splits, **inputs)
