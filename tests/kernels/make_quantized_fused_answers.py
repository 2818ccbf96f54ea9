#!/usr/bin/env python3
"""Records the results of TensorFlow (2.21 on an x86 processor) for products of quantized matrices with what follows them, for
quantized_fused_test.

    python3 tests/kernels/make_quantized_fused_answers.py > tests/kernels/golden/quantized_fused_answers.txt

TensorFlow's package has no kernels for the fused convolutions: formulas test them. The weights have seven bits, since oneDNN
adds pairs of products in 16 bits, where larger ones saturate, on processors without VNNI.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

tf.disable_eager_execution()
RANDOM = np.random.RandomState(17)
STORED = {"quint8": np.uint8, "qint8": np.int8, "qint32": np.int32}
ROWS = []


def ask(op, inputs, **attrs):
    """Inputs are (type, array). The graph is run, since TensorFlow replaces these ops in graphs."""
    names = [a.name for a in op_def_registry.get(op).input_arg]
    with tf.Graph().as_default(), tf.Session() as session:
        feeds, args = {}, []
        for dtype, x in inputs:
            fed = tf.placeholder(x.dtype, x.shape)
            feeds[fed] = x
            args.append(tf.bitcast(fed, getattr(tf, dtype)) if dtype in STORED else fed)
        out = getattr(tf.raw_ops, op)(**dict(zip(names, args)), **attrs)
        out = list(out) if isinstance(out, tuple) else [out]
        types = [o.dtype.name for o in out]
        plain = [tf.bitcast(o, STORED[t]) if t in STORED else o for o, t in zip(out, types)]
        ROWS.append((op, attrs, inputs, list(zip(types, session.run(plain, feeds)))))


def f(*values):
    return [("float32", np.float32(v)) for v in values]


for mode in ("MIN_FIRST", "SCALED"):
    for m, k, n in ((3, 4, 2), (1, 70, 5)):
        a = ("quint8", RANDOM.randint(0, 255, (m, k)).astype(np.uint8))
        b = ("qint8", RANDOM.randint(-63, 64, (k, n)).astype(np.int8))
        ranges = f(0.0 if mode == "SCALED" else -0.125, 3.0, -1.5, 1.0)
        biases = [("float32", (RANDOM.randn(n) * 3).astype(np.float32)),
                  ("qint32", RANDOM.randint(-5000, 5000, n).astype(np.int32))]
        given = dict(input_quant_mode=mode)
        for bias in biases:
            fed, out = [a, b, bias] + ranges, f(-4.0, 25.0)
            ask("QuantizedMatMulWithBias", fed, Toutput=tf.qint32, **given)
            ask("QuantizedMatMulWithBiasAndRequantize", fed + out, Toutput=tf.quint8, **given)
            ask("QuantizedMatMulWithBiasAndReluAndRequantize", fed + out, Toutput=tf.quint8, **given)
            ask("QuantizedMatMulWithBiasAndDequantize", fed + out, Toutput=tf.float32, **given)
        ask("QuantizedMatMulWithBiasAndRelu", [a, b, biases[0]] + ranges, Toutput=tf.qint32, **given)

print("# TensorFlow 2.21's answers, written by make_quantized_fused_answers.py: ops, attributes, inputs, outputs.")
for op, attrs, inputs, outputs in ROWS:
    print("op", op)
    for key, value in attrs.items():
        print("attr", key, value.name if isinstance(value, tf.DType) else value)
    for kind, tensors in (("in", inputs), ("out", outputs)):
        for name, x in tensors:
            x = np.asarray(x)
            print(kind, name, ",".join(str(d) for d in x.shape) or "-", *["%.9g" % v for v in x.ravel()])
