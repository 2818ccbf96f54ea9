#!/usr/bin/env python3
"""Compares the ops of half and bfloat16 with TensorFlow, bit by bit.

Unary ops and casts get all 65,536 values, binary ops all pairs of 256 special and random ones. All NaN are equal. The
differences that remain are named and limited below; everything else must have TensorFlow's bits.

Skipped without TensorFlow.
usage: narrow_floats_test.py RUN_STEPS
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'  # else some processors have other kernels for some of the ops

from digits_test import np, tf, v1  # prints SKIPPED and exits without TensorFlow
from idioms_test import in_process
from tensorflow.python.framework import kernels, op_def_registry

UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselK0 Ceil Cos Cosh Digamma
    Elu Erf Erfc Erfinv Exp Expm1 Floor Inv IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p Ndtri Neg Reciprocal Relu Relu6
    Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square Tan Tanh""".split()
BINARY = """Add AddV2 Atan2 Div DivNoNan EluGrad Equal FloorDiv FloorMod Greater GreaterEqual InvGrad LeakyReluGrad Less LessEqual
    Maximum Minimum Mul MulNoNan NotEqual Pow RealDiv ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad
    SoftplusGrad SoftsignGrad SqrtGrad SquaredDifference Sub TanhGrad TruncateDiv Xdivy Xlog1py Xlogy""".split()

# Values that differ by one unit in the last place: each runtime approximates these functions in float, and the results lie on
# different sides of a tie.
_APPROXIMATED = """Asin Asinh Atan Atan2 BesselI0 BesselI0e BesselI1e BesselK0 Digamma Erf Exp Expm1 Lgamma Log Log1p Sin Tan
    Tanh""".split()
_TIES = 24
# More of them: {(type, op): number}. TensorFlow rounds the reciprocal of bfloat16 to the wrong side, and I1 of numbers whose
# halves are ties.
_MORE_TIES = {('bfloat16', 'Inv'): 120, ('bfloat16', 'Reciprocal'): 120, ('float16', 'BesselI1'): 700}
# TensorFlow loses up to 42 units of J0 beyond 90, and has NaN at infinity. Weir rounds the correct value.
_UNCOMPARED = {('float16', 'BesselJ0'): lambda x, _: np.abs(x) > 1.7, ('float16', 'BesselI1'): lambda x, _: np.isinf(x),
               ('float16', 'BesselI0'): lambda x, _: np.isinf(x)}
# Zeros of either sign: TensorFlow's vectors and single elements differ.
_UNSIGNED_ZEROS = 'Maximum Minimum RsqrtGrad Xdivy Xlog1py Xlogy'.split()


def smallest_normal(dtype):
    """Numbers below it may be taken for zeros: both runtimes flush subnormal floats, but not in all ops that copy bits."""
    return 2.0**-126 if dtype == tf.bfloat16 else 0.0


def has_kernel(op, dtype):
    return any(k.device_type == 'CPU' and all(c.name != 'T' or dtype.as_datatype_enum in c.allowed_values.list.type
                                              for c in k.constraint)
               for k in kernels.get_registered_kernels_for_op(op).kernel)


def bits_of(tensor):
    """The tensor as one that NumPy can write to a file."""
    if tensor.dtype in (tf.half, tf.bfloat16):
        return tf.bitcast(tensor, tf.uint16)
    return tensor


def call(op, *inputs):
    names = [arg.name for arg in op_def_registry.get(op).input_arg]
    return getattr(tf.raw_ops, op)(**dict(zip(names, inputs)))


class _Run:
    """What idioms_test.in_process runs."""

    def __init__(self, feeds, fetches):
        self.init, self.steps = [], [(feeds, fetches)]


