"""Random valid calls of ops on tensors: audio, images, random numbers, matrices, session handles, training."""

import numpy as np
import tensorflow as tf
from tensorflow.lite.experimental.microfrontend.python.ops import audio_microfrontend_op  # noqa: F401
from tensorflow.python.framework import function
from tensorflow.python.saved_model import nested_structure_coder

from op_calls import call, floats, integers, strings, values

raw = tf.raw_ops
_KEY, _COUNTER = np.array([77], np.uint64), np.array([5, 2**63], np.uint64)


# ---- audio

def _wav(rng):
    channels, count = rng.randint(1, 3), rng.randint(0, 5)
    samples = integers(rng, [count, channels], -32768, 32767, np.int16).tobytes()
    rate = rng.choice((8000, 44100))
    form = np.array([1, channels], '<u2').tobytes() + np.array([rate, 2 * channels * rate], '<u4').tobytes() + \
        np.array([2 * channels, 16], '<u2').tobytes()
    junk = b'JUNK\3\0\0\0abc' if rng.random() < 0.3 else b''
    body = b'WAVE' + junk + b'fmt \x10\0\0\0' + form + b'data' + np.array([len(samples)], '<u4').tobytes() + samples
    return b'RIFF' + np.array([len(body)], '<u4').tobytes() + body


@call()
def DecodeWav(op, rng):
    return op(contents=_wav(rng), desired_channels=rng.choice((-1, 1, 2, 4)), desired_samples=rng.choice((-1, 1, 3, 9)))


@call()
def EncodeWav(op, rng):
    shape = [rng.randint(0, 4), rng.randint(1, 3)]
    return op(audio=floats(rng, shape, -1.5, 1.5), sample_rate=rng.choice((8000, 44100)))


@call()
def AudioSpectrogram(op, rng):
    return op(input=floats(rng, [rng.randint(1, 60), rng.randint(1, 2)]), window_size=rng.choice((2, 8, 15, 32)),
              stride=rng.randint(1, 20), magnitude_squared=rng.random() < 0.5)


@call()
def Mfcc(op, rng):
    return op(spectrogram=floats(rng, [rng.randint(1, 2), rng.randint(1, 3), rng.choice((17, 33, 65))], 0, 4),
              sample_rate=rng.choice((8000, 16000)), upper_frequency_limit=rng.choice((2000.0, 4000.0)),
              lower_frequency_limit=rng.choice((20.0, 300.0)), filterbank_channel_count=rng.choice((4, 10, 40)),
              dct_coefficient_count=rng.choice((2, 4)))


@call()
def AudioMicrofrontend(op, rng):
    return op(
        audio=integers(rng, [rng.choice((100, 700, 1200))], -3000, 3000, np.int16), num_channels=rng.choice((4, 8)),
        window_size=rng.choice((25, 30)), window_step=rng.choice((10, 20)), enable_pcan=rng.random() < 0.5,
        enable_log=rng.random() < 0.5, left_context=rng.randint(0, 2), right_context=rng.randint(0, 2),
        frame_stride=rng.randint(1, 2), zero_padding=rng.random() < 0.5, out_scale=rng.randint(1, 3),
        out_type=rng.choice((tf.uint16, tf.float32)))


@call()
def AudioSummary(op, rng):
    return op(tag='sound', tensor=floats(rng, rng.choice(([2, 5, 1], [3, 4], [1, 0, 2])), -1, 1),
              sample_rate=rng.choice((8000.0, 44100.0)), max_outputs=rng.randint(1, 3))


# ---- images and convolutions

_WEBP = bytes.fromhex('5249464638000000574542505650384c2c0000002f038000105f20164cae19e48f1bc3505c818240803255f8'
                      '2af1de81208044219658669965964923fa1f98ee')


@call()
def DecodeWebP(op, rng):
    return op(contents=_WEBP, channels=rng.choice((0, 4)))


@call()
def FusedPadConv2D(op, rng):
    dtype = rng.choice((np.float32, np.float64))
    paddings = np.array([[0, 0], [rng.randint(0, 2), rng.randint(0, 2)], [rng.randint(0, 2), 1], [0, 0]], np.int32)
    return op(input=floats(rng, [1, 4, 5, 2], dtype=dtype), paddings=paddings, filter=floats(rng, [2, 3, 2, 3], dtype=dtype),
              mode=rng.choice(('REFLECT', 'SYMMETRIC')), strides=rng.choice(([1, 1, 1, 1], [1, 2, 2, 1])),
              padding=rng.choice(('SAME', 'VALID')))


@call()
def FusedResizeAndPadConv2D(op, rng):
    paddings = np.array([[0, 0], [rng.randint(0, 2), rng.randint(0, 2)], [rng.randint(0, 2), 1], [0, 0]], np.int32)
    return op(input=floats(rng, [1, 4, 5, 2]), size=integers(rng, [2], 3, 7, np.int32), paddings=paddings,
              filter=floats(rng, [2, 3, 2, 3]), mode=rng.choice(('REFLECT', 'SYMMETRIC')),
              strides=rng.choice(([1, 1, 1, 1], [1, 2, 2, 1])), padding=rng.choice(('SAME', 'VALID')),
              resize_align_corners=rng.random() < 0.5)


