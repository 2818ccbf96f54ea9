#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/quantize/quantize.h"

// Rounds numbers to values that a quantized number can represent, without ever storing one. The
// range, given or that of the data, is scaled to integers of `num_bits`, with 0 mapped to 0;
// numbers are clamped, rounded, and scaled back.
namespace weir {

namespace {

struct RoundOptions {
  bool is_signed = true;
  int64_t bits = 8;
  bool range_given = false;
  bool half_up = false;  // else half to even
  bool narrow = false;   // the integers are symmetric: the smallest one is unused
  int64_t axis = -1;
  float min = 0, max = 0;  // of the first version, whose range is in attributes
};

absl::Status CheckBits(const RoundOptions& o) {
  if (o.bits > 0 && o.bits < (o.is_signed ? 62 : 63)) return absl::OkStatus();
  return InvalidArgument("num_bits is out of range: ", o.bits, " with signed_input ",
                         o.is_signed ? "true" : "false");
}

template <class T>
struct Grid {
  T min, max, scale, inverse;
};

// The finest grid whose integers cover [min, max]. The side that determines the step keeps its
// bound; the other bound follows from the step.
template <class T>
Grid<T> GridOf(const RoundOptions& o, T min, T max) {
  const int64_t half = int64_t{1} << (o.bits - 1);
  const int64_t low = !o.is_signed ? 0 : o.narrow ? 1 - half : -half;
  const int64_t high = o.is_signed ? half - 1 : 2 * half - 1;
  const T low_t = static_cast<T>(low), high_t = static_cast<T>(high);
  constexpr T kAny = std::numeric_limits<T>::max();
  const T from_min = low_t * min > 0 ? low_t / min : kAny;
  const T from_max = high_t * max > 0 ? high_t / max : kAny;
  if (from_min < from_max) {
    const T inverse = min / low_t;
    return {min, high_t * inverse, from_min, inverse};
  }
  const T inverse = max / high_t;
  return {low_t * inverse, max, from_max, inverse};
}

// Computes the minimum and the maximum of each channel.
template <class T>
std::vector<std::pair<T, T>> DataRanges(const Channels& channels, const T* x) {
  constexpr T kHuge = std::numeric_limits<T>::max();
  std::vector<std::pair<T, T>> ranges(channels.count, {kHuge, -kHuge});
  for (int64_t row = 0; row < channels.outer * channels.count; ++row) {
    auto& [min, max] = ranges[row % channels.count];
    for (const T* at = x + row * channels.inner; at < x + (row + 1) * channels.inner; ++at) {
      min = std::min(min, *at);
      max = std::max(max, *at);
    }
  }
  return ranges;
}

// Reads inputs 1 and 2, if the range is given by tensors. The third version, which has a fourth
// input, takes one number of any rank, as in TensorFlow.
template <class T>
absl::StatusOr<std::vector<std::pair<T, T>>> GivenRanges(const KernelContext& c, int64_t axis,
                                                         int64_t count) {
  constexpr int first = 1;
  const Shape shape = axis < 0 ? Shape() : Shape({count});
  for (int i = first; i < first + 2; ++i) {
    if (axis < 0 && c.num_inputs() == 4 && c.input(i).num_elements() == 1) continue;
    WEIR_RETURN_IF_ERROR(CheckShape(c.input(i), shape, i == first ? "input_min" : "input_max"));
  }
  std::vector<std::pair<T, T>> ranges;
  for (int64_t i = 0; i < count; ++i)
    ranges.emplace_back(c.input_data<T>(first)[i], c.input_data<T>(first + 1)[i]);
  if (axis < 0 && !(ranges[0].first <= ranges[0].second)) {
    return InvalidArgument("Invalid range: input_min ", ranges[0].first, " > input_max ",
                           ranges[0].second);
  }
  return ranges;
}

absl::Status CheckAxis(int64_t axis, int rank) {
  if (axis >= -1 && axis < rank) return absl::OkStatus();
  return InvalidArgument("Axis should be -1 or 0 or a positive value less than ", rank,
                         " but given axis value was ", axis);
}

template <class T>
absl::Status RunRound(KernelContext& c, const RoundOptions& o) {
  const Tensor& x = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckAxis(o.axis, x.rank()));
  const Channels channels = Channels::Along(x.shape(), o.axis);
  std::vector<std::pair<T, T>> ranges;
  if (!o.range_given) {
    ranges = DataRanges(channels, x.data<T>());
  } else if (c.num_inputs() == 1) {
    ranges.emplace_back(static_cast<T>(o.min), static_cast<T>(o.max));
  } else {
    WEIR_ASSIGN_OR_RETURN(ranges, GivenRanges<T>(c, o.axis, channels.count));
  }
  std::vector<Grid<T>> grids;
  for (const auto& [min, max] : ranges) grids.push_back(GridOf(o, min, max));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  const T* const from = x.data<T>();
  T* const to = out->template data<T>();
  channels.ForEach(c.pool(), 4, [&](int64_t i, int64_t channel) {
    const Grid<T>& g = grids[channel];
    const T value = o.range_given ? std::max(std::min(from[i], g.max), g.min) : from[i];
    const T scaled = value * g.scale;
    to[i] = (o.half_up ? std::floor(scaled + T(0.5)) : std::nearbyint(scaled)) * g.inverse;
  });
  return absl::OkStatus();
}

// The third version has the number of bits as an input.
template <class T>
absl::Status RunRoundToBits(KernelContext& c, RoundOptions o) {
  const Tensor& bits = c.input(3);
  if (bits.rank() != 0) {
    return InvalidArgument(
        "Invalid shape. The `num_bits` tensor should be a scalar. Got dimensions: ", bits.rank());
  }
  o.bits = bits.scalar<int32_t>();
  WEIR_RETURN_IF_ERROR(CheckBits(o));
  return RunRound<T>(c, o);
}

// Gradients pass where the number is inside its range; the bounds of the range get none.
template <class T>
absl::Status RunGrad(KernelContext& c, int64_t axis) {
  const Tensor &dy = c.input(0), &x = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckAxis(axis, x.rank()));
  if (dy.shape() != x.shape()) return InvalidArgument("gradient and input must be the same size");
  const Channels channels = Channels::Along(x.shape(), axis);
  const Shape shape = axis < 0 ? Shape() : Shape({channels.count});
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(2), shape, "input_min"));
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(3), shape, "input_max"));
  WEIR_ASSIGN_OR_RETURN(Tensor * dx, c.AllocateOutput(0, x.shape()));
  for (int k = 1; k < 3; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * end, c.AllocateOutput(k, shape));
    std::fill_n(end->template data<T>(), end->num_elements(), T(0));
  }
  const T *min = c.input_data<T>(2), *max = c.input_data<T>(3), *from = x.data<T>();
  channels.ForEach(c.pool(), 2, [&](int64_t i, int64_t channel) {
    const bool inside = from[i] >= min[channel] && from[i] <= max[channel];
    dx->template data<T>()[i] = dy.data<T>()[i] * T(inside ? 1 : 0);
  });
  return absl::OkStatus();
}

