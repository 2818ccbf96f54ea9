#!/usr/bin/env python3
"""Records the results of TensorFlow (2.21 on an x86 processor) for ops on quantized tensors, for quantized_test.

    python3 tests/kernels/make_quantized_answers.py > tests/kernels/golden/quantized_answers.txt

QuantizedReluX has no kernel there, and the only kernel of QuantizedConcatV2 is oneDNN's, which represents ranges differently:
equivalent ops test them. QuantizedAvgPool is oneDNN's too and rounds to the nearest; with TF_ENABLE_ONEDNN_OPTS=0 it truncates,
which is the only difference in this file.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

RANDOM = np.random.RandomState(11)
STORED = {"quint8": np.uint8, "qint8": np.int8, "qint32": np.int32}
RANGES = [(-1.0, 1.0), (0.0, 6.0), (-3.25, 2.75), (-1.2345, 7.89), (0.5, 2.0)]
ROWS = []


class Quantized:
    def __init__(self, dtype, shape, values=None):
        limits = np.iinfo(STORED[dtype])
        self.dtype = dtype
        self.values = np.array(RANDOM.randint(limits.min, limits.max, shape) if values is None else values,
                               STORED[dtype]).reshape(shape)

    def tensor(self):
        return tf.bitcast(tf.constant(self.values), getattr(tf, self.dtype))


def plain(x):
    """Returns the numbers and the name of the type."""
    if isinstance(x, Quantized):
        return x.dtype, x.values
    if x.dtype.name in STORED:
        return x.dtype.name, tf.bitcast(x, STORED[x.dtype.name]).numpy()
    return x.dtype.name, np.asarray(x)


def ask(op, inputs, **attrs):
    names = [a.name for a in op_def_registry.get(op).input_arg]
    fed = [[y.tensor() if isinstance(y, Quantized) else tf.constant(y) for y in x] if isinstance(x, list) else
           x.tensor() if isinstance(x, Quantized) else tf.constant(x) for x in inputs]
    out = getattr(tf.raw_ops, op)(**dict(zip(names, fed)), **attrs)
    flat = []
    for x in inputs:
        flat += x if isinstance(x, list) else [x]
    ROWS.append((op, attrs, [plain(x) for x in flat], [plain(x) for x in out]))


def f(*values):
    return [np.float32(v) for v in values]


def arithmetic():
    for a in RANGES:
        for b in RANGES[1::2]:
            ask("QuantizedMatMul", [Quantized("quint8", (3, 4)), Quantized("quint8", (4, 2))] + f(*a, *b))
            for shape in ((2, 3), (3,), ()):
                for op in ("QuantizedAdd", "QuantizedMul"):
                    ask(op, [Quantized("quint8", (2, 3)), Quantized("quint8", shape)] + f(*a, *b))
            for dtype in ("quint8", "qint8"):
                ask("QuantizedBiasAdd", [Quantized(dtype, (2, 1, 3)), Quantized(dtype, (3,))] + f(*a, *b),
                    out_type=tf.qint32)
            for padding in ("SAME", "VALID"):
                ask("QuantizedConv2D", [Quantized("quint8", (1, 4, 3, 2)), Quantized("quint8", (3, 2, 2, 2))] +
                    f(*a, *b), strides=[1, 2, 2, 1], padding=padding)
        for op in ("QuantizedRelu", "QuantizedRelu6"):
            for dtype in ("quint8", "qint32"):
                ask(op, [Quantized(dtype, (6,))] + f(*a), out_type=getattr(tf, dtype))
    ask("QuantizedMatMul", [Quantized("quint8", (4, 3)), Quantized("quint8", (2, 4))] + f(-1, 2, 0, 3),
        transpose_a=True, transpose_b=True)


def images():
    for dtype in ("quint8", "qint8"):
        for op in ("QuantizedMaxPool", "QuantizedAvgPool"):
            for size, stride, padding in ((2, 2, "VALID"), (3, 1, "SAME"), (3, 2, "SAME")):
                ask(op, [Quantized(dtype, (2, 4, 5, 2))] + f(-1, 3), ksize=[1, size, size, 1],
                    strides=[1, stride, stride, 1], padding=padding)
    for dtype in ("quint8", "qint32"):
        for size in ((5, 7), (2, 3)):
            for grid in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
                ask("QuantizedResizeBilinear", [Quantized(dtype, (2, 3, 4, 2)), np.array(size, np.int32)] + f(-1, 2), **grid)
    ask("QuantizedResizeBilinear", [RANDOM.randn(1, 3, 4, 2).astype(np.float32), np.array((5, 7), np.int32)] + f(-1, 2))


def norms():
    for scales in (True, False):
        for r in RANGES:
            inputs = []
            for shape, ends in (((1, 2, 3, 4), r), ((4,), (-0.5, 1)), ((4,), (0, 2)), ((4,), (-1, 1)), ((4,), (0.5, 1.5))):
                inputs += [Quantized("quint8", shape)] + f(*ends)
            ask("QuantizedBatchNormWithGlobalNormalization", inputs, out_type=tf.qint32, variance_epsilon=0.001,
                scale_after_normalization=scales)
    for r in RANGES:
        ask("QuantizedInstanceNorm", [Quantized("quint8", (2, 3, 2, 3))] + f(*r))
        ask("QuantizedInstanceNorm", [Quantized("quint8", (2, 3, 2, 3))] + f(*r), output_range_given=True,
            given_y_min=-1.5, given_y_max=1.25, variance_epsilon=0.1)
    ask("QuantizedInstanceNorm", [Quantized("quint8", (1, 1, 2, 1), [7, 9])] + f(-1, 2), min_separation=10.0)


def joined():
    for dtype in ("quint8", "qint32"):
        for mins, maxes in (((-1, -2), (3, 1)), ((0.5, 1), (2, 3)), ((-1, -1), (2, 2)), ((-3, -4), (-1, -2))):
            ask("QuantizedConcat", [np.int32(1), [Quantized(dtype, (2, 2)), Quantized(dtype, (2, 1))], f(*mins), f(*maxes)])
    for dtype in ("quint8", "qint32"):
        ask("QuantizedReshape", [Quantized(dtype, (2, 3)), np.array((3, -1), np.int32)] + f(-1, 2))


def channels():
    low, high = np.array([-1, -2, 0], np.float32), np.array([1, 1, 4], np.float32)
    for dtype, ends in (("qint8", (-1, 2)), ("quint8", (0, 6)), ("quint8", (-5, 1))):
        ask("RequantizePerChannel", [Quantized("qint32", (2, 1, 2, 3)), low, high] + f(*ends), out_type=getattr(tf, dtype))
    for clip in (100.0, 0.25):
        for values in (None, np.arange(12) * 170000000):
            ask("RequantizationRangePerChannel", [Quantized("qint32", (2, 1, 2, 3), values), low, high], clip_value_max=clip)


for part in (arithmetic, images, norms, joined, channels):
    part()


def number(v):
    return repr(float(v)) if isinstance(v, np.floating) else str(int(v))


def attr(v):
    if isinstance(v, tf.DType):
        return v.name
    if isinstance(v, list):
        return " ".join(str(x) for x in v)
    return str(v).lower() if isinstance(v, bool) else str(v)


print("# TensorFlow 2.21's answers, written by make_quantized_answers.py: ops, attributes, inputs, outputs.")
for op, attrs, inputs, outputs in ROWS:
    print("op", op)
    for key, value in attrs.items():
        print("attr", key, attr(value))
    for kind, tensors in (("in", inputs), ("out", outputs)):
        for name, x in tensors:
            print(kind, name, ",".join(str(d) for d in x.shape) or "-", *[number(v) for v in x.ravel()])
