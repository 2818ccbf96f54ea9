#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "weir/kernels/lib/arguments.h"
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

// The range, nudged so that 0 is a quantization point.
struct Nudged {
  bool empty = false;  // min and max are 0: all results are 0, all gradients pass
  float min = 0, max = 0, scale = 0, inverse = 0, zero = 0;

  Nudged(const Levels& levels, float wanted_min, float wanted_max) {
    empty = wanted_min == 0 && wanted_max == 0;
    scale = (wanted_max - wanted_min) / (levels.high - levels.low);
    inverse = (levels.high - levels.low) / (wanted_max - wanted_min);
    const float exact = levels.low - wanted_min / scale;
    const float point = !(exact >= levels.low) ? levels.low
                        : exact > levels.high  ? levels.high
                                               : std::round(exact);
    min = (levels.low - point) * scale;
    max = (levels.high - point) * scale;
    zero = std::floor(-min * inverse + 0.5f);
  }

  float Clamp(float x) const { return std::max(std::min(x, max), min); }
  float Round(float x) const {
    if (empty) return 0;
    return std::floor((Clamp(x) - min) * inverse - zero + 0.5f) * scale;
  }
  // The same except for rounding of the last bit: FakeQuantWithMinMaxVars divides.
  float RoundByDivision(float x) const {
    if (empty) return 0;
    return std::floor((Clamp(x) - min) / scale - zero + 0.5f) * scale;
  }
  bool Contains(float x) const { return empty || (x >= min && x <= max); }
};

// An op variant: the source of the range, and whether there is one range per channel (the last
// dimension).
struct Form {
  bool range_inputs = false, per_channel = false;
  Levels levels;
  float min = 0, max = 0;  // without range inputs
};

absl::StatusOr<std::vector<Nudged>> ReadRanges(const KernelContext& c, const Form& form, int first,
                                               int64_t channels) {
  if (!form.range_inputs) return std::vector<Nudged>{Nudged(form.levels, form.min, form.max)};
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
  std::vector<Nudged> ranges;
  for (int64_t i = 0; i < channels; ++i) {
    ranges.emplace_back(form.levels, c.input_data<float>(first)[i],
                        c.input_data<float>(first + 1)[i]);
  }
  return ranges;
}

absl::StatusOr<Channels> ChannelsOf(const Shape& shape, const Form& form) {
  if (!form.per_channel) return Channels::Along(shape, -1);
  if (shape.rank() < 1) return InvalidArgument("inputs must have at least rank 1, is a scalar");
  return Channels::Along(shape, shape.rank() - 1);
}

absl::Status RunRound(KernelContext& c, const Form& form) {
  const Tensor& x = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const Channels channels, ChannelsOf(x.shape(), form));
  WEIR_ASSIGN_OR_RETURN(const std::vector<Nudged> ranges, ReadRanges(c, form, 1, channels.count));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  const float* const from = x.data<float>();
  float* const to = out->data<float>();
  const bool divides = form.range_inputs && !form.per_channel;
  channels.ForEach(c.pool(), 4, [&](int64_t i, int64_t channel) {
    const Nudged& range = ranges[channel];
    to[i] = divides ? range.RoundByDivision(from[i]) : range.Round(from[i]);
  });
  return absl::OkStatus();
}

absl::Status RunGrad(KernelContext& c, const Form& form) {
  const Tensor &dy = c.input(0), &x = c.input(1);
  if (dy.shape() != x.shape()) return InvalidArgument("gradient and input must be the same size");
  WEIR_ASSIGN_OR_RETURN(const Channels channels, ChannelsOf(x.shape(), form));
  WEIR_ASSIGN_OR_RETURN(const std::vector<Nudged> ranges, ReadRanges(c, form, 2, channels.count));
  WEIR_ASSIGN_OR_RETURN(Tensor * dx, c.AllocateOutput(0, x.shape()));
  const float *d = dy.data<float>(), *from = x.data<float>();
  float* const to = dx->data<float>();
  channels.ForEach(c.pool(), 2, [&](int64_t i, int64_t channel) {
    to[i] = ranges[channel].Contains(from[i]) ? d[i] : d[i] * 0;
  });
  if (!form.range_inputs) return absl::OkStatus();
  std::vector<double> below(channels.count), above(channels.count);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t channel = i / channels.inner % channels.count;
    const Nudged& range = ranges[channel];
    if (range.empty) continue;
    if (from[i] < range.min) below[channel] += d[i];
    if (from[i] > range.max) above[channel] += d[i];
  }
  for (int k = 0; k < 2; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * end, c.AllocateOutput(1 + k, c.input(2 + k).shape()));
    const std::vector<double>& sums = k == 0 ? below : above;
    std::copy(sums.begin(), sums.end(), end->data<float>());
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