@call('Conv3DBackpropFilter', 'Conv3DBackpropInput')
def conv3d_gradient(op, rng):
    dtype = rng.choice((np.float32, np.float64))
    padding, stride = rng.choice(('SAME', 'VALID')), rng.randint(1, 2)
    size, window = [rng.randint(2, 4) for _ in range(3)], [rng.randint(1, 2) for _ in range(3)]
    out = [-(-s // stride) if padding == 'SAME' else (s - w) // stride + 1 for s, w in zip(size, window)]
    return op(input=floats(rng, [1] + size + [2], dtype=dtype), filter=floats(rng, window + [2, 3], dtype=dtype),
              out_backprop=floats(rng, [1] + out + [3], dtype=dtype), strides=[1, stride, stride, stride, 1], padding=padding)


# ---- random numbers

@call()
def StatelessShuffle(op, rng):
    dtype = rng.choice((tf.int32, tf.float32, tf.string, tf.int64, tf.bool))
    return op(value=values(rng, [rng.randint(0, 7)] + rng.choice(([], [2])), dtype), key=_KEY, counter=_COUNTER,
              alg=rng.choice((1, 3)))


@call()
def StochasticCastToInt(op, rng):
    x = floats(rng, rng.choice(([], [5], [2, 3])), -200, 200, rng.choice((np.float16, np.float32, np.float64)))
    return op(input=x, key=_KEY, counter=_COUNTER, alg=1, Tout=rng.choice((tf.int8, tf.int16, tf.int32)))


@call()
def StatefulStandardNormal(op, rng):
    handle = raw.VarHandleOp(dtype=tf.int64, shape=[3], shared_name='state')
    make = raw.AssignVariableOp(resource=handle, value=np.array([1, 2, 3], np.int64))  # Philox, counter and key
    return [make, op(resource=handle, shape=integers(rng, [rng.randint(1, 2)], 0, 4), dtype=tf.float32)]


@call()
def SobolSample(op, rng):
    return op(dim=rng.choice((1, 2, 7, 40, 300)), num_results=rng.randint(1, 9), skip=rng.choice((0, 1, 6, 1000, 2**24 + 5)),
              dtype=rng.choice((tf.float32, tf.float64)))


# ---- matrices, arrays, functions

@call()
def MatrixExponential(op, rng):
    n = rng.randint(0, 3)
    return op(input=floats(rng, rng.choice(([], [2])) + [n, n], dtype=rng.choice((np.float32, np.float64, np.complex64))))


@call('Copy', 'CopyHost', 'DebugGradientIdentity')
def identity(op, rng):
    return op(input=values(rng, rng.choice(([], [2, 3])), rng.choice((tf.float32, tf.string, tf.int64))))


@call()
def HostConst(op, rng):
    x = values(rng, rng.choice(([], [2, 3])), rng.choice((tf.float32, tf.string, tf.int64)))
    return op(value=tf.make_tensor_proto(x), dtype=tf.as_dtype(x.dtype) if x.dtype != object else tf.string)


@call()
def PlaceholderV2(op, rng):
    return op(dtype=rng.choice((tf.float32, tf.string)), shape=rng.choice(([], [2, 3])))


@call()
def Fact(op, rng):
    return op()


@call()
def Timestamp(op, rng):
    return raw.Less(x=np.float64(0), y=op())


@call()
def MapDefun(op, rng):
    n = rng.randint(1, 4)

    @function.Defun(tf.float32, tf.int64, tf.float32)
    def mapped(x, i, captured):
        return tf.reduce_sum(x) * captured, i + 1
    return op(arguments=[floats(rng, [n, 2]), integers(rng, [n], -5, 5)], captured_inputs=[np.float32(rng.uniform(-2, 2))],
              output_types=[tf.float32, tf.int64], output_shapes=[[], []], f=mapped)


@call('CompositeTensorVariantToComponents', 'CompositeTensorVariantFromComponents')
def composite(op, rng):
    spec = tf.RaggedTensorSpec([None, None], tf.float32, 1)
    metadata = nested_structure_coder.encode_structure(spec).type_spec_value.SerializeToString()
    handle = raw.CompositeTensorVariantFromComponents(
        components=[floats(rng, [3]), np.array([0, 1, 3], np.int64)], metadata=metadata)
    return raw.CompositeTensorVariantToComponents(encoded=handle, metadata=metadata, Tcomponents=[tf.float32, tf.int64])


# ---- session handles

@call('GetSessionHandle', 'GetSessionTensor', 'DeleteSessionTensor')
def session_tensor(op, rng):
    x = values(rng, rng.choice(([], [2])), rng.choice((tf.float32, tf.string, tf.int64)))
    keep = raw.GetSessionHandle(value=x, name='keep')
    handle = 'keep;0;/job:localhost/replica:0/task:0/device:CPU:0'
    return [keep, raw.GetSessionTensor(handle=handle, dtype=tf.string if x.dtype == object else x.dtype),
            raw.DeleteSessionTensor(handle=handle)]


# ---- training

@call()
def SdcaFprint(op, rng):
    return op(input=strings(rng, [rng.randint(0, 4)]))


def _sdca(op, rng, **adaptive):
    examples = rng.randint(1, 4)
    rows = [sorted(rng.choice(range(examples)) for _ in range(3)) for _ in range(rng.randint(0, 2))]
    widths = [rng.randint(1, 2) for _ in range(rng.randint(0 if rows else 1, 2))]
    loss = rng.choice(('logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss'))
    return op(
        sparse_example_indices=[np.array(r, np.int64) for r in rows],
        sparse_feature_indices=[np.array([0, 1, 2], np.int64) for _ in rows],
        sparse_feature_values=[floats(rng, [3]) for _ in range(rng.randint(0, len(rows)))],
        dense_features=[floats(rng, [examples, w]) for w in widths], example_weights=floats(rng, [examples], 0, 2),
        example_labels=integers(rng, [examples], 0, 1).astype(np.float32),
        sparse_indices=[np.arange(4, dtype=np.int64) for _ in rows], sparse_weights=[floats(rng, [4]) for _ in rows],
        dense_weights=[floats(rng, [w]) for w in widths], example_state_data=np.zeros([examples, 4], np.float32), loss_type=loss,
        l1=rng.choice((0.0, 0.1)), l2=rng.choice((0.5, 1.0)), num_loss_partitions=1, num_inner_iterations=rng.randint(1, 3),
        **adaptive)


@call()
def SdcaOptimizer(op, rng):
    return _sdca(op, rng, adaptative=False)


@call()
def SdcaOptimizerV2(op, rng):
    return _sdca(op, rng, adaptive=False)


def _reference(x):
    """(a reference variable, the op that gives it its value)."""
    variable = raw.VariableV2(shape=x.shape, dtype=x.dtype)
    return variable, raw.Assign(ref=variable, value=x)


@call()
def SdcaShrinkL1(op, rng):
    variables = [_reference(floats(rng, [rng.randint(0, 4)])) for _ in range(rng.randint(1, 2))]
    shrink = op(weights=[v for v, _ in variables], l1=rng.choice((0.0, 0.3)), l2=rng.choice((0.5, 1.0)))
    return [tuple(a for _, a in variables), shrink, tuple(raw.Identity(input=v) for v, _ in variables)]


@call()
def Skipgram(op, rng):
    return op(filename='words.txt', batch_size=rng.randint(1, 8), window_size=rng.randint(1, 3), min_count=rng.randint(1, 3),
              subsample=rng.choice((0.0, 1e-3)))[:3]


@call()
def NegTrain(op, rng):
    (w_in, make_in), (w_out, make_out) = _reference(floats(rng, [5, 3])), _reference(np.zeros([5, 3], np.float32))
    count = rng.randint(1, 4)
    train = op(w_in=w_in, w_out=w_out, examples=integers(rng, [count], 0, 4, np.int32),
               labels=integers(rng, [count], 0, 4, np.int32), lr=rng.choice((0.1, 0.025)), vocab_count=[3, 1, 4, 1, 5],
               num_negative_samples=rng.randint(1, 3))
    return [(make_in, make_out), train]


@call()
def DebugGradientRefIdentity(op, rng):
    variable, make = _reference(floats(rng, [3]))
    return [make, raw.Identity(input=op(input=variable))]


@call('TensorArrayGradV2', 'TensorArrayCloseV2')
def old_tensor_array(op, rng):
    handle = raw.TensorArrayV2(size=rng.randint(0, 3), dtype=tf.float32)
    grad = raw.TensorArrayGradV2(handle=handle, flow_in=np.float32(0), source='gradients')
    return raw.TensorArrayCloseV2(handle=grad)


@call()
def BatchMatrixDiag(op, rng):
    return op(diagonal=values(rng, rng.choice(([2], [2, 3], [0])), rng.choice((tf.float32, tf.int64))))


@call()
def BatchMatrixDiagPart(op, rng):
    return op(input=values(rng, rng.choice(([2, 2], [2, 3, 4], [3, 0])), rng.choice((tf.float32, tf.int64))))


@call()
def BatchMatrixSetDiag(op, rng):
    shape = rng.choice(([2, 2], [2, 3, 4], [3, 1]))
    dtype = rng.choice((tf.float32, tf.int64))
    return op(input=values(rng, shape, dtype), diagonal=values(rng, shape[:-2] + [min(shape[-2:])], dtype))


@call()
def BatchMatrixBandPart(op, rng):
    return op(input=values(rng, [2, 3, 4], rng.choice((tf.float32, tf.int64))), num_lower=np.int64(rng.randint(-1, 2)),
              num_upper=np.int64(rng.randint(-1, 3)))
