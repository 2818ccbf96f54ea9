"""Mutates valid calls of an op to invalid ones: graphs in which the op's arguments are changed randomly."""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import op_def_registry

_SIZES = (0, 1, 1, 2, 3, 4, 5)
_INTEGERS = (-1, -1, 0, 0, 1, 2, 3, 5, -2, -7, 100, 2**31 - 1, -2**31, 2**31, 2**62)
_FLOATS = (0.0, -1.0, 1.0, 0.5, 2.0, 1e30, -1e-30, float('nan'), float('inf'), float('-inf'))
_STRINGS = (b'', b'x', b'SAME', b'VALID', b'EXPLICIT', b'NHWC', b'NCHW', b'-1', b'a/b', b'\xff\x00')
_TEXTS = _STRINGS[:-1]  # Python cannot parse attributes that are not UTF-8
_MOST_STEPS = 8  # tests/fuzz/mutate.h
_SMALL = 4096  # elements: larger arrays find nothing new


def _integer(rng, dtype):
    info = np.iinfo(dtype)
    return int(np.clip(rng.choice(_INTEGERS), info.min, info.max))


def random_array(rng, dtype, shape):
    """Returns a random array of a NumPy type; half of all integers are from -2 to 4."""
    size = int(np.prod(shape, dtype=np.int64))
    if dtype == object:
        values = [rng.choice(_STRINGS) for _ in range(size)]
        array = np.empty(size, object)
        array[:] = values
        return array.reshape(shape)
    if dtype == np.bool_:
        return np.array([rng.random() < 0.5 for _ in range(size)], bool).reshape(shape)
    if np.issubdtype(dtype, np.integer):
        low = 0 if np.iinfo(dtype).min == 0 else -2
        small = rng.random() < 0.8
        return np.array([rng.randint(low, 4) if small else _integer(rng, dtype) for _ in range(size)], dtype).reshape(shape)
    values = [rng.uniform(-2, 2) if rng.random() < 0.9 else rng.choice(_FLOATS) for _ in range(size)]
    return np.array(values).reshape(shape).astype(dtype)


def _random_shape(rng):
    rank = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 9))
    return [rng.choice(_SIZES) if rank < 6 else rng.choice((1, 1, 2)) for _ in range(rank)]


def _reshaped(rng, array):
    """Returns an array of a different shape with the same elements, repeated or truncated."""
    shape = list(array.shape)
    change = rng.randrange(6)
    if change == 0 or not shape:
        shape.insert(rng.randint(0, len(shape)), rng.choice((1, 1, 2, 0)))
    elif change == 1:
        del shape[rng.randrange(len(shape))]
    elif change == 2:
        shape = _random_shape(rng)
    else:
        i = rng.randrange(len(shape))
        shape[i] = rng.choice(_SIZES + (shape[i] + 1, max(shape[i] - 1, 0), shape[i] * 2))
    size = int(np.prod(shape, dtype=np.int64))
    if size > _SMALL:
        return array
    if not array.size:
        return random_array(rng, array.dtype, shape)
    return np.resize(array, shape)


def changed_array(rng, array):
    """Returns the array with different elements, or with a different shape."""
    if array.size and rng.random() < 0.5:
        array = array.copy()
        flat = array.reshape(-1)
        for _ in range(rng.choice((1, 1, 1, 2, flat.size))):
            i = rng.randrange(flat.size)
            if array.dtype == object:
                flat[i] = rng.choice(_STRINGS)
            elif array.dtype == np.bool_:
                flat[i] = not flat[i]
            elif np.issubdtype(array.dtype, np.integer):
                near = int(flat[i]) + rng.choice((-1, 1))
                info = np.iinfo(array.dtype)
                flat[i] = int(np.clip(near, info.min, info.max)) if rng.random() < 0.4 else _integer(rng, array.dtype)
            else:
                flat[i] = np.array(rng.choice(_FLOATS)).astype(array.dtype)
        return array
    return _reshaped(rng, array)


def _changed_integer(rng, i):
    changed = rng.choice((i + 1, i - 1, i * 2, 0, -1, 1, 2, 3, 2**31 - 1, -2**31, 2**40))
    return int(np.clip(changed, -2**63, 2**63 - 1))


def _changed_shape(rng, shape):
    if shape.unknown_rank or rng.random() < 0.2:
        new = tf.TensorShape(rng.choice((None, _random_shape(rng), [None, 2]))).as_proto()
        shape.CopyFrom(new)
    elif shape.dim and rng.random() < 0.7:
        shape.dim[rng.randrange(len(shape.dim))].size = rng.choice((-1, 0, 1, 2, 3))
    elif shape.dim and rng.random() < 0.5:
        del shape.dim[-1]
    else:
        shape.dim.add().size = rng.choice((-1, 0, 1, 2))


