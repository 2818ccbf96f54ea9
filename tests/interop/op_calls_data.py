"""Random valid calls of ops on data sets and iterators. Each data set is read to its end, or for six elements."""

import numpy as np
import tensorflow as tf

from op_calls import call, floats, integers, strings, values

raw = tf.raw_ops
_READS = 5


class Source:
    """A data set with its types and shapes."""

    def __init__(self, handle, types, shapes):
        self.handle, self.types, self.shapes = handle, types, shapes

    def attrs(self):
        return dict(output_types=self.types, output_shapes=self.shapes)


def slices(*arrays):
    arrays = [np.asarray(a) for a in arrays]
    types = [tf.string if a.dtype == object else tf.as_dtype(a.dtype) for a in arrays]
    shapes = [list(a.shape[1:]) for a in arrays]
    handle = raw.TensorSliceDataset(components=[tf.constant(a, t) for a, t in zip(arrays, types)], output_shapes=shapes)
    return Source(handle, types, shapes)


def numbers(rng, low=0, high=7):
    """Scalars, int64."""
    return slices(integers(rng, [rng.randint(low, high)], -3, 9))


def source(rng):
    """A data set of elements of any kind."""
    n = rng.randint(0, 7)
    kind = rng.randrange(3)
    if kind == 0:
        return slices(integers(rng, [n], -3, 9))
    if kind == 1:
        return slices(floats(rng, [n, 2]))
    return slices(integers(rng, [n], -3, 9), strings(rng, [n, 1]))


def read(handle, types, shapes, others=()):
    """The steps that read a data set; `others` are fetched in a step after them."""
    iterator = raw.IteratorV2(shared_name='', container='', output_types=types, output_shapes=shapes)
    get = raw.IteratorGetNext(iterator=iterator, output_types=types, output_shapes=shapes)
    make = raw.MakeIterator(dataset=handle, iterator=iterator)
    return [make] + [get] * _READS + list(others)


def read_all(op, given, **attrs):
    """Reads the data set that `op` makes of `given`: one with the same types and shapes."""
    made = op(input_dataset=given.handle, **dict(given.attrs(), **attrs))
    return read(made, given.types, given.shapes)


# ---- the same elements

@call('IgnoreErrorsDataset', 'ExperimentalIgnoreErrorsDataset', 'NonSerializableDataset', 'ExperimentalNonSerializableDataset',
      'UniqueDataset', 'ExperimentalUniqueDataset', 'FinalizeDataset')
def plain_transform(op, rng):
    given = slices(integers(rng, [rng.randint(0, 7)], 0, 3)) if 'Unique' in op.name else source(rng)
    return read_all(op, given)


@call('BytesProducedStatsDataset', 'ExperimentalBytesProducedStatsDataset', 'LatencyStatsDataset',
      'ExperimentalLatencyStatsDataset')
def stats(op, rng):
    return read_all(op, source(rng), tag='tag')


@call('SleepDataset', 'ExperimentalSleepDataset')
def sleep(op, rng):
    return read_all(op, source(rng), sleep_microseconds=rng.randint(0, 10))


@call('ExperimentalMaxIntraOpParallelismDataset')
def max_parallelism(op, rng):
    return read_all(op, source(rng), max_intra_op_parallelism=rng.randint(1, 3))


@call('ExperimentalPrivateThreadPoolDataset')
def private_threads(op, rng):
    return read_all(op, source(rng), num_threads=rng.randint(0, 2))


@call('ThreadPoolDataset', 'ExperimentalThreadPoolDataset')
def thread_pool(op, rng):
    handle = raw.ExperimentalThreadPoolHandle if op.name.startswith('Exp') else raw.ThreadPoolHandle
    return read_all(op, source(rng), thread_pool=handle(num_threads=rng.randint(1, 2), display_name='pool'))


