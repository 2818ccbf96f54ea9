#!/usr/bin/env python3
"""Writes the graphs of W17, MobileNet-v1 in 8 bits and BERT in bfloat16, and TensorFlow's results.

usage: make_low_precision.py FOLDER

The weights are random and frozen. FOLDER gets

    w17_fake_quant_bN.pb   MobileNet-v1 as tf.contrib.quantize rewrites it for training with
                           quantization: folded batch norms, and FakeQuant ops around the weights and
                           after each activation: `x`, [N, 224, 224, 3], to `y`
    w17_quantized_bN.pb    MobileNet-v1 as TensorFlow's graph transform quantize_nodes writes it:
                           QuantizedConv2D, QuantizedBiasAdd and QuantizedRelu6 on quint8, with
                           Requantize between them and floats around the depthwise convolutions
    w17_bert_bf16_NxL.pb   make_bert.py's network with its variables cast to bfloat16
    and TensorFlow's values as .npz
"""

import numpy as np
from make_bert import RANGES, Bert, Network
from make_ssd import MOBILENET
from model_graphs import Model, frozen, main

CLASSES = 1000


class MobileNet:
    """The layers that both forms have. `multiplier` is that of the channels."""

    def __init__(self, tf, multiplier):
        self.tf, self.multiplier = tf, multiplier
        self.random = np.random.RandomState(5)

    def normal(self, shape, fan_in):
        return self.random.normal(0, (2 / fan_in) ** 0.5, shape).astype(np.float32)

    def weights(self, size, inputs, outputs):
        return self.normal([size, size, inputs, outputs], size * size * inputs), self.bias(outputs)

    def bias(self, outputs):
        return self.random.normal(0, 0.1, outputs).astype(np.float32)

    def logits(self, x):
        width = lambda n: max(8, int(n * self.multiplier))  # noqa: E731
        x = self.convolution(x, *self.weights(3, 3, width(32)), 2)
        inputs = width(32)
        for outputs, stride in MOBILENET:
            x = self.depthwise(x, self.normal([3, 3, inputs, 1], 9), self.bias(inputs), stride)
            x = self.convolution(x, *self.weights(1, inputs, width(outputs)), 1)
            inputs = width(outputs)
        return self.classes(x, self.normal([inputs, CLASSES], inputs), self.bias(CLASSES))


class FakeQuantMobileNet(MobileNet):
    def quantized_weights(self, w):
        low, high = float(w.min()), float(w.max())
        return self.tf.quantization.fake_quant_with_min_max_vars(w, low, high, narrow_range=True)

    def activated(self, x):
        return self.tf.quantization.fake_quant_with_min_max_vars(self.tf.nn.relu6(x), 0.0, 6.0)

    def convolution(self, x, w, bias, stride):
        x = self.tf.nn.conv2d(x, self.quantized_weights(w), strides=[1, stride, stride, 1], padding="SAME")
        return self.activated(self.tf.nn.bias_add(x, bias))

    def depthwise(self, x, w, bias, stride):
        x = self.tf.nn.depthwise_conv2d(x, self.quantized_weights(w), [1, stride, stride, 1], "SAME")
        return self.activated(self.tf.nn.bias_add(x, bias))

    def classes(self, x, w, bias):
        x = self.tf.reduce_mean(x, [1, 2])
        x = self.tf.nn.bias_add(self.tf.matmul(x, self.quantized_weights(w)), bias)
        return self.tf.quantization.fake_quant_with_min_max_vars(x, -10.0, 10.0)


