#!/usr/bin/env python3
"""Writes random_goldens.h: results of TensorFlow's random ops on the CPU with fixed seeds, over two runs of a session.

random_test.cc runs the same nodes with Weir. Run with TensorFlow installed:
    python3 tests/ops/make_random_goldens.py
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

FLOATS = [tf.half, tf.bfloat16, tf.float32, tf.float64]
SHAPES = [[7], [1003, 3]]


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def rows():
    r = tf.raw_ops
    for shape in SHAPES:
        for t in FLOATS:
            for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
                yield op, t, shape, getattr(r, op)(shape=shape, dtype=t, seed=7, seed2=11)
            for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
                yield op, t, shape, getattr(r, op)(shape=shape, dtype=t, seed=np.array([-3, 4], np.int64))
                yield op + "V2", t, shape, getattr(r, op + "V2")(
                    shape=shape, dtype=t, key=np.array([3], np.uint64), counter=np.array([5, 6], np.uint64), alg=1)
        for t in (tf.int32, tf.int64):
            lo, hi = tf.constant(-5, t), tf.constant(2**31 - 100, t)
            yield "RandomUniformInt", t, shape, r.RandomUniformInt(shape=shape, minval=lo, maxval=hi, seed=7, seed2=11)
            yield "StatelessRandomUniformInt", t, shape, r.StatelessRandomUniformInt(
                shape=shape, seed=np.array([-3, 4], np.int64), minval=lo, maxval=hi)
        for t in (tf.int32, tf.int64, tf.uint32, tf.uint64):
            yield "StatelessRandomUniformFullInt", t, shape, r.StatelessRandomUniformFullInt(
                shape=shape, dtype=t, seed=np.array([-3, 4], np.int64))
            yield "StatelessRandomUniformFullIntV2", t, shape, r.StatelessRandomUniformFullIntV2(
                shape=shape, dtype=t, key=np.array([3], np.uint64), counter=np.array([5, 6], np.uint64), alg=3)
        size = int(np.prod(shape))
        yield "RandomShuffle", tf.int32, shape, r.RandomShuffle(
            value=tf.constant(np.arange(size, dtype=np.int32).reshape(shape)), seed=7, seed2=11)
    logits = tf.constant([[0.0, 1.0, 2.0, -1.0], [0.5, -np.inf, 0.25, 3.0]])
    yield "Multinomial", tf.int64, [2, 9], r.Multinomial(logits=logits, num_samples=9, seed=7, seed2=11)
    yield "StatelessMultinomial", tf.int64, [2, 9], r.StatelessMultinomial(
        logits=logits, num_samples=9, seed=np.array([-3, 4], np.int64))


def parameterized_rows():
    """Adds distributions with four sets of parameters, and samples of each."""
    r = tf.raw_ops
    seed = np.array([-3, 4], np.int64)
    key = {"key": np.array([3], np.uint64), "counter": np.array([5, 6], np.uint64), "alg": 1}
    for t in (tf.half, tf.float32, tf.float64):
        alpha = tf.constant([0.3, 1, 2.5, 40], t)
        yield "RandomGamma", t, [50, 4], r.RandomGamma(shape=[50], alpha=alpha, seed=7, seed2=11)
        yield "StatelessRandomGammaV2", t, [50, 4], r.StatelessRandomGammaV2(shape=[50, 4], seed=seed, alpha=alpha)
        yield "StatelessRandomGammaV3", t, [50, 4], r.StatelessRandomGammaV3(shape=[50, 4], alpha=alpha, **key)
    rate = tf.constant([0.5, 3, 11, 200], tf.float64)
    counts, probs = tf.constant([5, 40, 200, 1000], tf.float64), tf.constant([0.3, 0.5, 0.9, 0.02], tf.float64)
    for t in (tf.half, tf.float32, tf.float64, tf.int32, tf.int64):
        yield "RandomPoissonV2", t, [50, 4], r.RandomPoissonV2(shape=[50], rate=rate, dtype=t, seed=7, seed2=11)
        yield "StatelessRandomPoisson", t, [50, 4], r.StatelessRandomPoisson(shape=[50, 4], seed=seed, lam=rate, dtype=t)
        yield "StatelessRandomBinomial", t, [50, 4], r.StatelessRandomBinomial(
            shape=[50, 4], seed=seed, counts=counts, probs=probs, dtype=t)
    inf = np.inf
    for t in (tf.float32, tf.float64):
        means, deviations = tf.constant([0, 0, 0, 1], t), tf.constant([1, 1, 1, 2], t)
        low, high = tf.constant([-2, -0.5, 3, -inf], t), tf.constant([inf, 0.5, inf, -2], t)
        yield "ParameterizedTruncatedNormal", t, [4, 25], r.ParameterizedTruncatedNormal(
            shape=[4, 25], means=means, stdevs=deviations, minvals=low, maxvals=high, seed=7, seed2=11)
        yield "StatelessParameterizedTruncatedNormal", t, [25, 4], r.StatelessParameterizedTruncatedNormal(
            shape=[25, 4], seed=seed, means=means, stddevs=deviations, minvals=low, maxvals=high)
    for t in (tf.int32, tf.uint32, tf.int64, tf.uint64):
        yield "RandomIndexShuffle", t, [100], r.RandomIndexShuffle(
            index=tf.constant(np.arange(100), t), seed=tf.constant([1, 2, 3], t), max_index=tf.constant(99, t), rounds=6)
    classes = tf.constant([[1, 3], [0, 2]], tf.int64)
    common = {"true_classes": classes, "num_true": 2, "seed": 7, "seed2": 11}
    for op in ("Uniform", "LogUniform", "LearnedUnigram", "ThreadUnsafeUnigram"):
        op += "CandidateSampler"
        yield op, tf.int64, [9], getattr(r, op)(num_sampled=9, unique=True, range_max=20, **common).sampled_candidates
    yield "FixedUnigramCandidateSampler", tf.int64, [40], r.FixedUnigramCandidateSampler(
        num_sampled=40, unique=False, range_max=6, num_reserved_ids=1, distortion=0.75, unigrams=[1, 5, 2, 9, 3],
        **common).sampled_candidates


def main():
    lines = []
    with tf.Graph().as_default(), tf.Session() as session:
        nodes = list(rows()) + list(parameterized_rows())
        runs = [session.run([n[3] for n in nodes]) for _ in range(2)]
        for i, (op, dtype, shape, _) in enumerate(nodes):
            hashes = ", ".join("0x%016xu" % fnv(run[i].tobytes()) for run in runs)
            dims = ", ".join(str(d) for d in shape)
            lines.append('    {"%s", "%s", {%s}, {%s}},' % (op, tf.as_dtype(dtype).name, dims, hashes))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "random", "random_goldens.h")
    with open(path, "w") as out:
        out.write("""#ifndef WEIR_TESTS_OPS_RANDOM_GOLDENS_H_
#define WEIR_TESTS_OPS_RANDOM_GOLDENS_H_

#include <cstdint>
#include <vector>

// Generated by make_random_goldens.py.
namespace weir {

struct RandomGolden {
  const char* op;
  const char* dtype;
  std::vector<int64_t> shape;
  uint64_t hashes[2];  // FNV-1a of the bytes of the output, in the first run and in the second
};

inline const std::vector<RandomGolden>& RandomGoldens() {
  static const auto* const goldens = new std::vector<RandomGolden>{
""")
        out.write("\n".join(lines))
        out.write("""
  };
  return *goldens;
}

}  // namespace weir

#endif  // WEIR_TESTS_OPS_RANDOM_GOLDENS_H_
""")


if __name__ == "__main__":
    tf.disable_eager_execution()
    main()