def _types(spec):
    return list(spec.allowed_values.list.type) or [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 17, 18, 19, 22, 23]


def _change_attr(rng, value, spec):
    """Changes an AttrValue; `spec` is its AttrDef."""
    kind = value.WhichOneof('value')
    if kind == 'i':
        value.i = _changed_integer(rng, value.i)
    elif kind == 'f':
        value.f = rng.choice(_FLOATS)
    elif kind == 'b':
        value.b = not value.b
    elif kind == 's':
        allowed = list(spec.allowed_values.list.s)
        value.s = rng.choice(allowed) if allowed and rng.random() < 0.7 else rng.choice(_TEXTS)
    elif kind == 'type':
        value.type = rng.choice(_types(spec))
    elif kind == 'shape':
        _changed_shape(rng, value.shape)
    elif kind == 'list':
        _change_list(rng, value.list, spec)


def _change_list(rng, values, spec):
    for field, numbers in (('i', values.i), ('f', values.f), ('s', values.s), ('type', values.type), ('b', values.b)):
        if not numbers:
            continue
        change = rng.randrange(4)
        if change == 0:
            del numbers[-1]
        elif change == 1:
            numbers.append(numbers[-1])
        else:
            i = rng.randrange(len(numbers))
            numbers[i] = {'i': lambda: _changed_integer(rng, numbers[i]) if abs(numbers[i]) < 2**40 else 1,
                          'f': lambda: rng.choice(_FLOATS), 's': lambda: rng.choice(_TEXTS),
                          'type': lambda: rng.choice(_types(spec)), 'b': lambda: not numbers[i]}[field]()
        return
    if values.shape:
        _changed_shape(rng, values.shape[rng.randrange(len(values.shape))])
    elif spec.type == 'list(int)':
        values.i.append(rng.choice((-1, 0, 1, 2)))