@call('ThreadPoolHandle', 'ExperimentalThreadPoolHandle', 'StatsAggregatorHandle', 'StatsAggregatorHandleV2',
      'ExperimentalStatsAggregatorHandle', 'AnonymousMemoryCache', 'DummyMemoryCache', 'AnonymousIterator',
      'AnonymousIteratorV2', 'AnonymousIteratorV3', 'AnonymousMultiDeviceIterator', 'AnonymousMultiDeviceIteratorV3',
      'MultiDeviceIterator')
def handle_of(op, rng):
    attrs = {}
    if 'Iterator' in op.name:
        attrs.update(output_types=[tf.int64], output_shapes=[[]])
    if 'MultiDevice' in op.name:
        attrs['devices'] = ['/cpu:0'] * rng.randint(1, 2)
    if op.name == 'MultiDeviceIterator':
        attrs.update(shared_name='', container='')
    if 'ThreadPool' in op.name:
        attrs.update(num_threads=rng.randint(1, 2), display_name='pool')
    return op(**attrs)


@call('SetStatsAggregatorDataset', 'ExperimentalSetStatsAggregatorDataset')
def set_aggregator(op, rng):
    handle = raw.ExperimentalStatsAggregatorHandle if op.name.startswith('Exp') else raw.StatsAggregatorHandle
    return read_all(op, source(rng), stats_aggregator=handle(), tag='tag', counter_prefix='counter')


@call('StatsAggregatorSummary', 'ExperimentalStatsAggregatorSummary')
def aggregator_summary(op, rng):
    handle = raw.ExperimentalStatsAggregatorHandle if op.name.startswith('Exp') else raw.StatsAggregatorHandle
    return op(iterator=handle())


@call('AutoShardDataset', 'ExperimentalAutoShardDataset')
def auto_shard(op, rng):
    workers = rng.randint(1, 3)
    return read_all(op, source(rng), num_workers=workers, index=rng.randint(0, workers - 1), auto_shard_policy=rng.choice((0, 2)))


@call()
def AssertCardinalityDataset(op, rng):
    n = rng.randint(0, 5)
    return read_all(op, slices(np.arange(n)), cardinality=rng.choice((n, n, n + 1, 2, -1)))


@call()
def RewriteDataset(op, rng):
    return read_all(op, source(rng), rewrite_name=rng.choice(('noop', '')))


@call()
def OptimizeDatasetV2(op, rng):
    return read_all(op, source(rng), optimizations_enabled=strings(rng, [rng.randint(0, 1)], [b'map_fusion']),
                    optimizations_disabled=strings(rng, [0]), optimizations_default=strings(rng, [0]))


@call('WrapDatasetVariant', 'UnwrapDatasetVariant')
def wrapped(op, rng):
    given = source(rng)
    return read(raw.UnwrapDatasetVariant(input_handle=raw.WrapDatasetVariant(input_handle=given.handle)), given.types, given.shapes)


@call()
def CacheDatasetV2(op, rng):
    name = rng.choice(('', 'cache%d' % rng.getrandbits(40)))
    return read_all(op, source(rng), filename=name, cache=raw.AnonymousMemoryCache()[0])


@call()
def DeleteMemoryCache(op, rng):
    handle, deleter = raw.AnonymousMemoryCache()
    return op(handle=handle, deleter=deleter)


# ---- order

def _seeds(rng):
    return dict(seed=rng.randint(0, 3), seed2=rng.randint(0, 3))


@call('RandomDataset', 'ExperimentalRandomDataset')
def random_numbers(op, rng):
    seeds = dict(seed=rng.randint(1, 3), seed2=rng.randint(0, 3))
    return read(op(output_types=[tf.int64], output_shapes=[[]], **seeds), [tf.int64], [[]])


def _generator(rng):
    return raw.AnonymousSeedGenerator(seed=rng.randint(1, 3), seed2=rng.randint(1, 3), reshuffle=rng.random() < 0.5)


@call()
def RandomDatasetV2(op, rng):
    made = op(seed=rng.randint(1, 3), seed2=rng.randint(1, 3), seed_generator=_generator(rng)[0], output_types=[tf.int64],
              output_shapes=[[]], rerandomize_each_iteration=rng.random() < 0.5)
    return read(made, [tf.int64], [[]])