class QuantizedMobileNet(MobileNet):
    """Values between the layers are (quint8, min, max)."""

    def quantize(self, x):
        """Quantizes by the smallest and the largest element, as the transform does."""
        tf = self.tf
        flat = tf.reshape(x, [-1])
        return tf.raw_ops.QuantizeV2(
            input=x, min_range=tf.reduce_min(flat), max_range=tf.reduce_max(flat), T=tf.quint8, mode="MIN_FIRST"
        )

    def constant(self, w):
        """Returns weights as the transform quantizes them: linearly in 8 bits, with a zero."""
        tf, low, high = self.tf, min(0.0, float(w.min())), max(0.0, float(w.max()))
        codes = np.clip(np.rint((w - low) * (255 / (high - low))), 0, 255).astype(np.uint8)
        return tf.bitcast(tf.constant(codes), tf.quint8), tf.constant(low), tf.constant(high)

    def requantized(self, sums):
        tf, (x, low, high) = self.tf, sums
        to = tf.raw_ops.RequantizationRange(input=x, input_min=low, input_max=high)
        return tf.raw_ops.Requantize(
            input=x, input_min=low, input_max=high, requested_output_min=to[0],
            requested_output_max=to[1], out_type=tf.quint8,
        )  # fmt: skip

    def biased(self, value, bias):
        b = self.constant(bias)
        return self.requantized(
            self.tf.raw_ops.QuantizedBiasAdd(
                input=value[0], bias=b[0], min_input=value[1], max_input=value[2], min_bias=b[1],
                max_bias=b[2], out_type=self.tf.qint32,
            )
        )  # fmt: skip

    def floats(self, value):
        return self.tf.raw_ops.Dequantize(
            input=value[0], min_range=value[1], max_range=value[2], mode="MIN_FIRST"
        )

    def convolution(self, x, w, bias, stride):
        value, weights = x if isinstance(x, tuple) else self.quantize(x), self.constant(w)
        sums = self.tf.raw_ops.QuantizedConv2D(
            input=value[0], filter=weights[0], min_input=value[1], max_input=value[2],
            min_filter=weights[1], max_filter=weights[2], strides=[1, stride, stride, 1],
            padding="SAME", out_type=self.tf.qint32,
        )  # fmt: skip
        value = self.biased(self.requantized(sums), bias)
        return self.tf.raw_ops.QuantizedRelu6(
            features=value[0], min_features=value[1], max_features=value[2], out_type=self.tf.quint8
        )

    def depthwise(self, x, w, bias, stride):
        x = self.tf.nn.depthwise_conv2d(self.floats(x), w, [1, stride, stride, 1], "SAME")
        value = self.biased(self.quantize(x), bias)
        return self.tf.raw_ops.QuantizedRelu6(
            features=value[0], min_features=value[1], max_features=value[2], out_type=self.tf.quint8
        )

    def classes(self, x, w, bias):
        value, weights = self.quantize(self.tf.reduce_mean(self.floats(x), [1, 2])), self.constant(w)
        sums = self.tf.raw_ops.QuantizedMatMul(
            a=value[0], b=weights[0], min_a=value[1], max_a=value[2], min_b=weights[1],
            max_b=weights[2], Toutput=self.tf.qint32,
        )  # fmt: skip
        return self.floats(self.biased(self.requantized(sums), bias))


def mobilenet(name, form, batch, small):
    side, multiplier = (64, 0.25) if small else (224, 1.0)

    def build(tf, folder):
        x = tf.placeholder(tf.float32, [None, side, side, 3], name="x")
        tf.identity(form(tf, multiplier).logits(x), name="y")

    # A sum that rounds to the other of two neighboring codes changes the later layers.
    feeds = {"x": ((batch, side, side, 3), 0)}
    return Model("w17_%s_b%d" % (name, batch), build, ["y"], feeds, steps=1, tolerance=0.02)


def bert(batch, length, small):
    network = Network(1000, 64, 2, 2, 64) if small else Network()

    def build(tf, folder):
        pooled = Bert(tf, network=network, dtype="bfloat16").pooled()
        tf.cast(pooled, tf.float32, name="pooled")
        return frozen(tf, ["pooled"])

    feeds = {name: ((batch, length), 2) for name in RANGES}
    return Model("w17_bert_bf16_%dx%d" % (batch, length), build, ["pooled"], feeds, steps=1, tolerance=0.03)


def models(small=False):
    sizes = [(2, 16)] if small else [(1, 128), (8, 128)]
    batches = (2,) if small else (1, 16)
    return (
        [mobilenet("fake_quant", FakeQuantMobileNet, batch, small) for batch in batches]
        + [mobilenet("quantized", QuantizedMobileNet, batch, small) for batch in batches]
        + [bert(*size, small) for size in sizes]
    )


if __name__ == "__main__":
    main("W17", __doc__)
