"""Random valid calls of quantized convolutions and products with what follows them, and of uniform quantization."""

import numpy as np
import tensorflow as tf
from tensorflow.core.util.quantization import uniform_quant_ops_attr_pb2

from op_calls import call, floats, integers, quantized

raw = tf.raw_ops
_STORED = {tf.qint8: np.int8, tf.quint8: np.uint8, tf.qint32: np.int32}
_INT8, _INT32 = (-128, 127), (-2**31, 2**31 - 1)


def _numbers(rng, dtype, shape, low=None, high=None):
    info = np.iinfo(_STORED[dtype])
    low, high = info.min if low is None else low, info.max if high is None else high
    return quantized(integers(rng, shape, low, high, _STORED[dtype]), dtype)


# ---- fused products and convolutions

def _range(rng, low=-3.0, high=3.0):
    return np.float32(rng.uniform(low, -0.1)), np.float32(rng.uniform(0.1, high))


def _bias(rng, size, plain):
    if plain or rng.random() < 0.5:
        return floats(rng, [size], -3, 3)
    return _numbers(rng, tf.qint32, [size], -5000, 5000)


@call('QuantizedMatMulWithBias', 'QuantizedMatMulWithBiasAndDequantize', 'QuantizedMatMulWithBiasAndRelu',
      'QuantizedMatMulWithBiasAndReluAndRequantize', 'QuantizedMatMulWithBiasAndRequantize')
def quantized_product(op, rng):
    name = op.name
    m, k, n = rng.randint(1, 3), rng.randint(1, 9), rng.randint(1, 4)
    mode = rng.choice(('MIN_FIRST', 'SCALED'))
    min_a, max_a = _range(rng)
    min_b, max_b = _range(rng)
    attrs = dict(min_freezed_output=np.float32(-9), max_freezed_output=np.float32(12)) if name.endswith('quantize') else {}
    attrs['Toutput'] = tf.float32 if 'Dequantize' in name else tf.quint8 if 'Requantize' in name else tf.qint32
    return op(a=_numbers(rng, tf.quint8, [m, k]), b=_numbers(rng, tf.qint8, [k, n], -63, 63),
              bias=_bias(rng, n, name.endswith('Relu')), min_a=np.float32(0) if mode == 'SCALED' else min_a, max_a=max_a,
              min_b=min_b, max_b=max_b, input_quant_mode=mode, **attrs)


_CONVOLUTIONS = [
    'QuantizedConv2D' + rest for rest in (
        'AndRelu', 'AndReluAndRequantize', 'AndRequantize', 'PerChannel', 'WithBias', 'WithBiasAndRelu',
        'WithBiasAndReluAndRequantize', 'WithBiasAndRequantize', 'WithBiasSignedSumAndReluAndRequantize',
        'WithBiasSumAndRelu', 'WithBiasSumAndReluAndRequantize')] + [
    'QuantizedDepthwiseConv2D' + rest for rest in (
        '', 'WithBias', 'WithBiasAndRelu', 'WithBiasAndReluAndRequantize')]


@call(*_CONVOLUTIONS)
def quantized_convolution(op, rng):
    name = op.name
    depthwise, requantize = 'Depthwise' in name, 'Requantize' in name
    channels, out = 2, 2 if depthwise else 3
    kernel = [2, 2, channels, 1 if depthwise else out]
    min_input, max_input = _range(rng)
    min_filter, max_filter = _range(rng)
    per_channel = 'Bias' in name and requantize and rng.random() < 0.5 or 'PerChannel' in name
    if per_channel:
        min_filter, max_filter = np.full([out], min_filter), np.full([out], max_filter)
    out_type = tf.quint8 if requantize and 'Relu' in name else tf.qint8 if requantize else tf.qint32
    args = dict(min_freezed_output=np.float32(-9), max_freezed_output=np.float32(12)) if requantize else {}
    if 'Bias' in name:
        args['bias'] = _bias(rng, out, not requantize)
    if 'Sum' in name:
        summand = tf.qint8 if 'Signed' in name else tf.quint8
        args['summand'] = _numbers(rng, summand, [1, 2, 3, out]) if requantize else floats(rng, [1, 2, 3, out])
        if requantize:
            args.update(min_summand=np.float32(-2), max_summand=np.float32(2))
    return op(input=_numbers(rng, tf.quint8, [1, 3, 4, channels]), filter=_numbers(rng, tf.qint8, kernel, -63, 63),
              min_input=min_input, max_input=max_input, min_filter=min_filter, max_filter=max_filter, out_type=out_type,
              strides=[1, 1, 1, 1], padding='VALID', **args)


# ---- uniform quantization

def _scales(rng, axis, shape, low=0.02, high=0.3):
    size = [] if axis < 0 else [shape[axis]]
    return floats(rng, size, low, high), integers(rng, size, -20, 20, np.int32)


def _named(prefix, axis, limits):
    return {prefix + 'quantization_axis': axis, prefix + 'quantization_min_val': limits[0],
            prefix + 'quantization_max_val': limits[1]}


