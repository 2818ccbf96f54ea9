#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"

// Random numbers (kernels/lib/philox.h): thread g computes group g, wherever it starts in the
// stream.
namespace weir::gpu {

namespace {

template <class Samples>
struct GroupBody {
  using Sample = typename Samples::Sample;
  Philox start;
  Samples distribution;
  Sample* out;
  int64_t n;
  WEIR_HD void operator()(int64_t g) const {
    constexpr int kGroup = Samples::kGroup;
    Sample group[kGroup];
    Philox stream = start;
    if constexpr (Samples::kRejects) {
      stream.Skip(static_cast<uint64_t>(g) * (kGroup * kReservedPerSample / 4));
      PhiloxWords words(stream);
      distribution(words, group);
    } else {
      stream.Skip(static_cast<uint64_t>(g));
      uint32_t block[4];
      stream(block);
      distribution(block, group);
    }
    const int64_t at = g * kGroup;
    for (int k = 0; k < kGroup && at + k < n; ++k) out[at + k] = group[k];
  }
};

template <class Samples>
void Run(void* stream, const Philox& start, const Samples& distribution, void* out, int64_t n) {
  ForEach(stream, (n + Samples::kGroup - 1) / Samples::kGroup,
          GroupBody<Samples>{start, distribution, static_cast<typename Samples::Sample*>(out), n});
}

}  // namespace

bool Random(void* stream, RandomKind kind, DataType type, const Philox& start, uint64_t low,
            uint64_t range, void* out, int64_t n) {
  if (kind == RandomKind::kInteger) {
    return DispatchType(type, List<int32_t, int64_t, uint32_t, uint64_t>(), [&]<class T>() {
      using Word = typename IntegerSamples<T>::Word;
      const IntegerSamples<T> samples{static_cast<Word>(low), static_cast<Word>(range)};
      Run(stream, start, samples, out, n);
    });
  }
  return DispatchType(type, Floats(), [&]<class T>() {
    if (kind == RandomKind::kUniform) {
      Run(stream, start, UniformSamples<T>(), out, n);
    } else if (kind == RandomKind::kNormal) {
      Run(stream, start, NormalSamples<T>(), out, n);
    } else {
      Run(stream, start, TruncatedNormalSamples<T>(), out, n);
    }
  });
}

}  // namespace weir::gpu
