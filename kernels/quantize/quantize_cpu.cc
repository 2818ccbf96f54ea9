#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/uniform_product.h"

// Quantization to small integers: QuantizeV2 maps a range [min, max] that contains 0 to all values
// of an integer type, Dequantize maps them back. There are three modes:
//   MIN_COMBINED  min becomes the smallest integer, max the largest one, linearly;
//   MIN_FIRST     the same, but min is first rounded to a multiple of the step, so that 0 is
//                 represented exactly;
//   SCALED        a plain factor, the largest for which both ends fit: 0 becomes 0.
// The arithmetic is that of TensorFlow, in float, operation by operation: the integers are equal.
namespace weir {

namespace {

using Quantized = List<qint8, quint8, qint16, quint16, qint32>;
template <class T>
using Word = decltype(T::value);
template <class T>
using Limits = std::numeric_limits<Word<T>>;

enum class Mode { kMinCombined, kMinFirst, kScaled };

struct QuantizeOptions {
  Mode mode = Mode::kMinCombined;
  bool half_to_even = false;
  bool narrow = false;  // SCALED: the smallest integer is unused
  int64_t axis = -1;
  float minimum_range = 0;
};

absl::StatusOr<Mode> ParseMode(const std::string& mode) {
  if (mode == "MIN_COMBINED") return Mode::kMinCombined;
  if (mode == "MIN_FIRST") return Mode::kMinFirst;
  if (mode == "SCALED") return Mode::kScaled;
  return InvalidArgument("Mode string must be 'MIN_COMBINED', 'MIN_FIRST', or 'SCALED', is '", mode,
                         "'");
}

// Returns condition ? a : b without a branch. GCC takes chains of conditional expressions apart
// into jumps, which keep a loop from being vectorized.
float Choose(bool condition, float a, float b) {
  const uint32_t mask = -static_cast<uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(a) & mask) |
                              (std::bit_cast<uint32_t>(b) & ~mask));
}

// Truncates as processors do: a number that does not fit 32 bits (or is NaN) becomes the smallest
// integer. Other numbers keep their low bits; signed types of 8 and 16 bits take the nearest
// integer.
template <class T>
T Truncate(float x) {
  const bool fits = (x >= -2147483648.0f) & (x < 2147483648.0f);
  const int32_t i = static_cast<int32_t>(Choose(fits, x, -2147483648.0f));
  if constexpr (std::is_signed_v<Word<T>> && sizeof(T) < 4)
    return {static_cast<Word<T>>(std::clamp<int32_t>(i, Limits<T>::min(), Limits<T>::max()))};
  return {static_cast<Word<T>>(i)};
}

// NaN stays.
float Clamp(float x, float low, float high) {
  const float bounded = Choose(high < x, high, x);
  return Choose(bounded < low, low, bounded);
}

// Round to integers, halves away from zero or to even, in steps that loops can be vectorized with,
// unlike std::round and std::nearbyint. From 2^23 on every float is an integer. The largest number
// below 1/2 moves halves past the next integer and no other number, as the sum rounds to even.
constexpr float kAllIntegers = 0x1p23f;
float Round(float x) {
  const bool is_small = std::abs(x) < kAllIntegers;  // not NaN either
  const float moved = x + std::copysign(0x1.fffffep-2f, x);
  const float whole = static_cast<float>(static_cast<int32_t>(Choose(is_small, moved, 0)));
  return Choose(is_small, whole, x);
}
float RoundHalfToEven(float x) {
  const float shift = std::copysign(kAllIntegers, x), rounded = (x + shift) - shift;
  return Choose(std::abs(x) < kAllIntegers, rounded, x);
}

// The effective range of one channel, and the scale and offset that follow from it.
struct Range {
  float min = 0, max = 0, scale = 0, offset = 0;
};

template <class T>
absl::StatusOr<Range> RangeOf(const QuantizeOptions& o, float min, float max) {
  if (max < min) return InvalidArgument("input_max_range must be larger than input_min_range.");
  Range r;
  r.min = std::min(0.0f, min);
  const float epsilon = std::max(1.0f, std::max(std::abs(min), std::abs(max))) * o.minimum_range;
  r.max = std::max(0.0f, std::max(max, r.min + epsilon));
  constexpr double kLow = Limits<T>::min(), kHigh = Limits<T>::max();
  switch (o.mode) {
    case Mode::kMinCombined:
      r.scale = static_cast<float>((kHigh - kLow) / static_cast<double>(r.max - r.min));
      r.offset = static_cast<float>((kHigh - kLow + 1) / 2);
      break;
    case Mode::kMinFirst:
      r.scale = r.max == r.min
                    ? 0.0f
                    : static_cast<float>((kHigh - kLow) / static_cast<double>(r.max - r.min));
      r.offset = std::round(r.min * r.scale) - static_cast<float>(kLow);
      break;
    case Mode::kScaled: {
      const float low = static_cast<float>(int64_t{Limits<T>::min()} + (o.narrow ? 1 : 0));
      const float high = static_cast<float>(Limits<T>::max());
      constexpr float kAny = std::numeric_limits<float>::max();
      r.scale =
          std::min(low * r.min > 0 ? low / r.min : kAny, high * r.max > 0 ? high / r.max : kAny);
      r.min = low / r.scale;
      r.max = high / r.scale;
      break;
    }
  }
  return r;
}

