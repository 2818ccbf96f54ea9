"""Small programs, one per stateful op: fetches that change the state, and fetches that show it.

The ops have an empty shared_name, so that two sessions could share state only by the names of nodes. Each run is a fetch, or
a fetch with its feeds.
"""

import os
import tempfile

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
raw = tf.raw_ops
F = [tf.float32]

CASES = {}
AT_ONCE = set()  # ops whose change is visible only while the changing step runs


def case(*ops, at_once=False):
    def add(build):
        for op in ops:
            CASES[op] = lambda op=op: build(op)
        if at_once:
            AT_ONCE.update(ops)
        return build
    return add


def make(op, **attrs):
    return getattr(raw, op)(**attrs)


def one():
    return tf.constant(1.0)


def a_file(tfrecord=False):
    """Creates a file of lines or records."""
    path = os.path.join(tempfile.gettempdir(), "records" if tfrecord else "lines")
    if tfrecord:
        with tf.io.TFRecordWriter(path) as file:
            for i in range(50):
                file.write(b"%d" % i)
    else:
        with open(path, "w") as file:
            file.write("line of text\n" * 3)
    return path


# For random ops the second draw is shown: a session that shares the stream sees the third.
def drawn(x):
    return x.op, x


@case("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def _(op):
    return drawn(make(op, shape=[4], dtype=tf.float32, seed=3, seed2=4))


@case("RandomUniformInt")
def _(op):
    return drawn(make(op, shape=[4], minval=0, maxval=1 << 30, seed=3, seed2=4))


@case("RandomGamma")
def _(op):
    return drawn(make(op, shape=[4], alpha=[2.0], seed=3, seed2=4))


@case("RandomPoissonV2")
def _(op):
    return drawn(make(op, shape=[40], rate=[20.0], seed=3, seed2=4))


@case("RecordInput")
def _(op):
    return drawn(make(op, file_pattern=a_file(tfrecord=True), file_random_seed=3, file_buffer_size=1, file_parallelism=1,
                      batch_size=1))


@case("ParameterizedTruncatedNormal")
def _(op):
    return drawn(make(op, shape=[1, 8], means=[0.0], stdevs=[1.0], minvals=[-2.0], maxvals=[2.0], seed=3, seed2=4))


@case("Multinomial")
def _(op):
    return drawn(make(op, logits=[[0.0] * 100], num_samples=8, seed=3, seed2=4))


@case("RandomShuffle")
def _(op):
    return drawn(make(op, value=tf.range(100), seed=3, seed2=4))


@case("SampleDistortedBoundingBox")
def _(op):
    return drawn(make(op, image_size=[1000, 1000, 3], bounding_boxes=np.float32([[[0.2, 0.2, 0.8, 0.8]]]), min_object_covered=0.1, seed=3, seed2=4).begin)


@case("SampleDistortedBoundingBoxV2")
def _(op):
    return drawn(make(op, image_size=[1000, 1000, 3], bounding_boxes=np.float32([[[0.2, 0.2, 0.8, 0.8]]]), min_object_covered=0.1,
                      seed=3, seed2=4).begin)


@case("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
      "ThreadUnsafeUnigramCandidateSampler")
def _(op):
    return drawn(make(op, true_classes=np.int64([[1]]), num_true=1, num_sampled=5, unique=True, range_max=10000,
                      seed=3, seed2=4).sampled_candidates)


@case("FixedUnigramCandidateSampler")
def _(op):
    return drawn(make(op, true_classes=np.int64([[1]]), num_true=1, num_sampled=5, unique=True, range_max=1000,
                      unigrams=[1.0] * 1000, seed=3, seed2=4).sampled_candidates)


@case("VariableV2", "Variable")
def _(op):
    v = make(op, shape=[], dtype=tf.float32)
    return raw.Assign(ref=v, value=one()).op, raw.IsVariableInitialized(ref=v)


@case("VarHandleOp")
def _(op):
    v = make(op, dtype=tf.float32, shape=[], shared_name="v")
    return raw.AssignVariableOp(resource=v, value=one()), raw.VarIsInitializedOp(resource=v)


@case("FIFOQueueV2", "PaddingFIFOQueueV2", "RandomShuffleQueueV2", "PriorityQueueV2",
      "FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue")
def _(op):
    q = make(op, component_types=F, shapes=[[]])
    put = [tf.constant(1, tf.int64), one()] if op.startswith("Priority") else [one()]
    if op.endswith("V2"):
        return raw.QueueEnqueueV2(handle=q, components=put), raw.QueueSizeV2(handle=q)
    return raw.QueueEnqueue(handle=q, components=put), raw.QueueSize(handle=q)


@case("Unbatch")
def _(op):
    # The rows of step 2 are batched with those of step 1, and wait for it.
    index = v1.placeholder(tf.int64, [None, 3])
    identifier = v1.placeholder(tf.int64, [])
    rows = v1.placeholder(tf.float32, [None])
    node = make(op, batched_tensor=rows, batch_index=index, id=identifier, timeout_micros=1000000)
    both, none = np.int64([[1, 0, 1], [2, 1, 2]]), np.zeros([0, 3])
    return (node, {index: both, identifier: 1, rows: [5, 6]}), (node, {index: none, identifier: 2, rows: []})


@case("MutexV2", at_once=True)
def _(op):
    # A step that holds the lock while it blocks.
    mutex = make(op)
    lock = raw.MutexLock(mutex=mutex)
    with tf.control_dependencies([lock]):
        waits = raw.QueueDequeueV2(handle=raw.FIFOQueueV2(component_types=F, shared_name="waits"), component_types=F)
    with tf.control_dependencies(waits):
        held = raw.ConsumeMutexLock(mutex_lock=lock)
    return held, raw.MutexLock(mutex=mutex).op


@case("SummaryWriter")
def _(op):
    writer = make(op)
    path = os.path.join(tempfile.gettempdir(), "summaries")
    opened = raw.CreateSummaryFileWriter(writer=writer, logdir=path, max_queue=1, flush_millis=1, filename_suffix="")
    return opened, raw.WriteScalarSummary(writer=writer, step=1, tag="a", value=1.0)


@case("Barrier")
def _(op):
    b = make(op, component_types=F, shapes=[[]])
    return (raw.BarrierInsertMany(handle=b, keys=["a"], values=[1.0], component_index=0),
            raw.BarrierReadySize(handle=b))


@case("ConditionalAccumulator")
def _(op):
    a = make(op, dtype=tf.float32, shape=[])
    return (raw.AccumulatorApplyGradient(handle=a, local_step=0, gradient=one()),
            raw.AccumulatorNumAccumulated(handle=a))


@case("SparseConditionalAccumulator")
def _(op):
    a = make(op, dtype=tf.float32, shape=[2])
    return (raw.SparseAccumulatorApplyGradient(
        handle=a, local_step=0, gradient_indices=np.int64([0]), gradient_values=[1.0], gradient_shape=np.int64([2]),
        has_known_shape=True), raw.AccumulatorNumAccumulated(handle=a))


@case("ResourceConditionalAccumulator")
def _(op):
    a = make(op, dtype=tf.float32, shape=[])
    return (raw.ResourceAccumulatorApplyGradient(handle=a, local_step=0, gradient=one()),
            raw.ResourceAccumulatorNumAccumulated(handle=a))


def staged(stage, size):
    return stage(key=tf.constant(1, tf.int64), indices=[0], values=[one()], dtypes=F, shared_name="m"), \
        size(dtypes=F, shared_name="m")


@case("MapStage")
def _(op):
    return staged(raw.MapStage, raw.MapSize)


@case("OrderedMapStage")
def _(op):
    return staged(raw.OrderedMapStage, raw.OrderedMapSize)


@case("StageSize")
def _(op):
    # One node takes the value that another session put: only the node's name can connect them.
    put = raw.Stage(values=[one()], shared_name="take", name="put")
    return put, raw.StageSize(dtypes=F, name="take")


@case("MapSize")
def _(op):
    put = raw.MapStage(key=tf.constant(1, tf.int64), indices=[0], values=[one()], dtypes=F, shared_name="take")
    return put, raw.MapSize(dtypes=F, name="take")


@case("Stage")
def _(op):
    # Two nodes of the same name in two sessions fill one buffer.
    put = make(op, values=[one()], name="put")
    return put, raw.StageSize(dtypes=F, shared_name="put")


@case("MapIncompleteSize", "OrderedMapIncompleteSize", "OrderedMapSize")
def _(op):
    stage = raw.OrderedMapStage if op.startswith("Ordered") else raw.MapStage
    types = F * 2 if op.endswith("IncompleteSize") else F  # the second value is missing
    put = stage(key=tf.constant(1, tf.int64), indices=[0], values=[one()], dtypes=types, shared_name=op)
    return put, make(op, dtypes=types, name=op)


@case("HashTableV2", "HashTableV2 (use_node_name_sharing)")
def _(op):
    t = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, use_node_name_sharing="(" in op)
    return raw.InitializeTableV2(table_handle=t, keys=["a"], values=np.int64([5])), raw.LookupTableSizeV2(table_handle=t)


