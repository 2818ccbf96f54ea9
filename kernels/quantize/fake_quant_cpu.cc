#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/quantize/fake_quant_loops.h"
#include "weir/kernels/quantize/quantize.h"

// Simulates quantization for quantization-aware training: float in, float out. Source: Jacob et
// al., "Quantization and training of neural networks for efficient integer-arithmetic-only
// inference", CVPR 2018.
//
// The range [min, max] is divided into 2^num_bits - 1 steps (one less if narrow) and shifted so
// that 0 is a quantization point; numbers are clamped and rounded to a point. Gradients pass where
// a number was in the range; otherwise they go to the bound that the number exceeded.
namespace weir {

namespace {

struct Levels {
  float low = 0, high = 255;
  static absl::StatusOr<Levels> Read(const KernelInit& init) {
    const int64_t bits = init.attr<int64_t>("num_bits");
    if (bits < 2 || bits > 16)
      return InvalidArgument("num_bits must be between 2 and 16, inclusive");
    return Levels{init.attr<bool>("narrow_range") ? 1.0f : 0.0f,
                  static_cast<float>((1 << bits) - 1)};
  }
};

// Returns the range, nudged so that 0 is a quantization point.
FakeQuantRange Nudge(const Levels& levels, float wanted_min, float wanted_max) {
  FakeQuantRange r;
  r.empty = wanted_min == 0 && wanted_max == 0;
  r.scale = (wanted_max - wanted_min) / (levels.high - levels.low);
  r.inverse = (levels.high - levels.low) / (wanted_max - wanted_min);
  const float exact = levels.low - wanted_min / r.scale;
  const float point = !(exact >= levels.low) ? levels.low
                      : exact > levels.high  ? levels.high
                                             : std::round(exact);
  r.min = (levels.low - point) * r.scale;
  r.max = (levels.high - point) * r.scale;
  r.zero = std::floor(-r.min * r.inverse + 0.5f);
  return r;
}

// An op variant: the source of the range, and whether there is one range per channel (the last
// dimension).
struct Form {
  bool range_inputs = false, per_channel = false;
  Levels levels;
  float min = 0, max = 0;  // without range inputs
};

absl::StatusOr<FakeQuantRanges> ReadRanges(const KernelContext& c, const Form& form, int first,
                                           int64_t channels) {
  if (!form.range_inputs) return FakeQuantRanges({Nudge(form.levels, form.min, form.max)});
  const Shape shape = form.per_channel ? Shape({channels}) : Shape();
  const char* const names[] = {"min", "max"};
  for (int k = 0; k < 2; ++k) {
    const Tensor& t = c.input(first + k);
    if (t.rank() != shape.rank()) {
      return InvalidArgument("`", names[k], "` must be rank ", shape.rank(), " but is rank ",
                             t.rank());
    }
    if (t.shape() != shape) {
      return InvalidArgument(names[k], " has incorrect size, expected ", channels, " was ",
                             t.num_elements());
    }
  }
  std::vector<FakeQuantRange> ranges;
  for (int64_t i = 0; i < channels; ++i) {
    ranges.push_back(
        Nudge(form.levels, c.input_data<float>(first)[i], c.input_data<float>(first + 1)[i]));
  }
  return FakeQuantRanges(ranges);
}

// One channel, or as many as the last dimension has.
absl::StatusOr<int64_t> CountChannels(const Shape& shape, const Form& form) {
  if (!form.per_channel) return 1;
  if (shape.rank() < 1) return InvalidArgument("inputs must have at least rank 1, is a scalar");
  return shape.dim(shape.rank() - 1);
}

absl::Status RunRound(KernelContext& c, const Form& form) {
  const Tensor& x = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const int64_t channels, CountChannels(x.shape(), form));
  WEIR_ASSIGN_OR_RETURN(const FakeQuantRanges ranges, ReadRanges(c, form, 1, channels));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  const bool divides = form.range_inputs && !form.per_channel;
  c.pool().ParallelFor(
      x.num_elements(), 0.3,
      [&](int64_t begin, int64_t end) {
        RoundToPoints(ranges, divides, x.data<float>(), out->data<float>(), begin, end);
      },
      64);
  return absl::OkStatus();
}

// The gradients of the ranges' ends: sums in double, of blocks that depend on the size alone. Each
// adds as many numbers at a time as a period has.
std::vector<double> SumOutOfRange(ThreadPool& pool, const FakeQuantRanges& ranges, const float* dy,
                                  const float* x, int64_t n) {
  constexpr int64_t kMostBlocks = 64, kLeastElements = 16384;
  const int64_t period = ranges.period(), channels = ranges.channels();
  const int64_t periods = (n + period - 1) / period;
  const int64_t block = period * std::max((periods + kMostBlocks - 1) / kMostBlocks,
                                          (kLeastElements + period - 1) / period);
  const int64_t blocks = (n + block - 1) / block;
  std::vector<double> partial(2 * period * blocks), sums(2 * channels);
  pool.ParallelFor(blocks, 0.4 * static_cast<double>(block), [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      double* const below = partial.data() + 2 * period * b;
      AddOutOfRange(ranges, dy, x, b * block, std::min(n, (b + 1) * block), below, below + period);
    }
  });
  for (int64_t b = 0; b < 2 * blocks; ++b) {
    double* const to = sums.data() + b % 2 * channels;
    for (int64_t i = 0; i < period; ++i) to[i % channels] += partial[b * period + i];
  }
  return sums;
}

