"""Random valid calls of ops on serialized protobuf messages of any type."""

import functools

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from op_calls import call, example, floats, integers, strings

_F = descriptor_pb2.FieldDescriptorProto
# (field, its type, the types of its tensors)
_FIELDS = (
    ('real', _F.TYPE_DOUBLE, (tf.float64,)), ('short_real', _F.TYPE_FLOAT, (tf.float32, tf.float64)),
    ('i64', _F.TYPE_INT64, (tf.int64,)), ('u64', _F.TYPE_UINT64, (tf.uint64,)), ('i32', _F.TYPE_INT32, (tf.int32, tf.int64)),
    ('f64', _F.TYPE_FIXED64, (tf.uint64,)), ('f32', _F.TYPE_FIXED32, (tf.uint32, tf.uint64)), ('flag', _F.TYPE_BOOL, (tf.bool,)),
    ('text', _F.TYPE_STRING, (tf.string,)), ('inner', _F.TYPE_MESSAGE, (tf.string,)), ('raw', _F.TYPE_BYTES, (tf.string,)),
    ('u32', _F.TYPE_UINT32, (tf.uint32, tf.uint64)), ('kind', _F.TYPE_ENUM, (tf.int32,)),
    ('s32', _F.TYPE_SFIXED32, (tf.int32, tf.int64)), ('s64', _F.TYPE_SFIXED64, (tf.int64,)),
    ('z32', _F.TYPE_SINT32, (tf.int32, tf.int64)), ('z64', _F.TYPE_SINT64, (tf.int64,)))
_DEFAULTS = {'real': '1.5', 'i32': '-7', 'text': 'none', 'flag': 'true', 'u64': '18446744073709551615'}


@functools.lru_cache(None)
def schema():
    """(serialized FileDescriptorSet, class of the message `test.Outer`): each field once, and once more as NAME_list."""
    file = descriptor_pb2.FileDescriptorProto(name='test.proto', package='test', syntax='proto2')
    kind = file.enum_type.add(name='Kind')
    for name, number in (('A', 3), ('B', -1), ('C', 5)):
        kind.value.add(name=name, number=number)
    file.message_type.add(name='Inner').field.add(name='n', number=1, type=_F.TYPE_INT32, label=_F.LABEL_OPTIONAL)
    outer = file.message_type.add(name='Outer')
    for i, (name, kind, _) in enumerate(_FIELDS):
        for repeated in (False, True):
            field = outer.field.add(name=name + ('_list' if repeated else ''), number=1 + 2 * i + repeated, type=kind,
                                    label=_F.LABEL_REPEATED if repeated else _F.LABEL_OPTIONAL)
            if kind in (_F.TYPE_MESSAGE, _F.TYPE_ENUM):
                field.type_name = '.test.Inner' if kind == _F.TYPE_MESSAGE else '.test.Kind'
            if name in _DEFAULTS and not repeated:
                field.default_value = _DEFAULTS[name]
            if repeated and i % 2 and kind not in (_F.TYPE_MESSAGE, _F.TYPE_STRING, _F.TYPE_BYTES):
                field.options.packed = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName('test.Outer'))
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), made


def _value(rng, name):
    if name in ('real', 'short_real'):
        return float(np.float32(rng.uniform(-9, 9)))
    if name == 'flag':
        return rng.random() < 0.5
    if name == 'text':
        return rng.choice(('', 'a', 'word'))
    if name == 'raw':
        return rng.choice((b'', b'\xff\x00', b'bytes'))
    if name == 'kind':
        return rng.choice((3, -1, 5))
    unsigned = name in ('u64', 'u32', 'f64', 'f32')
    bits = (64 if '64' in name else 32) - (not unsigned)
    largest = 2**bits - 1
    return rng.choice((0, 1, 300, largest, rng.randint(0, largest)) if unsigned else (0, -1, 300, largest, -largest - 1))


def _message(rng):
    message = schema()[1]()
    for name, _, _ in _FIELDS:
        if name == 'inner':
            for _ in range(rng.randint(0, 2)):
                message.inner_list.add(n=rng.randint(-3, 3))
            if rng.random() < 0.5:
                message.inner.n = 4
            continue
        if rng.random() < 0.5:
            setattr(message, name, _value(rng, name))
        # TensorFlow does not extend the sign of packed int32 to int64.
        getattr(message, name + '_list').extend(_value(rng, name) for _ in range(rng.randint(0, 3)))
    return message


def _source(rng):
    return b'bytes://' + schema()[0] if rng.random() < 0.7 else 'test.desc'


@call()
def DecodeProtoV2(op, rng):
    fields = rng.sample(_FIELDS, rng.randint(0, 4))
    is_text = rng.random() < 0.3
    messages = [_message(rng) for _ in range(rng.randint(1, 3))]
    messages = [text_format.MessageToString(m).encode() if is_text else m.SerializeToString() for m in messages]
    names = [f[0] + rng.choice(('', '_list')) for f in fields]
    return op(bytes=np.array(messages, object), message_type='test.Outer', field_names=names,
              output_types=[rng.choice(f[2]) if not n.startswith(('i32_list', 'z32_list')) else tf.int32 for f, n in zip(fields, names)],
              descriptor_source=_source(rng), message_format='text' if is_text else 'binary', sanitize=rng.random() < 0.3)


@call('DecodeProtoV2')
def decode_local_proto(op, rng):
    return op(bytes=np.array([[example(rng)], [example(rng)]], object), message_type='tensorflow.Example',
              field_names=['features'], output_types=[tf.string], descriptor_source='local://', sanitize=rng.random() < 0.3)


@call()
def EncodeProto(op, rng):
    shape, fields = rng.choice(([2], [1, 2], [0])), rng.sample(_FIELDS, rng.randint(1, 4))
    names, tensors, most = [], [], []
    for name, _, dtypes in fields:
        dtype = rng.choice(dtypes)
        names.append(name + rng.choice(('', '_list')))
        most.append(rng.randint(0, 3))
        size = shape + most[-1:]
        if dtype == tf.string:
            tensors.append(strings(rng, size))
        elif dtype == tf.bool:
            tensors.append(integers(rng, size, 0, 1).astype(bool))
        elif dtype.is_floating:
            tensors.append(floats(rng, size, dtype=dtype.as_numpy_dtype))
        else:
            tensors.append(integers(rng, size, 0 if dtype.is_unsigned else -9, 300, dtype.as_numpy_dtype))
    count = int(np.prod(shape))
    sizes = np.array([[rng.randint(0, m) for m in most] for _ in range(count)], np.int32).reshape(shape + [len(fields)])
    return op(sizes=sizes, values=tensors, field_names=names, message_type='test.Outer', descriptor_source=_source(rng))