def on_both(runner, graph, feeds, fetches):
    config = v1.ConfigProto(intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with v1.Session(graph=graph, config=config) as session:
        wanted = session.run(fetches, feeds)
    return wanted, in_process(runner, graph, _Run(feeds, fetches))[0]


def numbers(bits, dtype):
    return bits.view(dtype.as_numpy_dtype).astype(np.float64).ravel()


def ulps(a, b):
    """The distances of 16-bit floats, given by their bits; those of 0 and -0 are equal."""
    a, b = (np.where(x >= 0x8000, 0x8000 - x, x) for x in (a.ravel().astype(np.int64), b.ravel().astype(np.int64)))
    return np.abs(a - b)


def difference(name, dtype, op, x, y, wanted, got, result):
    """Describes how an op differs; None if it does not, beyond what is explained above."""
    if result not in (tf.half, tf.bfloat16):
        differ = wanted.ravel() != got.ravel()
        if wanted.dtype.kind in 'fc':
            differ &= ~(np.isnan(wanted) & np.isnan(got)).ravel()
        a, b, distance = wanted.ravel(), got.ravel(), None
    else:
        a, b, distance = numbers(wanted, result), numbers(got, result), ulps(wanted, got)
        differ = (wanted.ravel() != got.ravel()) & ~(np.isnan(a) & np.isnan(b))
        tiny = smallest_normal(result)
        differ &= ~((np.abs(a) <= tiny) & (np.abs(b) <= tiny) & (tiny > 0))
        if op in _UNSIGNED_ZEROS:
            differ &= distance > 0
    for operand in (x, y):
        differ &= ~((operand != 0) & (np.abs(operand) < smallest_normal(dtype)))
    if (name, op) in _UNCOMPARED:
        differ &= ~_UNCOMPARED[name, op](x, y)
    found = np.flatnonzero(differ)
    if distance is not None and (distance[found] <= 1).all():
        allowed = _MORE_TIES.get((name, op), _TIES if op in _APPROXIMATED else 0)
        if len(found) <= allowed:
            return None
    if not len(found):
        return None
    worst = found[np.argsort(-distance[found], kind='stable')[:4]] if distance is not None else found[:4]
    return '%s %s: %d values, such as %s' % (
        name, op, len(found), ', '.join('(%g, %g): TensorFlow %s, Weir %s' % (x[i], y[i], a[i], b[i]) for i in worst))


def in_range(values, to):
    """Whether an integer type holds the integer part: elsewhere TensorFlow saturates in vectors and wraps at their ends."""
    whole = np.trunc(values)
    if to == tf.bool or not to.is_integer:
        return np.ones(values.shape, bool)
    low, high = float(to.min), float(to.max)
    return (whole >= low) & (whole <= high) & (whole < 2.0**(8 * to.size - (0 if to.is_unsigned else 1)))


def check_unary(runner, dtype):
    graph, bits = tf.Graph(), np.arange(65536, dtype=np.uint16).reshape(256, 256)
    with graph.as_default():
        fed = v1.placeholder(tf.uint16, bits.shape)
        x = tf.bitcast(fed, dtype)
        results = [(op, call(op, x)) for op in UNARY if has_kernel(op, dtype)]
        types = [t for t in (tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64, tf.bool, tf.half,
                             tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128) if t != dtype]
        results += [(t, tf.raw_ops.Cast(x=x, DstT=t)) for t in types]
        fetches = [bits_of(y) for _, y in results]
    values, faults = numbers(bits, dtype), []
    for (op, y), a, b in zip(results, *on_both(runner, graph, {fed: bits}, fetches)):
        if isinstance(op, tf.DType):
            comparable = in_range(values, op)
            a, b = (np.where(comparable, v.ravel(), v.ravel()[:1]) for v in (a, b))
            op = 'Cast to ' + op.name
        faults.append(difference(dtype.name, dtype, op, values, values, a, b, y.dtype))
    return len(results), faults


def special_values(dtype):
    """256 numbers."""
    rng = np.random.RandomState(7)
    special = np.array([0, 1, 2, 3, .5, .25, 1.5, .1, .3, 10, 100, 1000, 1e-3, 1e-4, 7, 65504, 6.1e-5, 1e-7, 6e-8, 3e4, np.inf,
                        np.nan, 17.5, 255, 256])
    wide = np.exp(rng.uniform(-10, 11, 106)) * rng.choice([-1, 1], 106)
    return np.concatenate([special, -special, rng.uniform(-5, 5, 100), wide]).astype(dtype.as_numpy_dtype)


def check_binary(runner, dtype):
    bits = special_values(dtype).view(np.uint16)
    first, second = (np.ascontiguousarray(v) for v in np.meshgrid(bits, bits, indexing='ij'))
    graph = tf.Graph()
    with graph.as_default():
        fed = [v1.placeholder(tf.uint16, first.shape) for _ in range(2)]
        x, y = (tf.bitcast(f, dtype) for f in fed)
        results = [(op, call(op, x, y)) for op in BINARY if has_kernel(op, dtype)]
        fetches = [bits_of(z) for _, z in results]
    faults = [difference(dtype.name, dtype, op, numbers(first, dtype), numbers(second, dtype), a, b, z.dtype)
              for (op, z), a, b in zip(results, *on_both(runner, graph, dict(zip(fed, (first, second))), fetches))]
    return len(results), faults


def check_softmax(runner, dtype):
    """TensorFlow rounds each step, and loses several units. Weir rounds the correct value, with at most one unit of error."""
    rng = np.random.RandomState(8)
    rows = rng.uniform(-8, 8, (512, 37)).astype(dtype.as_numpy_dtype)
    rows[0], rows[1, ::2], rows[2, 3] = 0, -np.inf, np.nan
    graph = tf.Graph()
    with graph.as_default():
        fed = v1.placeholder(tf.uint16, rows.shape)
        fetches = [bits_of(call(op, tf.bitcast(fed, dtype))) for op in ('Softmax', 'LogSoftmax')]
    wide = rows.astype(np.float64)
    shifted = wide - wide.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    faults = []
    wanted, got = on_both(runner, graph, {fed: rows.view(np.uint16)}, fetches)
    for op, exact, theirs, ours in zip(('Softmax', 'LogSoftmax'), (np.exp(logarithms), logarithms), wanted, got):
        a, b = numbers(theirs, dtype), numbers(ours, dtype)
        exact = exact.astype(dtype.as_numpy_dtype)
        distance = ulps(exact.view(np.uint16), ours)
        if not np.array_equal(np.isnan(a), np.isnan(b)) or (distance[~np.isnan(b)] > 1).any():
            faults.append('%s %s: %d units from the correct value' % (dtype.name, op, distance[~np.isnan(b)].max()))
    return 2, faults


def main(runner):
    np.seterr(all='ignore')
    count, faults = 0, []
    for dtype in (tf.half, tf.bfloat16):
        for check in (check_unary, check_binary, check_softmax):
            checked, found = check(runner, dtype)
            count += checked
            faults += [fault for fault in found if fault]
    print(*faults, '%d ops, %d differ' % (count, len(faults)), sep='\n')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