template <class T>
void QuantizeAll(ThreadPool& pool, const QuantizeOptions& o, const Channels& channels,
                 const std::vector<Range>& ranges, const float* x, T* out) {
  constexpr double kCost = 1;
  const auto each = [&](const auto& quantize) {
    channels.ForEachRun(pool, kCost, [&](int64_t begin, int64_t end, int64_t channel) {
      const Range range = ranges[channel];
      const float* const from = x + begin;
      T* const to = out + begin;
      ForEachInBlocks(end - begin,
                      [&](int64_t i) { to[i] = Truncate<T>(quantize(from[i], range)); });
    });
  };
  const auto clamp = [](float v, const Range& r) { return Clamp(v, r.min, r.max); };
  constexpr float kLow = std::max(static_cast<float>(Limits<T>::min()), -2147483648.0f);
  constexpr float kHigh = std::min(static_cast<float>(Limits<T>::max()), 2147483520.0f);
  switch (o.mode) {
    case Mode::kMinCombined:
      return each([&](float v, const Range& r) {
        const float scaled = (clamp(v, r) - r.min) * r.scale;
        if constexpr (std::is_signed_v<Word<T>>) return Round(scaled - r.offset);
        return scaled + 0.5f;
      });
    case Mode::kMinFirst:
      // TensorFlow has a separate kernel for quint8, which does not round the range's start.
      if constexpr (std::is_same_v<T, quint8>) {
        return each([&](float v, const Range& r) {
          const float steps = RoundHalfToEven((v - r.min) * r.scale);
          return Choose(steps < kHigh, Choose(steps < kLow, kLow, steps), kHigh);
        });
      }
      return each([&](float v, const Range& r) {
        return Clamp(Round(v * r.scale) - r.offset, kLow, kHigh);
      });
    case Mode::kScaled:
      if (o.half_to_even) {
        return each(
            [&](float v, const Range& r) { return RoundHalfToEven(clamp(v, r) * r.scale); });
      }
      return each([&](float v, const Range& r) { return Round(clamp(v, r) * r.scale); });
  }
}

// Inputs 1 and 2 have one element per channel; they are vectors if there is an axis.
absl::Status CheckRanges(const KernelContext& c, int64_t axis, int64_t channels) {
  const char* const names[] = {"min_range", "max_range"};
  for (int k = 0; k < 2; ++k) {
    const Tensor& range = c.input(1 + k);
    if (axis > -1 && (range.rank() != 1 || range.dim(0) != channels)) {
      return InvalidArgument("If axis is specified, ", names[k],
                             " must be a 1-D tensor whose size matches the axis dimension of the "
                             "input and output tensors, but its shape is ",
                             range.shape().ToString(), " for an axis of size ", channels);
    }
    if (axis <= -1 && range.num_elements() != 1) {
      return InvalidArgument("If axis is not specified, ", names[k],
                             " must contain a single float element, but it contains ",
                             range.num_elements(), " elements");
    }
  }
  return absl::OkStatus();
}

