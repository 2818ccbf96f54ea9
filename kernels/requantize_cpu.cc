#include <algorithm>
#include <cmath>
#include <limits>

#include "weir/kernels/arguments.h"
#include "weir/kernels/quantize.h"

// 32-bit results of quantised sums and products as 8-bit numbers of another range, in fixed-point
// arithmetic with 16 bits after the point: number for number that of TensorFlow.
namespace weir {

namespace {

struct RangeOf32 {
  float min, max;
};

// The number that a 32-bit integer of a range stands for. The smallest one is min rounded to a
// multiple of the step.
float Widen(int32_t x, const RangeOf32& r) {
  if (r.min == r.max) return r.min;
  constexpr double kSteps = 4294967296.0;
  const double step = static_cast<double>(r.max - r.min) * (kSteps / (kSteps - 1)) / kSteps;
  const float rounded_step = static_cast<float>(step);
  const double low = static_cast<double>(std::round(r.min / rounded_step)) * rounded_step;
  const double above = static_cast<double>(x) - std::numeric_limits<int32_t>::min();
  return static_cast<float>(low + above * step);
}

// A double as an integer; what does not fit is cut off.
int64_t ToInt64(double x) {
  constexpr double kLimit = 9223372036854774784.0;  // the biggest double below 2^63
  return std::isnan(x) ? 0 : static_cast<int64_t>(std::clamp(x, -kLimit, kLimit));
}

void Requantize(ThreadPool& pool, const qint32* x, int64_t n, const RangeOf32& from,
                const RangeOf32& to, quint8* out) {
  constexpr int kPoint = 16;
  constexpr double kOne = 1 << kPoint;
  const float from_range = from.max - from.min, to_range = to.max - to.min;
  const bool empty = to_range == 0;
  const float reciprocal = empty ? 0.0f : static_cast<float>(255.0 / to_range);
  const float center = static_cast<float>((from.min + from.max) / 2.0);
  const int64_t scale = empty ? 0 : ToInt64(255.0 * kOne * from_range / to_range);
  const int64_t shift = ToInt64(center * reciprocal * static_cast<float>(kOne));
  const int64_t low = empty ? 0 : ToInt64(std::round(kOne * (to.min * 255.0) / to_range));
  const __int128 offset = static_cast<__int128>(shift) - low + (1 << (kPoint - 1));
  pool.ParallelFor(n, 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const __int128 scaled = (static_cast<__int128>(x[i].value) * scale) >> 32;
      const __int128 result = (scaled + offset) >> kPoint;
      out[i].value = static_cast<uint8_t>(std::clamp<__int128>(result, 0, 255));
    }
  });
}

// The scalars at inputs `first` and `first` + 1.
absl::StatusOr<RangeOf32> ReadRange(const KernelContext& c, int first, absl::string_view min,
                                    absl::string_view max) {
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(first), 0, min));
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(first + 1), 0, max));
  return RangeOf32{c.input(first).scalar<float>(), c.input(first + 1).scalar<float>()};
}

// The part of the range that the numbers use; 0 belongs to it from above.
RangeOf32 UsedRange(const Tensor& x, const RangeOf32& range) {
  int32_t low = std::numeric_limits<int32_t>::max(), high = std::numeric_limits<int32_t>::min();
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    low = std::min(low, x.data<qint32>()[i].value);
    high = std::max(high, x.data<qint32>()[i].value);
  }
  return {std::min(0.0f, Widen(low, range)), Widen(high, range)};
}

absl::Status WriteRange(KernelContext& c, int first, const RangeOf32& range) {
  WEIR_ASSIGN_OR_RETURN(Tensor * min, c.AllocateOutput(first, Shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * max, c.AllocateOutput(first + 1, Shape()));
  *min->data<float>() = range.min;
  *max->data<float>() = range.max;
  return absl::OkStatus();
}

absl::Status WriteRequantized(KernelContext& c, const RangeOf32& from, const RangeOf32& to) {
  const Tensor& x = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  Requantize(c.pool(), x.data<qint32>(), x.num_elements(), from, to, out->data<quint8>());
  return WriteRange(c, 1, to);
}

absl::Status RunShrink(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const RangeOf32 range, ReadRange(c, 1, "input_min", "input_max"));
  return WriteRequantized(c, range, UsedRange(c.input(0), range));
}

absl::Status RunRequantize(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const RangeOf32 from, ReadRange(c, 1, "input_min", "input_max"));
  WEIR_ASSIGN_OR_RETURN(const RangeOf32 to,
                        ReadRange(c, 3, "requested_output_min", "requested_output_max"));
  if (!(to.min <= 0)) return InvalidArgument("requested_output_min must be <= 0, but got ", to.min);
  if (!(to.max >= to.min)) {
    return InvalidArgument("requested_output_max must be >= requested_output_min, but got ", to.max,
                           " and ", to.min);
  }
  return WriteRequantized(c, from, to);
}

absl::Status RunRange(KernelContext& c) {
  if (c.input(1).num_elements() == 0) return InvalidArgument("Input min must not be empty.");
  if (c.input(2).num_elements() == 0) return InvalidArgument("Input max must not be empty.");
  const RangeOf32 range = {*c.input_data<float>(1), *c.input_data<float>(2)};
  return WriteRange(c, 0, UsedRange(c.input(0), range));
}

}  // namespace

void AddRequantizeCpu(KernelRegistry* r) {
  const TypeConstraints types = {{"Tinput", DT_QINT32}, {"out_type", DT_QUINT8}};
  r->Add("QuantizeDownAndShrinkRange", kCpu, types, RunShrink);
  r->Add("Requantize", kCpu, types, RunRequantize);
  r->Add("RequantizationRange", kCpu, TypeConstraints{{"Tinput", DT_QINT32}}, RunRange);
}

}  // namespace weir