absl::Status RunGrad(KernelContext& c, const Form& form) {
  const Tensor &dy = c.input(0), &x = c.input(1);
  if (dy.shape() != x.shape()) return InvalidArgument("gradient and input must be the same size");
  WEIR_ASSIGN_OR_RETURN(const int64_t channels, CountChannels(x.shape(), form));
  WEIR_ASSIGN_OR_RETURN(const FakeQuantRanges ranges, ReadRanges(c, form, 2, channels));
  WEIR_ASSIGN_OR_RETURN(Tensor * dx, c.AllocateOutput(0, x.shape()));
  const float *const d = dy.data<float>(), *const from = x.data<float>();
  c.pool().ParallelFor(
      x.num_elements(), 0.3,
      [&](int64_t begin, int64_t end) {
        PassInRange(ranges, d, from, dx->data<float>(), begin, end);
      },
      64);
  if (!form.range_inputs) return absl::OkStatus();
  const std::vector<double> sums = SumOutOfRange(c.pool(), ranges, d, from, x.num_elements());
  for (int k = 0; k < 2; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * end, c.AllocateOutput(1 + k, c.input(2 + k).shape()));
    std::copy_n(sums.begin() + k * channels, channels, end->data<float>());
  }
  return absl::OkStatus();
}

KernelFactory Factory(bool range_inputs, bool per_channel,
                      absl::Status (*run)(KernelContext&, const Form&)) {
  return [=](const KernelInit& init) -> absl::StatusOr<Kernel> {
    Form form{range_inputs, per_channel};
    WEIR_ASSIGN_OR_RETURN(form.levels, Levels::Read(init));
    if (!range_inputs) {
      form.min = init.attr<float>("min");
      form.max = init.attr<float>("max");
      if (!(form.min < form.max)) {
        return InvalidArgument("min has to be smaller than max, was: ", form.min, " >= ", form.max);
      }
    }
    return Kernel([form, run](KernelContext& c) { return run(c, form); });
  };
}

}  // namespace

void AddFakeQuantCpu(KernelRegistry* r) {
  const auto add = [&](const std::string& op, bool range_inputs, bool per_channel) {
    r->Add(op, kCpu, Factory(range_inputs, per_channel, RunRound)).InPlace({0});
    r->Add(op + "Gradient", kCpu, Factory(range_inputs, per_channel, RunGrad));
  };
  add("FakeQuantWithMinMaxArgs", false, false);
  add("FakeQuantWithMinMaxVars", true, false);
  add("FakeQuantWithMinMaxVarsPerChannel", true, true);
}

}  // namespace weir
