"""Random valid calls of data sets that group elements, or call functions on them."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function

from op_calls import call, example, floats, integers, values
from op_calls_data import Source, numbers, read, read_all, slices, source

raw = tf.raw_ops


# ---- groups

@call('SlidingWindowDataset', 'ExperimentalSlidingWindowDataset')
def sliding(op, rng):
    given = numbers(rng)
    attrs = {} if op.name.startswith('Exp') else dict(drop_remainder=rng.random() < 0.5)
    made = op(input_dataset=given.handle, window_size=rng.randint(1, 4), window_shift=rng.randint(1, 3),
              window_stride=rng.randint(1, 2), output_types=[tf.int64], output_shapes=[[None]], **attrs)
    return read(made, [tf.int64], [[None]])


@call()
def WindowDataset(op, rng):
    given = source(rng)
    made = op(input_dataset=given.handle, size=rng.randint(1, 4), shift=rng.randint(1, 3), stride=rng.randint(1, 2),
              drop_remainder=rng.random() < 0.5, output_types=[tf.variant] * len(given.types),
              output_shapes=[[]] * len(given.types))

    @function.Defun(*[tf.variant] * len(given.types))
    def flat(*parts):
        batches = [raw.BatchDatasetV2(input_dataset=p, batch_size=9, drop_remainder=False, output_types=[t], output_shapes=[[None] + s])
                   for p, t, s in zip(parts, given.types, given.shapes)]
        return raw.ZipDataset(input_datasets=batches, output_types=given.types, output_shapes=[[None] + s for s in given.shapes])
    shapes = [[None] + s for s in given.shapes]
    return read(raw.FlatMapDataset(input_dataset=made, other_arguments=[], f=flat, output_types=given.types, output_shapes=shapes),
                given.types, shapes)


@call()
def WindowOp(op, rng):
    xs = [values(rng, [], rng.choice((tf.float32, tf.int64, tf.string))) for _ in range(1)]
    dtype = tf.string if xs[0].dtype == object else tf.as_dtype(xs[0].dtype)
    return read(op(inputs=xs, output_types=[dtype], output_shapes=[[]]), [dtype], [[]])


@call()
def ParallelBatchDataset(op, rng):
    given = source(rng)
    shapes = [[None] + s for s in given.shapes]
    made = op(input_dataset=given.handle, batch_size=rng.randint(1, 4), num_parallel_calls=rng.randint(1, 2),
              drop_remainder=rng.random() < 0.5, parallel_copy=rng.random() < 0.5, output_types=given.types, output_shapes=shapes,
              deterministic=rng.choice(('default', 'true')))
    return read(made, given.types, shapes)


def _batched(rng):
    given = source(rng)
    shapes = [[None] + s for s in given.shapes]
    made = raw.BatchDatasetV2(input_dataset=given.handle, batch_size=rng.randint(1, 4), drop_remainder=False,
                              output_types=given.types, output_shapes=shapes)
    return Source(made, given.types, shapes), given


@call('RebatchDataset', 'ExperimentalRebatchDataset')
def rebatch(op, rng):
    return read_all(op, _batched(rng)[0], num_replicas=rng.randint(1, 3), use_fallback=rng.random() < 0.5)


@call()
def RebatchDatasetV2(op, rng):
    return read_all(op, _batched(rng)[0], batch_sizes=integers(rng, [rng.randint(1, 2)], 1, 4), drop_remainder=rng.random() < 0.5)


@call()
def ExperimentalUnbatchDataset(op, rng):
    batches, given = _batched(rng)
    return read(op(input_dataset=batches.handle, **given.attrs()), given.types, given.shapes)


@call('DenseToSparseBatchDataset', 'ExperimentalDenseToSparseBatchDataset')
def sparse_batches(op, rng):
    given = slices(floats(rng, [rng.randint(0, 5), rng.randint(1, 3)]))
    made = op(input_dataset=given.handle, batch_size=rng.randint(1, 3), row_shape=[rng.choice((-1, 3, 4))], output_types=[tf.variant],
              output_shapes=[[None, 3]])
    back = function.Defun(tf.variant)(
        lambda v: tuple(raw.DeserializeSparse(serialized_sparse=v, dtype=tf.float32)))
    types, shapes = [tf.int64, tf.float32, tf.int64], [None, None, None]
    return read(raw.MapDataset(input_dataset=made, other_arguments=[], f=back, output_types=types, output_shapes=shapes), types, shapes)


@call()
def SparseTensorSliceDataset(op, rng):
    shape = [rng.randint(0, 4), 3]
    where = np.argwhere(integers(rng, shape, 0, 1))
    types, shapes = [tf.int64, tf.float32, tf.int64], [[None, 1], [None], [1]]
    return read(op(indices=where, values=floats(rng, [len(where)]), dense_shape=np.array(shape, np.int64)), types, shapes)


@call('GroupByReducerDataset', 'ExperimentalGroupByReducerDataset')
def reduce_groups(op, rng):
    key = function.Defun(tf.int64)(lambda x: x % 3)
    init = function.Defun(tf.int64)(lambda k: tf.constant(rng.randint(-2, 2), tf.int64))
    reduce = function.Defun(tf.int64, tf.int64)(lambda state, x: state * 2 + x)
    last = function.Defun(tf.int64)(lambda state: state + 1)
    made = op(input_dataset=numbers(rng).handle, key_func_other_arguments=[], init_func_other_arguments=[],
              reduce_func_other_arguments=[], finalize_func_other_arguments=[], key_func=key, init_func=init, reduce_func=reduce,
              finalize_func=last, output_types=[tf.int64], output_shapes=[[]])
    return read(made, [tf.int64], [[]])


@call('GroupByWindowDataset', 'ExperimentalGroupByWindowDataset')
def group_windows(op, rng):
    size = rng.randint(1, 3)
    key = function.Defun(tf.int64)(lambda x: x % 3)
    window = function.Defun(tf.int64)(lambda k: tf.constant(size, tf.int64))
    reduce = function.Defun(tf.int64, tf.variant)(lambda k, d: raw.BatchDatasetV2(
        input_dataset=d, batch_size=9, drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]]))
    made = op(input_dataset=numbers(rng).handle, key_func_other_arguments=[], reduce_func_other_arguments=[],
              window_size_func_other_arguments=[], key_func=key, reduce_func=reduce, window_size_func=window,
              output_types=[tf.int64], output_shapes=[[None]])
    return read(made, [tf.int64], [[None]])


# ---- functions of elements

@call()
def ExperimentalMapAndBatchDataset(op, rng):
    double = function.Defun(tf.int64)(lambda x: (x * 2, tf.as_string(x)))
    types, shapes = [tf.int64, tf.string], [[None], [None]]
    made = op(input_dataset=numbers(rng).handle, other_arguments=[], f=double, batch_size=rng.randint(1, 3),
              num_parallel_calls=rng.randint(1, 2), drop_remainder=rng.random() < 0.5, output_types=types, output_shapes=shapes)
    return read(made, types, shapes)


@call()
def ExperimentalParallelInterleaveDataset(op, rng):
    ranges = function.Defun(tf.int64)(lambda x: raw.RangeDataset(
        start=np.int64(0), stop=x, step=np.int64(1), output_types=[tf.int64], output_shapes=[[]]))
    made = op(input_dataset=numbers(rng).handle, other_arguments=[], f=ranges, cycle_length=rng.randint(1, 3),
              block_length=rng.randint(1, 3), sloppy=False, buffer_output_elements=1, prefetch_input_elements=1,
              output_types=[tf.int64], output_shapes=[[]])
    return read(made, [tf.int64], [[]])


@call()
def ExperimentalScanDataset(op, rng):
    add = function.Defun(tf.int64, tf.int64)(lambda state, x: (state + x, state * x))
    made = op(input_dataset=numbers(rng).handle, initial_state=[np.int64(rng.randint(-2, 2))], other_arguments=[], f=add,
              output_types=[tf.int64], output_shapes=[[]])
    return read(made, [tf.int64], [[]])


@call()
def ExperimentalTakeWhileDataset(op, rng):
    small = function.Defun(tf.int64)(lambda x: x < 5)
    return read_all(op, numbers(rng), other_arguments=[], predicate=small)


@call()
def GeneratorDataset(op, rng):
    counts = function.Defun(tf.int64)(lambda n: tf.identity(n))
    after = function.Defun(tf.int64)(lambda n: n * 3)
    made = op(init_func_other_args=[np.int64(rng.randint(0, 3))], next_func_other_args=[], finalize_func_other_args=[],
              init_func=counts, next_func=after, finalize_func=after, output_types=[tf.int64], output_shapes=[[]])
    return read(made, [tf.int64], [[]])


@call()
def ChooseFastestBranchDataset(op, rng):
    same = function.Defun(tf.variant)(lambda d: raw.TakeDataset(
        input_dataset=d, count=np.int64(100), output_types=[tf.int64], output_shapes=[[]]))
    made = op(input_dataset=numbers(rng).handle, ratio_numerator=1, ratio_denominator=1, other_arguments=[],
              num_elements_per_branch=rng.randint(1, 2), branches=[same, same], other_arguments_lengths=[0, 0],
              output_types=[tf.int64], output_shapes=[[]])
    return read(made, [tf.int64], [[]])


@call()
def IndexFlatMapDataset(op, rng):
    pairs = function.Defun(tf.int64)(lambda x: tf.stack([x, x + 1]))
    index = function.Defun(tf.int64)(lambda i: (i // 2, i % 2))
    given = numbers(rng, 1)
    made = op(input_dataset=given.handle, map_func_other_args=[], index_map_func_other_args=[],
              output_cardinality=np.int64(rng.randint(1, 4)), map_func=pairs, index_map_func=index, output_types=[tf.int64],
              output_shapes=[[]])
    return read(made, [tf.int64], [[]])


_FEATURES = dict(sparse_keys=['s', 'r'], sparse_types=[tf.string, tf.int64], dense_keys=['f', 'i'], dense_shapes=[[2], []])


@call('ParseExampleDataset', 'ParseExampleDatasetV2', 'ExperimentalParseExampleDataset')
def parse_examples(op, rng):
    given = slices(np.array([[example(rng) for _ in range(rng.randint(1, 3))]], object))
    types = [tf.float32, tf.int64, tf.variant, tf.variant]
    attrs = dict(output_types=types, output_shapes=[[None, 2], [None], None, None])
    made = op(input_dataset=given.handle, num_parallel_calls=rng.randint(1, 2),
              dense_defaults=[np.zeros([0], np.float32), np.zeros([0], np.int64)], **_FEATURES, **attrs)
    back = function.Defun(*types)(lambda f, i, r, s: (f, i))
    return read(raw.MapDataset(input_dataset=made, other_arguments=[], f=back, output_types=types[:2], output_shapes=[None, None]),
                types[:2], [None, None])
