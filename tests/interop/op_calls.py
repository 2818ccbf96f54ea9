"""Random valid calls of ops, for invalid_arguments.py and valid_arguments.py.

A function decorated with `@call()` builds a call of the op of its name, `@call('A', 'B')` one of each named op. It gets an Op,
which adds a node of that op, and a random.Random, adds nodes to the default graph, and returns the steps to run: a list with the
tensors and operations that each step fetches. A tensor, an operation or a tuple of them is a single step. The same random
numbers make the same graph.

The modules of the table are op_calls_*.py. A file that a call reads is written by `write_files`; paths are relative to the
working folder of each runtime.
"""

import collections
import glob
import gzip
import os
import random
import shutil
import sqlite3
import struct
import zlib

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function, op_def_library, op_def_registry

MOST_STEPS = 8  # tests/fuzz/mutate.h
CALLS = collections.defaultdict(list)  # {op: [function of (op, rng)]}


def call(*ops):
    def register(build_call):
        for op in ops or (build_call.__name__,):
            CALLS[op].append(build_call)
        return build_call
    return register


def _python_value(spec):
    """The default value of an AttrDef."""
    value, kind = spec.default_value, spec.type
    if kind.startswith('list('):
        part = getattr(value.list, {'int': 'i', 'float': 'f', 'bool': 'b', 'string': 's', 'type': 'type', 'shape': 'shape',
                                    'func': 'func'}[kind[5:-1]])
        return list(part)
    return getattr(value, value.WhichOneof('value'))