RoundOptions ReadOptions(const KernelInit& init) {
  const Node& node = init.node;
  RoundOptions o;
  o.is_signed = init.attr<bool>("signed_input");
  o.range_given = init.attr<bool>("range_given");
  o.bits = node.attr_or<int64_t>("num_bits", 8);
  o.half_up = node.attr_or<std::string>("round_mode", "") == "HALF_UP";
  o.narrow = node.attr_or<bool>("narrow_range", false);
  o.axis = node.attr_or<int64_t>("axis", -1);
  o.min = node.attr_or<float>("input_min", 0);
  o.max = node.attr_or<float>("input_max", 0);
  return o;
}

template <class T>
absl::StatusOr<Kernel> MakeRound(const KernelInit& init) {
  const RoundOptions o = ReadOptions(init);
  WEIR_RETURN_IF_ERROR(CheckBits(o));
  if (o.range_given && !(o.min <= o.max))
    return InvalidArgument("Invalid range: input_min ", o.min, " > input_max ", o.max);
  return Kernel([o](KernelContext& c) { return RunRound<T>(c, o); });
}

template <class T>
absl::StatusOr<Kernel> MakeRoundToBits(const KernelInit& init) {
  return Kernel([o = ReadOptions(init)](KernelContext& c) { return RunRoundToBits<T>(c, o); });
}

template <class T>
absl::StatusOr<Kernel> MakeGrad(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("axis");
  return Kernel([axis](KernelContext& c) { return RunGrad<T>(c, axis); });
}

template <class T>
void AddRounding(KernelRegistry* r) {
  const DataType type = DataTypeOf<T>::value;
  for (const char* op :
       {"QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"}) {
    r->Add(op, kCpu, type, MakeRound<T>);
  }
  r->Add("QuantizeAndDequantizeV3", kCpu, type, MakeRoundToBits<T>);
  r->Add("QuantizeAndDequantizeV4Grad", kCpu, type, MakeGrad<T>);
}

}  // namespace

void AddQuantizeAndDequantizeCpu(KernelRegistry* r) {
  AddRounding<float>(r);
  AddRounding<double>(r);
}

}  // namespace weir