class Call:
    """A graph, and the node whose arguments are changed. `graph` is a GraphDef with marks (tests/fuzz/mutate.h). `whole`: the
    other nodes stay, also if the node does not need them."""

    def __init__(self, graph_bytes, op, rng, whole=False):
        self.rng = rng
        self.graph = tf.compat.v1.GraphDef.FromString(graph_bytes)
        self.nodes = {node.name: node for node in self.graph.node}
        self.node = rng.choice([node for node in self.graph.node if node.op == op])
        self.op_def = op_def_registry.get(op)
        self.arrays = {}  # of inputs by position
        self._own_inputs()
        if len(self.arrays) == len(self.node.input) and not whole:
            self._isolate()
        else:
            self._fetch()

    def _source(self, name):
        """The array of a Const, or of a fed tensor; None for other nodes."""
        node = self.nodes.get(name.split(':')[0])
        if node is None or name.startswith('^'):
            return None
        if node.op == 'Const':
            return tf.make_ndarray(node.attr['value'].tensor)
        fed = [node.attr[key].tensor for key in sorted(node.attr) if key.startswith('_feed.')]
        if not node.op.startswith('Placeholder') or not fed or fed[-1].dtype in (20, 21):
            return None
        return tf.make_ndarray(fed[-1])

    def _own_inputs(self):
        for i, name in enumerate(self.node.input):
            array = self._source(name)
            if array is not None:
                self.arrays[i] = array

    def _isolate(self):
        """Drops all nodes except this one, and fetches all its outputs."""
        self.types = {i: self._dtype(i, array) for i, array in self.arrays.items()}
        node = self.node
        for key in [key for key in node.attr if key.startswith(('_feed', '_fetch', '_target'))]:
            del node.attr[key]
        library = self.graph.library
        self.graph = tf.compat.v1.GraphDef(node=[node], library=library, versions=self.graph.versions)
        self.node = self.graph.node[0]
        self.node.attr['_target.0'].b = True
        outputs = 0
        for arg in self.op_def.output_arg:
            if arg.type_list_attr:
                outputs += len(node.attr[arg.type_list_attr].list.type)
            else:
                outputs += node.attr[arg.number_attr].i if arg.number_attr else 1
        for i in range(0 if self._returns_ref_handle() else outputs):
            self.node.attr['_fetch.0.%d' % i].b = True

    def _returns_ref_handle(self):
        """Whether the node returns a handle that is a reference to strings: TensorFlow fetches it as text, Weir does not."""
        return any(arg.is_ref and arg.type == types_pb2.DT_STRING for arg in self.op_def.output_arg)

    def _fetch(self):
        """Adds a step that runs the node after all other steps."""
        marks = [(node, key, key.split('.')) for node in self.graph.node for key in node.attr
                 if key.startswith(('_feed', '_fetch', '_target'))]
        if any(node is self.node and parts[0] != '_feed' for node, _, parts in marks):
            return
        last = max((int(parts[1]) for _, _, parts in marks if parts[0] != '_feed'), default=0)
        step = min(last + 1, _MOST_STEPS - 1)
        for node, key, parts in marks:
            if parts[0] == '_feed' and int(parts[1]) == last:
                node.attr['_feed.%d.%s' % (step, parts[2])].CopyFrom(node.attr[key])
        self.node.attr['_target.%d' % step].b = True
        if self.op_def.output_arg and not self._returns_ref_handle():
            self.node.attr['_fetch.%d.0' % step].b = True

    def _change_input(self):
        rng = self.rng
        if self.arrays:
            i = rng.choice(sorted(self.arrays))
            if rng.random() < 0.12:
                self.arrays[i] = random_array(rng, self.arrays[i].dtype, _random_shape(rng))
            else:
                self.arrays[i] = changed_array(rng, self.arrays[i])
        else:
            self._change_elsewhere()

    def _change_elsewhere(self):
        """Changes a constant, or an attribute, of a different node."""
        rng = self.rng
        node = rng.choice(list(self.graph.node))
        if node.op == 'Const':
            value = node.attr['value'].tensor  # an earlier change may have given 'dtype' another type
            value.CopyFrom(tf.make_tensor_proto(changed_array(rng, tf.make_ndarray(value)), value.dtype))
        else:
            self._change_attr_of(node)

    def _change_attr_of(self, node):
        op_def = op_def_registry.get(node.op)
        specs = [s for s in op_def.attr if s.name in node.attr] if op_def else []
        if not specs:
            return self._change_input() if self.arrays else None
        spec = self.rng.choice(specs)
        _change_attr(self.rng, node.attr[spec.name], spec)
        if spec.type == 'type' and node is self.node and self.rng.random() < 0.8:
            self._retype(spec.name)

    def _retype(self, attr):
        """Replaces inputs by inputs of the attribute's new type."""
        types = {}
        position = 0
        for arg in self.op_def.input_arg:
            if arg.type_list_attr:
                count = len(self.node.attr[arg.type_list_attr].list.type)
            else:
                count = self.node.attr[arg.number_attr].i if arg.number_attr else 1
            if count > len(self.node.input):
                return
            for i in range(position, position + count):
                if arg.type_attr == attr:
                    types[i] = self.node.attr[attr].type
            position += count
        for i in set(types) & set(self.arrays):
            if types[i] in (20, 21) or types[i] > 100:
                return
            dtype = tf.as_dtype(types[i]).as_numpy_dtype
            if dtype == object or self.arrays[i].dtype == object:
                self.arrays[i] = random_array(self.rng, np.dtype(dtype), self.arrays[i].shape)
            else:
                with np.errstate(all='ignore'):
                    self.arrays[i] = self.arrays[i].astype(dtype)

    def change(self):
        """Makes random changes and returns their number."""
        rng = self.rng
        count = rng.choice((1, 1, 1, 2, 2, 3))
        for _ in range(count):
            draw = rng.random()
            if draw < 0.65:
                self._change_input()
            elif draw < 0.93:
                self._change_attr_of(self.node)
            else:
                self._change_elsewhere()
        return count

    def bytes(self):
        """Serializes the graph. Inputs are constants of the graph, or are fed with a shape that the graph does not know."""
        fed = self.rng.random() < 0.4
        steps = {int(key.split('.')[1]) for node in self.graph.node for key in node.attr if key[0] == '_' and '.' in key}
        for i, array in self.arrays.items():
            node = self.graph.node.add(name='argument_%d' % i)
            dtype = tf.as_dtype(self._dtype(i, array))
            proto = tf.make_tensor_proto(array, dtype)
            node.attr['dtype'].type = dtype.as_datatype_enum
            if fed:
                node.op = 'Placeholder'
                for step in steps:
                    node.attr['_feed.%d.0' % step].tensor.CopyFrom(proto)
            else:
                node.op = 'Const'
                node.attr['value'].tensor.CopyFrom(proto)
            self.node.input[i] = node.name
        return self.graph.SerializeToString()

    def _dtype(self, i, array):
        if array.dtype == object:
            return tf.string
        kept = getattr(self, 'types', {}).get(i)
        if kept is not None:
            return kept if tf.as_dtype(kept).as_numpy_dtype == array.dtype else tf.as_dtype(array.dtype)
        source = self.nodes[self.node.input[i].split(':')[0]].attr['dtype'].type
        if source and tf.as_dtype(source).as_numpy_dtype == array.dtype:
            return source  # NumPy does not distinguish quantized types from plain ones
        return tf.as_dtype(array.dtype)