@call('AnonymousSeedGenerator', 'DeleteSeedGenerator')
def seed_generator(op, rng):
    handle, deleter = _generator(rng)
    return raw.DeleteSeedGenerator(handle=handle, deleter=deleter)


@call('AnonymousRandomSeedGenerator', 'DeleteRandomSeedGenerator')
def random_seed_generator(op, rng):
    handle, deleter = raw.AnonymousRandomSeedGenerator(**_seeds(rng))
    return raw.DeleteRandomSeedGenerator(handle=handle, deleter=deleter)


@call()
def ShuffleDatasetV2(op, rng):
    return read_all(op, source(rng), buffer_size=rng.randint(1, 9), seed_generator=_generator(rng)[0])


@call()
def ShuffleAndRepeatDataset(op, rng):
    return read_all(op, numbers(rng, 1), buffer_size=rng.randint(1, 9), seed=rng.randint(1, 3), seed2=rng.randint(0, 3),
                    count=rng.choice((1, 2, -1, 0)), reshuffle_each_iteration=rng.random() < 0.5)


@call()
def ShuffleAndRepeatDatasetV2(op, rng):
    return read_all(op, numbers(rng, 1), buffer_size=rng.randint(1, 9), seed=rng.randint(1, 3), seed2=rng.randint(1, 3),
                    count=rng.choice((1, 2, -1, 0)), seed_generator=_generator(rng)[0],
                    reshuffle_each_iteration=rng.random() < 0.5)


@call()
def GlobalShuffleDataset(op, rng):
    return read_all(op, numbers(rng, 1), seed=rng.randint(1, 3), seed2=rng.randint(1, 3), seed_generator=_generator(rng)[0],
                    reshuffle_each_iteration=rng.random() < 0.5)


@call()
def SamplingDataset(op, rng):
    return read_all(op, source(rng), rate=np.float32(rng.choice((0.0, 0.3, 0.7, 1.0))), seed=rng.randint(1, 3),
                    seed2=rng.randint(0, 3))


@call('DirectedInterleaveDataset', 'ExperimentalDirectedInterleaveDataset')
def choose(op, rng):
    n = rng.randint(1, 3)
    parts = [numbers(rng) for _ in range(n)]
    attrs = {} if op.name.startswith('Exp') else dict(stop_on_empty_dataset=rng.random() < 0.5)
    made = op(selector_input_dataset=slices(integers(rng, [rng.randint(0, 7)], 0, n - 1)).handle,
              data_input_datasets=[p.handle for p in parts], output_types=[tf.int64], output_shapes=[[]], **attrs)
    return read(made, [tf.int64], [[]])


@call('ChooseFastestDataset', 'ExperimentalChooseFastestDataset')
def fastest(op, rng):
    given = source(rng)
    made = op(input_datasets=[given.handle] * rng.randint(2, 3), num_experiments=rng.randint(1, 3), **given.attrs())
    return read(made, given.types, given.shapes)


@call()
def WeightedFlatMapDataset(op, rng):
    n = rng.randint(2, 3)
    made = op(input_datasets=[numbers(rng, 1).handle for _ in range(n)], weights=[np.float64(1)] * n, output_types=[tf.int64],
              output_shapes=[[]])
    return read(made, [tf.int64], [[]])


# ---- what is asked of a data set or an iterator

@call('DatasetCardinality', 'ExperimentalDatasetCardinality')
def cardinality(op, rng):
    return op(input_dataset=source(rng).handle)


@call()
def DatasetToSingleElement(op, rng):
    given = slices(floats(rng, [rng.choice((1, 1, 1, 0, 2)), 2]))
    return op(dataset=given.handle, **given.attrs())


@call()
def GetElementAtIndex(op, rng):
    given = slices(floats(rng, [3, 2]), integers(rng, [3], 0, 9))
    return op(dataset=given.handle, index=rng.randint(0, 2), **given.attrs())


@call()
def GetOptions(op, rng):
    return op(input_dataset=source(rng).handle)


