#ifndef WEIR_KERNELS_RANDOM_DISTRIBUTIONS_H_
#define WEIR_KERNELS_RANDOM_DISTRIBUTIONS_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/philox.h"

// Samples from parameterized distributions, one at a time by rejection; equal to TensorFlow's
// numbers. Each parameter element has `samples` samples, which form the leading dimensions of the
// result.
namespace weir {

// Generates uniform or normal doubles from a stream. A block yields two; the second is returned
// first.
template <class Samples>
class DoubleGenerator {
 public:
  double operator()(Philox& stream) {
    if (left_ == 0) {
      uint32_t block[4];
      stream(block);
      Samples()(block, pair_);
      left_ = 2;
    }
    return pair_[--left_];
  }

 private:
  double pair_[2] = {};
  int left_ = 0;
};
using UniformDoubles = DoubleGenerator<UniformSamples<double>>;
using NormalDoubles = DoubleGenerator<NormalSamples<double>>;

// Computes out[sample * parameters + p] = sampler(stream), where sampler = make(p). Each sample has
// its own stream, sampler.blocks() blocks after that of the previous sample, so the result does not
// depend on how the work is split. `cost` is nanoseconds per sample.
template <class T, class Make>
void FillSamples(ThreadPool& pool, const Philox& start, int64_t parameters, int64_t samples,
                 double cost, const Make& make, T* out) {
  pool.ParallelFor(parameters * samples, cost, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t p = begin / samples, stop = std::min(end, (p + 1) * samples);
      const auto sampler = make(p);
      for (; begin < stop; ++begin) {
        Philox stream = start;
        stream.Skip(sampler.blocks() * static_cast<uint64_t>(begin));
        out[begin % samples * parameters + p] = sampler(stream);
      }
    }
  });
}

// Converts a sample to type T, clamped to T's range; NaN becomes 0 for integers.
template <class T>
T ToSample(double x) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(x)) return 0;
    if (x >= static_cast<double>(Limits::max())) return Limits::max();
    if (x <= static_cast<double>(Limits::min())) return Limits::min();
  }
  return static_cast<T>(x);
}

// Returns the elements of a floating-point or integer tensor.
std::vector<double> ReadReals(const Tensor& t);
// Returns, for each element of shape `to`, the index of its element in a tensor of shape `from`,
// which broadcasts to `to`.
std::vector<int64_t> BroadcastOffsets(const Shape& from, const Shape& to);
// Returns how often `parameters` is repeated in the shape given by an input; that shape must end
// with the parameters' shape.
struct SampleShape {
  Shape shape;
  int64_t samples = 0;
};
absl::StatusOr<SampleShape> SamplesOf(const KernelContext& c, const Shape& parameters,
                                      int shape_input = 0);
// The same for ops whose input 0 is the shape of the samples per parameter element.
absl::StatusOr<SampleShape> SamplesOfEach(const KernelContext& c, const Shape& parameters);
// Reads inputs 1, 2 and 3 of the ops that take key, counter and algorithm.
absl::StatusOr<Philox> KeyCounterInputs(const KernelContext& c);  // random_cpu.cc

// Checks the shape of input i, the number of a generator's algorithm.
absl::Status CheckAlgorithmShape(const KernelContext& c, int i);
// Returns the stream of a generator stored in the variable at input 0 (int64: two words of counter,
// and the key), for the algorithm at input 1. Advances the generator by what `samples` samples
// reserve.
absl::StatusOr<Philox> GeneratorInput(KernelContext& c, int64_t samples);
// The same for a variable of the oldest form, which begins with the number of the algorithm.
absl::StatusOr<Philox> TaggedGeneratorInput(KernelContext& c, int64_t samples);

void AddBinomialCpu(KernelRegistry* r);         // binomial_cpu.cc
void AddCandidateSamplers(KernelRegistry* r);   // candidates.cc
void AddGammaCpu(KernelRegistry* r);            // gamma_cpu.cc
void AddGeneratorKernels(KernelRegistry* r);    // generator.cc
void AddIndexShuffleCpu(KernelRegistry* r);     // index_shuffle_cpu.cc
void AddPoissonCpu(KernelRegistry* r);          // poisson_cpu.cc
void AddSobolCpu(KernelRegistry* r);            // sobol_cpu.cc
void AddStochasticCastCpu(KernelRegistry* r);   // stochastic_cast_cpu.cc
void AddTruncatedNormalCpu(KernelRegistry* r);  // truncated_normal_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_RANDOM_DISTRIBUTIONS_H_