class Op:
    """Adds a node of an op to the default graph; inputs and attributes are named. tf.raw_ops does not have all ops."""

    def __init__(self, name):
        self.name = name
        self.op_def = op_def_registry.get(name)

    def __call__(self, **arguments):
        inferred = {getattr(arg, name) for arg in self.op_def.input_arg for name in ('type_attr', 'type_list_attr', 'number_attr')}
        for spec in self.op_def.attr:
            if spec.HasField('default_value') and spec.name not in inferred:
                arguments.setdefault(spec.name, _python_value(spec))
        outputs = op_def_library.apply_op(self.name, **arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs


def all_calls():
    """The table with the calls of all modules."""
    import op_calls_data  # noqa: F401
    import op_calls_data_files  # noqa: F401
    import op_calls_data_functions  # noqa: F401
    import op_calls_numbers  # noqa: F401
    import op_calls_proto  # noqa: F401
    import op_calls_quantized  # noqa: F401
    import op_calls_sparse  # noqa: F401
    return CALLS


def build(op, build_call, seed):
    """Returns the bytes of a GraphDef with the call, and with the marks of its steps (tests/fuzz/mutate.h)."""
    rng = random.Random('%s %d' % (op, seed))
    with tf.Graph().as_default() as graph:
        node = Op(op)
        if node.op_def.HasField('deprecation'):  # an empty graph of a version that still has the op
            versions = tf.compat.v1.GraphDef().versions
            versions.producer = node.op_def.deprecation.version - 1
            tf.import_graph_def(tf.compat.v1.GraphDef(versions=versions))
        steps = build_call(node, rng)
        if not isinstance(steps, list):
            steps = [steps]
        for number, fetches in enumerate(steps[:MOST_STEPS - 1]):
            for fetch in _flat(fetches):
                _mark(graph, number, fetch)
    return graph.as_graph_def(add_shapes=False).SerializeToString()


def _flat(fetches):
    if isinstance(fetches, (list, tuple)):
        return [one for part in fetches for one in _flat(part)]
    return [fetches]


def _mark(graph, number, fetch):
    is_op = isinstance(fetch, tf.Operation)
    node = fetch if is_op else fetch.op
    plain = not is_op and fetch.dtype.base_dtype not in (tf.resource, tf.variant)
    mark = '_fetch.%d.%d' % (number, fetch.value_index) if plain else '_target.%d' % number
    value = tf.compat.v1.AttrValue(b=True)
    node._set_attr(mark, value)


# ---- random values

def floats(rng, shape, low=-2.0, high=2.0, dtype=np.float32):
    size = int(np.prod(shape, dtype=np.int64))
    values = np.array([rng.uniform(low, high) for _ in range(size)]).reshape(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * np.array([rng.uniform(low, high) for _ in range(size)]).reshape(shape)
    return values.astype(dtype)


def integers(rng, shape, low, high, dtype=np.int64):
    """Values from `low` to `high`, both included."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.array([rng.randint(low, high) for _ in range(size)], dtype).reshape(shape)


def strings(rng, shape, words=(b'a', b'bc', b'', b'def', b'\xc3\xa9')):
    size = int(np.prod(shape, dtype=np.int64))
    values = np.empty(size, object)
    values[:] = [rng.choice(words) for _ in range(size)]
    return values.reshape(shape)


def values(rng, shape, dtype):
    """Random values of a TensorFlow type."""
    dtype = tf.as_dtype(dtype)
    if dtype == tf.string:
        return strings(rng, shape)
    if dtype == tf.bool:
        return integers(rng, shape, 0, 1).astype(bool)
    if dtype.is_integer:
        return integers(rng, shape, 0, 9, dtype.as_numpy_dtype)
    return floats(rng, shape, dtype=dtype.as_numpy_dtype)


def quantized(array, dtype):
    """A constant of a quantized type, such as tf.qint8, with the stored integers of `array`."""
    proto = tf.make_tensor_proto(array)
    proto.dtype = tf.as_dtype(dtype).as_datatype_enum
    node = tf.compat.v1.get_default_graph().create_op(
        'Const', [], [tf.as_dtype(dtype)], name='quantized', attrs={
            'value': tf.compat.v1.AttrValue(tensor=proto), 'dtype': tf.compat.v1.AttrValue(type=proto.dtype)})
    return node.outputs[0]


def fed(array):
    """A placeholder that every step feeds: what TensorFlow cannot fold."""
    tensor = tf.compat.v1.placeholder(tf.string if isinstance(array, str) else np.asarray(array).dtype, np.shape(array))
    for step in range(MOST_STEPS):
        mark = tf.compat.v1.AttrValue(tensor=tf.make_tensor_proto(array))
        tensor.op._set_attr('_feed.%d.0' % step, mark)
    return tensor


# ---- files

_LINES = (b'word,1,2.5,x\n', b'"a ""b""",-7,1e3,\n', b'c,2147483647,-0.5,"y,z"\n', b'd,0,0,w\n', b'e,9,.25,v\n')


def record(data):
    """A record of a TFRecord file."""
    def masked(part):
        crc = _crc32c(part)
        return struct.pack('<I', (((crc >> 15) | (crc << 17)) + 0xa282ead8) & 0xffffffff)
    head = struct.pack('<Q', len(data))
    return head + masked(head) + data + masked(data)


def _crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def example(rng):
    """A serialized tf.Example with the features i (int64), f (two floats), s (strings) and r (a list of int64)."""
    features = {
        'i': tf.train.Feature(int64_list=tf.train.Int64List(value=[rng.randint(-9, 9)])),
        'f': tf.train.Feature(float_list=tf.train.FloatList(value=[rng.uniform(-1, 1) for _ in range(2)])),
        's': tf.train.Feature(bytes_list=tf.train.BytesList(value=[b'x' * rng.randint(0, 3)])),
        'r': tf.train.Feature(int64_list=tf.train.Int64List(value=range(rng.randint(0, 3))))}
    if rng.random() < 0.2:
        del features[rng.choice('sr')]
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def write_files(folder, tensorflow):
    """Writes the files that calls read. `tensorflow` is a peer (peers.py) whose working folder is `folder`."""
    rng = random.Random(1)
    csv = b'name,i,f,s\n' + b''.join(_LINES)
    records = b''.join(record(b'record %d' % i) for i in range(6))
    fixed = b'head' + bytes(range(40)) + b'tail!'
    text = ' '.join(rng.choice(('the', 'of', 'cat', 'dog', 'sat', 'mat')) for _ in range(400)).encode()
    for name, data in (('rows.csv', csv), ('records', records), ('fixed', fixed), ('words.txt', text)):
        for suffix, packed in (('', data), ('.gz', gzip.compress(data, mtime=0)), ('.z', zlib.compress(data))):
            with open(os.path.join(folder, name + suffix), 'wb') as file:
                file.write(packed)
    base = sqlite3.connect(os.path.join(folder, 'rows.db'))
    base.execute('CREATE TABLE t (name TEXT, i INTEGER, f REAL)')
    base.executemany('INSERT INTO t VALUES (?, ?, ?)', [('a', 1, 0.5), ('b', -2, 1e3), ('', 2**31 - 1, -0.25)])
    base.commit()
    base.close()
    from op_calls_proto import schema  # which imports this module
    with open(os.path.join(folder, 'test.desc'), 'wb') as file:
        file.write(schema()[0])
    _save(folder, tensorflow)


def _save(folder, tensorflow):
    """Writes the data set `saved` by TensorFlow: seven int64, in one shard, which is copied to `shard`."""
    def make(op, rng):
        numbers = tf.raw_ops.RangeDataset(start=0, stop=7, step=1, output_types=[tf.int64], output_shapes=[[]])
        shard = function.Defun(tf.int64)(lambda element: tf.constant(0, tf.int64))
        return op(input_dataset=numbers, path='saved', shard_func_other_args=[], shard_func=shard, use_shard_func=False)
    answer = tensorflow.run(build('SaveDataset', make, 1))
    shards = glob.glob(os.path.join(folder, 'saved', '*', '00000000.shard'))
    if len(shards) != 1:
        raise RuntimeError('TensorFlow has not saved a data set: %s' % answer)
    shutil.copytree(shards[0], os.path.join(folder, 'shard'))