@call()
def ListDataset(op, rng):
    given = [values(rng, [2], tf.float32) for _ in range(rng.randint(1, 4))]
    return read(op(tensors=given, output_types=[tf.float32], output_shapes=[[2]]), [tf.float32], [[2]])


@call()
def IteratorGetNextAsOptional(op, rng):
    given = source(rng)
    iterator = raw.IteratorV2(shared_name='', container='', **given.attrs())
    optional = op(iterator=iterator, **given.attrs())
    return [raw.MakeIterator(dataset=given.handle, iterator=iterator)] + [raw.OptionalHasValue(optional=optional)] * 4 + [
        raw.OptionalGetValue(optional=optional, **given.attrs())]


@call('IteratorGetDevice', 'ExperimentalIteratorGetDevice', 'SerializeIterator', 'DeserializeIterator', 'IteratorGetModelProto')
def of_iterator(op, rng):
    given = source(rng)
    iterator = raw.IteratorV2(shared_name='', container='', **given.attrs())
    get = raw.IteratorGetNext(iterator=iterator, **given.attrs())
    make = raw.MakeIterator(dataset=given.handle, iterator=iterator)
    if 'ialize' in op.name:
        saved = raw.SerializeIterator(resource_handle=iterator, external_state_policy=rng.randint(0, 2))
        return [make, get, raw.DeserializeIterator(resource_handle=iterator, serialized=saved), get]
    asked = op(iterator=iterator) if 'Model' in op.name else op(resource=iterator)
    return [make, asked.op]


@call()
def DeleteIterator(op, rng):
    given = source(rng)
    handle, deleter = raw.AnonymousIteratorV2(**given.attrs())
    return op(handle=handle, deleter=deleter)


@call()
def DeleteMultiDeviceIterator(op, rng):
    given = numbers(rng)
    handle, deleter = raw.AnonymousMultiDeviceIterator(devices=['/cpu:0'], **given.attrs())
    start = raw.MultiDeviceIteratorInit(dataset=given.handle, multi_device_iterator=handle, max_buffer_size=1)
    with tf.control_dependencies([start]):
        return op(multi_device_iterator=handle, iterators=[], deleter=deleter)


@call('MultiDeviceIteratorInit', 'MultiDeviceIteratorGetNextFromShard', 'MultiDeviceIteratorToStringHandle',
      'MultiDeviceIteratorFromStringHandle')
def multi_device(op, rng):
    given = numbers(rng)
    name = 'm%d' % rng.getrandbits(20)
    iterator = raw.MultiDeviceIterator(devices=['/cpu:0', '/cpu:0'], shared_name=name, container='', **given.attrs())
    start = raw.MultiDeviceIteratorInit(dataset=given.handle, multi_device_iterator=iterator, max_buffer_size=rng.randint(1, 3))
    text = raw.MultiDeviceIteratorToStringHandle(multi_device_iterator=iterator)
    again = raw.MultiDeviceIteratorFromStringHandle(string_handle=text, **given.attrs())
    gets = [raw.MultiDeviceIteratorGetNextFromShard(multi_device_iterator=again, shard_num=shard, incarnation_id=np.int64(1),
                                                    **given.attrs()) for shard in (0, 1)]
    return [start, gets[0], gets[1], gets[0], gets[1]]


@call('CompressElement', 'UncompressElement')
def compressed(op, rng):
    types = [rng.choice((tf.float32, tf.string, tf.int64)) for _ in range(rng.randint(1, 2))]
    packed = raw.CompressElement(components=[values(rng, rng.choice(([], [3], [0])), t) for t in types])
    return raw.UncompressElement(compressed=packed, output_types=types, output_shapes=[None] * len(types))


@call()
def InitializeTableFromDataset(op, rng):
    given = slices(np.arange(3), strings(rng, [3]))
    table = raw.HashTableV2(key_dtype=tf.int64, value_dtype=tf.string)
    found = raw.LookupTableFindV2(table_handle=table, keys=integers(rng, [4], 0, 4), default_value=b'none')
    return [op(table_handle=table, dataset=given.handle), found]