@case("HashTable", "HashTable (use_node_name_sharing)")
def _(op):
    t = raw.HashTable(key_dtype=tf.string, value_dtype=tf.int64, use_node_name_sharing="(" in op)
    return raw.InitializeTable(table_handle=t, keys=["a"], values=np.int64([5])), raw.LookupTableSize(table_handle=t)


@case("MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableHashTableV2 (use_node_name_sharing)",
      "MutableHashTableOfTensorsV2 (use_node_name_sharing)")
def _(op):
    more = {"value_shape": [1]} if "Tensors" in op else {}
    t = make(op.split()[0], key_dtype=tf.string, value_dtype=tf.int64, use_node_name_sharing="(" in op, **more)
    return (raw.LookupTableInsertV2(table_handle=t, keys=["a"], values=np.int64([[5]] if "Tensors" in op else [5])),
            raw.LookupTableSizeV2(table_handle=t))


@case("MutableHashTable", "MutableHashTableOfTensors")
def _(op):
    more = {"value_shape": [1]} if "Tensors" in op else {}
    t = make(op, key_dtype=tf.string, value_dtype=tf.int64, **more)
    return (raw.LookupTableInsert(table_handle=t, keys=["a"], values=np.int64([[5]] if "Tensors" in op else [5])), raw.LookupTableSize(table_handle=t))


