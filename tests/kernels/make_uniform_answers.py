#!/usr/bin/env python3
"""Records the results of TensorFlow (2.21) for ops on uniformly quantized tensors, for uniform_test.

    python3 tests/kernels/make_uniform_answers.py > tests/kernels/golden/uniform_answers.txt
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.util.quantization import uniform_quant_ops_attr_pb2 as attr_pb2  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

RANDOM = np.random.RandomState(3)
STORED = {"quint8": np.uint8, "qint8": np.int8, "qint32": np.int32}
INT8 = (-128, 127)
INT32 = (-(1 << 31), (1 << 31) - 1)
ROWS = []


class Quantized:
    def __init__(self, dtype, shape, low=None, high=None):
        limits = np.iinfo(STORED[dtype])
        self.dtype = dtype
        self.values = RANDOM.randint(limits.min if low is None else low, limits.max if high is None else high,
                                     shape).astype(STORED[dtype])

    def tensor(self):
        return tf.bitcast(tf.constant(self.values), getattr(tf, self.dtype))


def plain(x):
    if isinstance(x, Quantized):
        return x.dtype, x.values
    if x.dtype.name in STORED:
        return x.dtype.name, tf.bitcast(x, STORED[x.dtype.name]).numpy()
    return x.dtype.name, np.asarray(x)


def ask(op, inputs, **attrs):
    names = [a.name for a in op_def_registry.get(op).input_arg]
    fed = [x.tensor() if isinstance(x, Quantized) else tf.constant(x) for x in inputs]
    out = getattr(tf.raw_ops, op)(**dict(zip(names, fed)), **attrs)
    ROWS.append((op, attrs, [plain(x) for x in inputs], [plain(out)]))


def params(axis, shape, low=0.02, high=0.3):
    """Scales and zero points, along an axis or (-1) for the whole tensor."""
    size = () if axis < 0 else (shape[axis],)
    return [np.float32(RANDOM.uniform(low, high, size)), np.int32(RANDOM.randint(-20, 20, size))]


def named(prefix, axis, limits):
    return {prefix + "quantization_axis": axis, prefix + "quantization_min_val": limits[0],
            prefix + "quantization_max_val": limits[1]}


def elementwise():
    shape = (2, 3, 4)
    x = (RANDOM.randn(*shape) * 20).astype(np.float32)
    x.flat[:4] = (0.0, 1e6, -1e6, 0.5)
    for axis in (-1, 0, 1, 2):
        for dtype, limits in (("qint8", INT8), ("quint8", (0, 255)), ("qint32", INT32), ("qint8", (-127, 100))):
            ask("UniformQuantize", [x] + params(axis, shape), Tout=getattr(tf, dtype), **named("", axis, limits))
        for dtype in ("qint8", "quint8", "qint32"):
            ask("UniformDequantize", [Quantized(dtype, shape)] + params(axis, shape), Tout=tf.float32,
                **named("", axis, INT32))
        for dtype, big in (("qint8", None), ("qint32", 100000)):
            for other in {axis, -1}:
                for a, b in ((axis, other), (other, axis)):
                    q = Quantized(dtype, shape, None if big is None else -big, big)
                    ask("UniformRequantize", [q] + params(a, shape) + params(b, shape, 0.1, 9.0), Tout=tf.qint8,
                        **named("input_", a, INT32), **named("output_", b, INT8))
        size = () if axis < 0 else (shape[axis],)
        ask("UniformQuantizedClipByValue",
            [Quantized("qint32", shape, -99, 99), Quantized("qint32", size, -60, -10), Quantized("qint32", size, 5, 60)] +
            params(axis, shape), **named("", axis, INT32))
    for a, b in (((2, 3), (2, 3)), ((2, 3), (3,)), ((), (2, 3)), ((2, 1), (2, 3)), ((4, 2, 3), (1, 3))):
        out = np.broadcast_shapes(a, b)
        for axes in ((-1, -1, -1), (len(a) - 1, len(b) - 1, len(out) - 1), (-1, len(b) - 1, -1), (len(a) - 1, -1, -1)):
            shapes = (a, b, out)
            if any(axis >= 0 and not s for axis, s in zip(axes, shapes)):
                continue
            if axes[2] >= 0 and any(s[-1:] != out[-1:] for s in (a, b)):
                continue  # TensorFlow reads the scales of other channels
            limits = INT32 if axes[0] < 0 else (-1000, 1000)
            inputs = [Quantized("qint32", a, -9999, 9999), Quantized("qint32", b, -9999, 9999)]
            for axis, shape in zip(axes, shapes):
                inputs += params(axis, shape)
            ask("UniformQuantizedAdd", inputs, **named("lhs_", axes[0], INT32), **named("rhs_", axes[1], INT32),
                **named("output_", axes[2], limits))


def dots():
    for m, k, n in ((2, 3, 4), (1, 1, 1), (2, 300, 2), (3, 0, 2)):
        for right, out in ((-1, -1), (1, -1), (1, 1)):
            inputs = [Quantized("qint8", (m, k)), Quantized("qint8", (k, n))] + params(-1, ())
            inputs += params(right, (k, n)) + params(out, (m, n), 1.0, 3.0)
            ask("UniformQuantizedDot", inputs, Tout=tf.qint32, **named("lhs_", -1, INT8), **named("rhs_", right, INT8),
                **named("output_", out, INT32))
        for right in (-1, 1):
            x = (RANDOM.randn(m, k) * 3).astype(np.float32)
            ask("UniformQuantizedDotHybrid", [x, Quantized("qint8", (k, n))] + params(right, (k, n)), Tout=tf.float32,
                **named("rhs_", right, INT8))
    for x in (np.zeros((1, 3)), [[1, 2, 3]], [[-1, -2, -3]], [[1e-30, 0, 0]]):
        ask("UniformQuantizedDotHybrid", [np.array(x, np.float32), Quantized("qint8", (3, 2))] + params(-1, ()),
            Tout=tf.float32, **named("rhs_", -1, INT8))


CONVOLUTIONS = [
    dict(padding="VALID"),
    dict(padding="SAME", window_strides=[2, 1]),
    dict(padding="EXPLICIT", explicit_padding=[0, 2, 1, 1], rhs_dilation=[2, 1]),
    dict(padding="SAME", lhs_dilation=[2, 3]),
    dict(padding="VALID", feature_group_count=2),
    dict(padding="VALID", batch_group_count=2),
]


def convolutions():
    nhwc = attr_pb2.UniformQuantizedConvolutionDimensionNumbersAttr(
        input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=[1, 2],
        kernel_output_feature_dimension=3, kernel_input_feature_dimension=2, kernel_spatial_dimensions=[0, 1],
        output_batch_dimension=0, output_feature_dimension=3, output_spatial_dimensions=[1, 2]).SerializeToString()
    hwnc = attr_pb2.UniformQuantizedConvolutionDimensionNumbersAttr(
        input_batch_dimension=2, input_feature_dimension=3, input_spatial_dimensions=[0, 1],
        kernel_output_feature_dimension=3, kernel_input_feature_dimension=2, kernel_spatial_dimensions=[0, 1],
        output_batch_dimension=3, output_feature_dimension=1, output_spatial_dimensions=[2, 0]).SerializeToString()
    for i, options in enumerate(CONVOLUTIONS):
        for layout in (b"", (nhwc, hwnc)[i % 2]):
            groups = options.get("feature_group_count", 1)
            batch, features, channels, size, window = 2, 2, 4, (3, 4), (3, 2)
            x, y, kernel_out, out_feature = {
                b"": ((batch, features) + size, (channels, features // groups) + window, 0, 1),
                nhwc: ((batch,) + size + (features,), window + (features // groups, channels), 3, 3),
                hwnc: (size + (batch, features), window + (features // groups, channels), 3, 1),
            }[layout]
            for right, out in ((-1, -1), (kernel_out, -1), (kernel_out, out_feature)):
                inputs = [Quantized("qint8", x), Quantized("qint8", y)] + params(-1, ()) + params(right, y)
                inputs += params(out, {out_feature: channels} if out >= 0 else (), 0.5, 2.0)
                ask("UniformQuantizedConvolution", inputs, Tout=tf.qint32, dimension_numbers=layout, **options,
                    **named("lhs_", -1, INT8), **named("rhs_", right, INT8), **named("output_", out, INT32))
            for right in (-1, kernel_out):
                ask("UniformQuantizedConvolutionHybrid",
                    [RANDOM.randn(*x).astype(np.float32), Quantized("qint8", y)] + params(right, y), Tout=tf.float32,
                    dimension_numbers=layout, **options, **named("rhs_", right, INT8))


for part in (elementwise, dots, convolutions):
    part()


def number(v):
    return "%.9g" % v if isinstance(v, np.floating) else str(int(v))


def attr(v):
    if isinstance(v, tf.DType):
        return v.name
    if isinstance(v, bytes):
        return v.hex()
    return " ".join(str(x) for x in v) if isinstance(v, list) else str(v)


print("# TensorFlow 2.21's answers, written by make_uniform_answers.py: ops, attributes (dimension_numbers in hexadecimal), "
      "inputs, outputs.")
for op, attrs, inputs, outputs in ROWS:
    print("op", op)
    for key, value in attrs.items():
        print("attr", key, attr(value))
    for kind, tensors in (("in", inputs), ("out", outputs)):
        for name, x in tensors:
            print(kind, name, ",".join(str(d) for d in x.shape) or "-", *[number(v) for v in x.ravel()])
