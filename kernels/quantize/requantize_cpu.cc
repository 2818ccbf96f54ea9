#include <algorithm>
#include <cmath>
#include <limits>

#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/quantize/fixed_point_map.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/quantized_range.h"

// Requantizes 32-bit results of quantized sums and products to 8-bit numbers of another range:
// number for number as TensorFlow, which computes unsigned numbers in fixed-point arithmetic with
// 16 fraction bits, and signed ones in float.
namespace weir {

namespace {

void Requantize(ThreadPool& pool, const qint32* x, int64_t n, const NumberRange& from,
                const NumberRange& to, quint8* out) {
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
  const FixedPointMap map(scale, offset);
  pool.ParallelFor(n, 0.3, [&](int64_t begin, int64_t end) {
    map.Apply(&x[begin].value, end - begin, &out[begin].value);
  });
}

void Requantize(ThreadPool& pool, const qint32* x, int64_t n, const NumberRange& from,
                const NumberRange& to, qint8* out) {
  const float from_range = from.max - from.min, to_range = to.max - to.min;
  const float step = static_cast<float>(from_range / (kIntegers<qint32> - 1));
  const float min = from_range == 0 ? from.min : std::round(from.min / step) * step;
  const float offset = min - static_cast<float>(kLowest<qint32>) * step;
  const float scale = to_range == 0 ? 0.0f : static_cast<float>((kIntegers<qint8> - 1) / to_range);
  constexpr float kLow = kLowest<qint8>, kHigh = kHighest<qint8>;
  const float low = std::round(to.min * scale) - kLow;
  pool.ParallelFor(n, 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float number = offset + static_cast<float>(x[i].value) * step;
      const float rounded = std::round(number * scale) - low;
      out[i].value = static_cast<int8_t>(ToInt64(std::clamp(rounded, kLow, kHigh)));
    }
  });
}

// Returns the subrange that the numbers use. Its minimum is at most 0.
NumberRange UsedRange(const Tensor& x, const NumberRange& range) {
  int32_t low = std::numeric_limits<int32_t>::max(), high = std::numeric_limits<int32_t>::min();
  const qint32* const from = x.data<qint32>();
  for (const auto [begin, end] : CancellableBlocks(x.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      low = std::min(low, from[i].value);
      high = std::max(high, from[i].value);
    }
  }
  return {std::min(0.0f, QuantizedToFloat<qint32>(low, range)),
          QuantizedToFloat<qint32>(high, range)};
}

template <class T>
absl::Status WriteRequantized(KernelContext& c, const NumberRange& from, const NumberRange& to) {
  const Tensor& x = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  Requantize(c.pool(), x.data<qint32>(), x.num_elements(), from, to, out->data<T>());
  return WriteRange(c, 1, to);
}

absl::Status RunShrink(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 1));
  return WriteRequantized<quint8>(c, range, UsedRange(c.input(0), range));
}

template <class T>
absl::Status RunRequantize(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const NumberRange from, ReadRange(c, 1));
  WEIR_ASSIGN_OR_RETURN(const NumberRange to, ReadRange(c, 3));
  if (!(to.min <= 0)) return InvalidArgument("requested_output_min must be <= 0, but got ", to.min);
  if (!(to.max >= to.min)) {
    return InvalidArgument("requested_output_max must be >= requested_output_min, but got ", to.max,
                           " and ", to.min);
  }
  return WriteRequantized<T>(c, from, to);
}

absl::Status RunRange(KernelContext& c) {
  if (c.input(1).num_elements() == 0) return InvalidArgument("Input min must not be empty.");
  if (c.input(2).num_elements() == 0) return InvalidArgument("Input max must not be empty.");
  const NumberRange range = {*c.input_data<float>(1), *c.input_data<float>(2)};
  return WriteRange(c, 0, UsedRange(c.input(0), range));
}

}  // namespace

void AddRequantizeCpu(KernelRegistry* r) {
  const auto types = [](DataType out) {
    return TypeConstraints{{"Tinput", DT_QINT32}, {"out_type", out}};
  };
  r->Add("QuantizeDownAndShrinkRange", kCpu, types(DT_QUINT8), RunShrink);
  r->Add("Requantize", kCpu, types(DT_QINT8), RunRequantize<qint8>);
  r->Add("Requantize", kCpu, types(DT_QUINT8), RunRequantize<quint8>);
  r->Add("RequantizationRange", kCpu, TypeConstraints{{"Tinput", DT_QINT32}}, RunRange);
}

}  // namespace weir