def _shape_and_axis(rng):
    shape = [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
    return shape, rng.randint(-1, len(shape) - 1)


@call()
def UniformQuantize(op, rng):
    shape, axis = _shape_and_axis(rng)
    dtype, limits = rng.choice(((tf.qint8, _INT8), (tf.quint8, (0, 255)), (tf.qint32, _INT32), (tf.qint8, (-127, 100))))
    scales, points = _scales(rng, axis, shape)
    return op(input=floats(rng, shape, -30, 30), scales=scales, zero_points=points, Tout=dtype, **_named('', axis, limits))


@call()
def UniformDequantize(op, rng):
    shape, axis = _shape_and_axis(rng)
    scales, points = _scales(rng, axis, shape)
    return op(input=_numbers(rng, rng.choice((tf.qint8, tf.quint8, tf.qint32)), shape), scales=scales, zero_points=points,
              Tout=tf.float32, **_named('', axis, _INT32))


@call()
def UniformRequantize(op, rng):
    shape, axis = _shape_and_axis(rng)
    other = rng.choice((axis, -1))
    a, b = rng.choice(((axis, other), (other, axis)))
    dtype = rng.choice((tf.qint8, tf.qint32))
    scales, points = _scales(rng, a, shape)
    out_scales, out_points = _scales(rng, b, shape, 0.1, 9.0)
    big = 100 if dtype == tf.qint8 else 100000
    return op(input=_numbers(rng, dtype, shape, -big, big), input_scales=scales, input_zero_points=points,
              output_scales=out_scales, output_zero_points=out_points, Tout=tf.qint8, **_named('input_', a, _INT32),
              **_named('output_', b, _INT8))


@call()
def UniformQuantizedClipByValue(op, rng):
    shape, axis = _shape_and_axis(rng)
    size = [] if axis < 0 else [shape[axis]]
    scales, points = _scales(rng, axis, shape)
    return op(operand=_numbers(rng, tf.qint32, shape, -99, 99), min=_numbers(rng, tf.qint32, size, -60, -10),
              max=_numbers(rng, tf.qint32, size, 5, 60), scales=scales, zero_points=points, **_named('', axis, _INT32))


@call()
def UniformQuantizedAdd(op, rng):
    a, b = rng.choice((([2, 3], [2, 3]), ([2, 3], [3]), ([], [2, 3]), ([2, 1], [2, 3]), ([4, 2, 3], [1, 3])))
    out = list(np.broadcast_shapes(a, b))
    axes = (-1, -1, -1)
    if a and b and a[-1] == b[-1] and rng.random() < 0.5:
        axes = (len(a) - 1, len(b) - 1, len(out) - 1)
    args = {}
    for side, axis, shape in (('lhs', axes[0], a), ('rhs', axes[1], b), ('output', axes[2], out)):
        args[side + '_scales'], args[side + '_zero_points'] = _scales(rng, axis, shape)
        args.update(_named(side + '_', axis, _INT32))
    return op(lhs=_numbers(rng, tf.qint32, a, -9999, 9999), rhs=_numbers(rng, tf.qint32, b, -9999, 9999), **args)


@call('UniformQuantizedDot', 'UniformQuantizedDotHybrid')
def uniform_product(op, rng):
    m, k, n = (rng.randint(1, 3) for _ in range(3))
    right, out = rng.choice(((-1, -1), (1, -1), (1, 1)))
    args = dict(rhs=_numbers(rng, tf.qint8, [k, n]), **_named('rhs_', right, _INT8))
    args['rhs_scales'], args['rhs_zero_points'] = _scales(rng, right, [k, n])
    if op.name.endswith('Hybrid'):
        return op(lhs=floats(rng, [m, k], -3, 3), Tout=tf.float32, **args)
    args['lhs_scales'], args['lhs_zero_points'] = _scales(rng, -1, [])
    args['output_scales'], args['output_zero_points'] = _scales(rng, out, [m, n], 1.0, 3.0)
    return op(lhs=_numbers(rng, tf.qint8, [m, k]), Tout=tf.qint32, **_named('lhs_', -1, _INT8), **_named('output_', out, _INT32),
              **args)


@call('UniformQuantizedConvolution', 'UniformQuantizedConvolutionHybrid')
def uniform_convolution(op, rng):
    options = rng.choice((
        dict(padding='VALID'), dict(padding='SAME', window_strides=[2, 1]),
        dict(padding='EXPLICIT', explicit_padding=[0, 2, 1, 1], rhs_dilation=[2, 1]), dict(padding='SAME', lhs_dilation=[2, 3]),
        dict(padding='VALID', feature_group_count=2), dict(padding='VALID', batch_group_count=2)))
    groups = options.get('feature_group_count', 1)
    if rng.random() < 0.5:
        numbers, x, y, out_axis = b'', [2, 2, 3, 4], [4, 2 // groups, 3, 2], 0
    else:
        numbers = uniform_quant_ops_attr_pb2.UniformQuantizedConvolutionDimensionNumbersAttr(
            input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=[1, 2],
            kernel_output_feature_dimension=3, kernel_input_feature_dimension=2, kernel_spatial_dimensions=[0, 1],
            output_batch_dimension=0, output_feature_dimension=3, output_spatial_dimensions=[1, 2]).SerializeToString()
        x, y, out_axis = [2, 3, 4, 2], [3, 2, 2 // groups, 4], 3
    right = rng.choice((-1, out_axis))
    args = dict(options, rhs=_numbers(rng, tf.qint8, y), dimension_numbers=numbers, **_named('rhs_', right, _INT8))
    args['rhs_scales'], args['rhs_zero_points'] = _scales(rng, right, y)
    if op.name.endswith('Hybrid'):
        return op(lhs=floats(rng, x, -3, 3), Tout=tf.float32, **args)
    args['lhs_scales'], args['lhs_zero_points'] = _scales(rng, -1, [])
    args['output_scales'], args['output_zero_points'] = _scales(rng, -1, [], 0.5, 2.0)
    return op(lhs=_numbers(rng, tf.qint8, x), Tout=tf.qint32, **_named('lhs_', -1, _INT8), **_named('output_', -1, _INT32), **args)
