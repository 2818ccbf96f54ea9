"""Random valid calls of data sets that read or write files (op_calls.write_files)."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function

from op_calls import call, fed
from op_calls_data import numbers, read, slices, source

raw = tf.raw_ops
_PACKED = (('', ''), ('.gz', 'GZIP'), ('.z', 'ZLIB'))


@call('CSVDataset', 'CSVDatasetV2', 'ExperimentalCSVDataset')
def csv(op, rng):
    suffix, packed = rng.choice(_PACKED)
    columns = rng.choice(([], [0, 3], [1, 2], [0]))
    types = [tf.string, tf.int32, tf.float32, tf.string]
    types = [types[i] for i in columns] if columns else types
    defaults = {tf.string: b'none', tf.int32: np.int32(5), tf.float32: np.float32(0.5)}
    attrs = dict(exclude_cols=np.array([], np.int64)) if op.name.endswith('V2') else {}
    made = op(filenames=['rows.csv' + suffix] * rng.randint(1, 2), compression_type=packed, buffer_size=rng.choice((16, 4096)),
              header=True, field_delim=',', use_quote_delim=True, na_value='', select_cols=np.array(columns, np.int64),
              record_defaults=[[defaults[t]] for t in types], output_shapes=[[]] * len(types), **attrs)
    return read(made, types, [[]] * len(types))


@call('FixedLengthRecordDataset', 'FixedLengthRecordDatasetV2')
def fixed(op, rng):
    two = op.name.endswith('V2')
    suffix, packed = rng.choice(_PACKED) if two else _PACKED[0]
    attrs = dict(compression_type=packed) if two else {}
    made = op(filenames=['fixed' + suffix] * rng.randint(1, 2), header_bytes=4, record_bytes=rng.choice((4, 8, 10)), footer_bytes=5,
              buffer_size=rng.choice((0, 7, 1000)), **attrs)
    return read(made, [tf.string], [[]])


@call()
def TFRecordDatasetV2(op, rng):
    suffix, packed = rng.choice(_PACKED)
    offsets = rng.choice((np.array([], np.int64), np.array([0], np.int64)))
    made = op(filenames=['records' + suffix], compression_type=packed, buffer_size=rng.choice((0, 20, 1000)), byte_offsets=offsets)
    return read(made, [tf.string], [[]])


@call('MatchingFilesDataset', 'ExperimentalMatchingFilesDataset')
def matching(op, rng):
    return read(op(patterns=rng.sample(['rows.csv*', 'fixed?z', 'fixed', 'none*'], rng.randint(1, 3))), [tf.string], [[]])


@call('SqlDataset', 'ExperimentalSqlDataset')
def sql(op, rng):
    query, types = rng.choice((('SELECT name, i FROM t', [tf.string, tf.int64]), ('SELECT f FROM t ORDER BY f', [tf.float64]),
                               ('SELECT i FROM t WHERE i > 0', [tf.int32])))
    made = op(driver_name='sqlite', data_source_name='rows.db', query=query, output_types=types, output_shapes=[[]] * len(types))
    return read(made, types, [[]] * len(types))


@call('DatasetToTFRecord', 'ExperimentalDatasetToTFRecord')
def to_records(op, rng):
    packed = rng.choice(('', 'GZIP', 'ZLIB'))
    name = 'out%d' % rng.getrandbits(40)
    made = op(input_dataset=slices(np.array([b'a', b'', b'ccc'], object)).handle, filename=name, compression_type=packed)
    again = raw.TFRecordDataset(filenames=[name], compression_type=packed, buffer_size=100)
    return [made] + read(again, [tf.string], [[]])


@call('SaveDataset', 'SaveDatasetV2', 'LoadDataset')
def saved(op, rng):
    given = source(rng)
    shard = function.Defun(*given.types)(lambda *element: tf.constant(0, tf.int64))
    reader = function.Defun(tf.variant)(lambda parts: raw.FlatMapDataset(
        input_dataset=parts, other_arguments=[], f=function.Defun(tf.variant)(lambda part: tf.identity(part)), **given.attrs()))
    attrs = dict(path='saved%d' % rng.getrandbits(40), compression=rng.choice(('', 'GZIP', 'SNAPPY', 'NONE')))
    save = dict(input_dataset=given.handle, shard_func_other_args=[], shard_func=shard, use_shard_func=rng.random() < 0.5)
    load = raw.LoadDataset(reader_func_other_args=[], reader_func=reader, **attrs, **given.attrs())
    if op.name == 'SaveDatasetV2':
        return read(op(**save, **attrs, **given.attrs()), given.types, given.shapes)
    return [raw.SaveDataset(**save, **attrs)] + read(load, given.types, given.shapes)


@call()
def SnapshotChunkDataset(op, rng):
    # A constant would be folded, which TensorFlow cannot do to a data set.
    return read(op(chunk_file=fed('shard/00000000.snapshot'), output_types=[tf.int64], output_shapes=[[]]), [tf.int64], [[]])


@call('SnapshotDatasetReader', 'SnapshotNestedDatasetReader')
def snapshot_reader(op, rng):
    attrs = dict(output_types=[tf.int64], output_shapes=[[]])
    shards = [raw.SnapshotDatasetReader(shard_dir='shard', start_index=rng.randint(0, 8), version=2, **attrs)
              for _ in range(rng.randint(1, 2))]
    made = raw.SnapshotNestedDatasetReader(inputs=shards, **attrs)
    inner = function.Defun(tf.variant)(lambda part: tf.identity(part))
    return read(raw.FlatMapDataset(input_dataset=made, other_arguments=[], f=inner, **attrs), [tf.int64], [[]])


@call()
def SnapshotDataset(op, rng):
    given = numbers(rng)
    made = op(input_dataset=given.handle, path='snapshot%d' % rng.getrandbits(40), compression=rng.choice(('', 'GZIP', 'SNAPPY')),
              mode=rng.choice(('auto', 'write', 'passthrough')), **given.attrs())
    return read(made, given.types, given.shapes)


@call()
def SnapshotDatasetV2(op, rng):
    given = numbers(rng)
    shard = function.Defun(*given.types)(lambda *element: tf.constant(0, tf.int64))
    reader = function.Defun(tf.variant)(lambda parts: raw.FlatMapDataset(
        input_dataset=parts, other_arguments=[], f=function.Defun(tf.variant)(lambda part: tf.identity(part)), **given.attrs()))
    made = op(input_dataset=given.handle, path='snapshot%d' % rng.getrandbits(40), reader_func_other_args=[],
              shard_func_other_args=[], compression=rng.choice(('', 'GZIP', 'AUTO')), reader_func=reader, shard_func=shard,
              **given.attrs())
    return read(made, given.types, given.shapes)