template <class T>
absl::Status RunQuantize(KernelContext& c, const QuantizeOptions& o) {
  const Tensor& x = c.input(0);
  if (o.axis >= x.rank()) {
    return InvalidArgument(
        "Axis is on a zero-based index, so its value must always be less than number of input's "
        "dims, but given axis value was ",
        o.axis, " and input's dims was ", x.rank());
  }
  const Channels channels = Channels::Along(x.shape(), o.axis);
  WEIR_RETURN_IF_ERROR(CheckRanges(c, o.axis, channels.count));
  if (channels.count != 1 && o.mode == Mode::kMinFirst)
    return Unimplemented("MIN_FIRST mode is not implemented for Quantize with axis != -1.");
  std::vector<Range> ranges;
  for (int64_t i = 0; i < channels.count; ++i) {
    WEIR_ASSIGN_OR_RETURN(ranges.emplace_back(),
                          RangeOf<T>(o, c.input_data<float>(1)[i], c.input_data<float>(2)[i]));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  const Shape shape = channels.count == 1 ? Shape() : Shape({channels.count});
  WEIR_ASSIGN_OR_RETURN(Tensor * min, c.AllocateOutput(1, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * max, c.AllocateOutput(2, shape));
  for (int64_t i = 0; i < channels.count; ++i) {
    min->data<float>()[i] = ranges[i].min;
    max->data<float>()[i] = ranges[i].max;
  }
  QuantizeAll(c.pool(), o, channels, ranges, x.data<float>(), out->template data<T>());
  return absl::OkStatus();
}

// An integer x represents the number (x + before) * scale + after.
struct AffineMap {
  float before = 0, scale = 0, after = 0;
};

template <class T>
AffineMap AffineMapOf(const QuantizeOptions& o, float min, float max) {
  constexpr float kLow = static_cast<float>(Limits<T>::min());
  constexpr float kHigh = static_cast<float>(Limits<T>::max());
  switch (o.mode) {
    case Mode::kMinCombined: {
      const float half_range = std::is_signed_v<Word<T>> ? (kHigh - kLow + 1) / 2.0f : 0.0f;
      return {half_range, (max - min) / (kHigh - kLow), min};
    }
    case Mode::kMinFirst: {
      constexpr double kSteps = static_cast<double>(Limits<T>::max()) - Limits<T>::min();
      const float step = static_cast<float>(static_cast<double>(max - min) / kSteps);
      const float low = max == min ? min : std::round(min / step) * step;
      return {0, step, low - kLow * step};
    }
    case Mode::kScaled: {
      const float low = static_cast<float>(int64_t{Limits<T>::min()} + (o.narrow ? 1 : 0));
      return {0, Limits<T>::min() == 0 ? max / kHigh : std::max(min / low, max / kHigh), 0};
    }
  }
  return {};
}

template <class T>
absl::Status RunDequantize(KernelContext& c, const QuantizeOptions& o) {
  const Tensor& x = c.input(0);
  if (o.axis >= x.rank()) {
    return InvalidArgument("Axis must be less than input dimension(", x.rank(), "), got ", o.axis);
  }
  const Channels channels = Channels::Along(x.shape(), o.axis);
  for (int k = 1; k < 3; ++k) {
    if (c.input(k).num_elements() == channels.count) continue;
    return InvalidArgument(k == 1 ? "input_min_tensor" : "input_max_tensor",
                           " must have as many elements as input on the dequantization axis (",
                           o.axis, "), got ", c.input(k).num_elements(), ", expected ",
                           channels.count);
  }
  if (channels.count != 1 && o.mode == Mode::kMinFirst)
    return Unimplemented("MIN_FIRST mode is not implemented for Dequantize with axis != -1.");
  std::vector<AffineMap> maps;
  for (int64_t i = 0; i < channels.count; ++i) {
    maps.push_back(AffineMapOf<T>(o, c.input_data<float>(1)[i], c.input_data<float>(2)[i]));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  const T* const from = x.data<T>();
  const auto fill = [&](auto* to) {
    channels.ForEachRun(c.pool(), 0.5, [&](int64_t begin, int64_t end, int64_t channel) {
      const AffineMap map = maps[channel];
      const T* const in = from + begin;
      auto* const result = to + begin;
      ForEachInBlocks(end - begin, [&](int64_t i) {
        result[i] = (static_cast<float>(in[i].value) + map.before) * map.scale + map.after;
      });
    });
  };
  if (out->dtype() == DT_BFLOAT16) {
    fill(out->data<bfloat16>());
  } else {
    fill(out->data<float>());
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeQuantize(const KernelInit& init) {
  QuantizeOptions o;
  WEIR_ASSIGN_OR_RETURN(o.mode, ParseMode(init.attr<std::string>("mode")));
  o.half_to_even = init.attr<std::string>("round_mode") == "HALF_TO_EVEN";
  if (o.half_to_even && o.mode != Mode::kScaled) {
    return InvalidArgument(
        "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '",
        init.attr<std::string>("mode"), "'.");
  }
  o.narrow = init.attr<bool>("narrow_range");
  o.axis = init.attr<int64_t>("axis");
  o.minimum_range = init.attr<float>("ensure_minimum_range");
  return Kernel([o](KernelContext& c) { return RunQuantize<T>(c, o); });
}

template <class T>
absl::StatusOr<Kernel> MakeDequantize(const KernelInit& init) {
  QuantizeOptions o;
  WEIR_ASSIGN_OR_RETURN(o.mode, ParseMode(init.attr<std::string>("mode")));
  if (init.attr<DataType>("dtype") == DT_BFLOAT16 && o.mode != Mode::kMinCombined) {
    return InvalidArgument("When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '",
                           init.attr<std::string>("mode"), "'");
  }
  o.narrow = init.attr<bool>("narrow_range");
  o.axis = init.attr<int64_t>("axis");
  return Kernel([o](KernelContext& c) { return RunDequantize<T>(c, o); });
}

template <class... Ts>
void AddQuantized(KernelRegistry* r, List<Ts...>) {
  (r->Add("QuantizeV2", kCpu, DataTypeOf<Ts>::value, MakeQuantize<Ts>), ...);
  (r->Add("Dequantize", kCpu, DataTypeOf<Ts>::value, MakeDequantize<Ts>), ...);
}

}  // namespace

void AddQuantizeCpu(KernelRegistry* r) {
  AddQuantized(r, Quantized{});
  AddFakeQuantCpu(r);
  AddQuantizeAndDequantizeCpu(r);
  AddQuantizedImageCpu(r);
  AddQuantizedConcatCpu(r);
  AddQuantizedFusedCpu(r);
  AddQuantizedMathCpu(r);
  AddQuantizedNormCpu(r);
  AddRequantizeCpu(r);
  AddRequantizePerChannelCpu(r);
  AddUniformConvolutionCpu(r);
  AddUniformCpu(r);
  AddUniformDotCpu(r);
}

}  // namespace weir