@case("MutableDenseHashTableV2", "MutableDenseHashTableV2 (use_node_name_sharing)")
def _(op):
    t = raw.MutableDenseHashTableV2(empty_key=np.int64(0), deleted_key=np.int64(-1), value_dtype=tf.int64, value_shape=[],
                                    use_node_name_sharing="(" in op)
    return (raw.LookupTableInsertV2(table_handle=t, keys=np.int64([7]), values=np.int64([5])),
            raw.LookupTableSizeV2(table_handle=t))


def reader(op, **more):
    r = make(op, **more)
    v2 = op.endswith("V2")
    q = raw.FIFOQueueV2(component_types=[tf.string]) if v2 else raw.FIFOQueue(component_types=[tf.string])
    put = (raw.QueueEnqueueV2 if v2 else raw.QueueEnqueue)(handle=q, components=[tf.constant(a_file("TFRecord" in op))])
    with tf.control_dependencies([put]):
        read = (raw.ReaderReadV2 if v2 else raw.ReaderRead)(reader_handle=r, queue_handle=q)
    return read.key.op, (raw.ReaderNumRecordsProducedV2 if v2 else raw.ReaderNumRecordsProduced)(reader_handle=r)


@case("IdentityReaderV2", "WholeFileReaderV2", "WholeFileReader", "TextLineReaderV2", "FixedLengthRecordReaderV2",
      "TFRecordReaderV2")
def _(op):
    return reader(op, **({"record_bytes": 4} if op.startswith("Fixed") else {}))


@case("AddSparseToTensorsMap", "AddManySparseToTensorsMap")
def _(op):
    if op == "AddSparseToTensorsMap":
        h = make(op, sparse_indices=np.int64([[0]]), sparse_values=[1.0], sparse_shape=np.int64([2]))
    else:
        h = make(op, sparse_indices=np.int64([[0, 0]]), sparse_values=[1.0], sparse_shape=np.int64([1, 2]))
    return h.op, h  # handles are consecutive numbers


@case("IteratorV2", "Iterator")
def _(op):
    d = raw.RangeDataset(start=np.int64(0), stop=np.int64(9), step=np.int64(1), output_types=[tf.int64], output_shapes=[[]])
    i = make(op, shared_name="", container="", output_types=[tf.int64], output_shapes=[[]])
    n = raw.IteratorGetNext(iterator=i, output_types=[tf.int64], output_shapes=[[]])[0]
    return raw.MakeIterator(dataset=d, iterator=i), n


@case("OneShotIterator")
def _(op):
    n = v1.data.make_one_shot_iterator(tf.data.Dataset.range(9)).get_next()
    return n.op, n
