#include <algorithm>
#include <cmath>
#include <vector>

#include "weir/kernels/array/concat_layout.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/quantized_range.h"

// Concatenates quantized tensors, each requantized to a range that contains all ranges, and
// reshapes.
namespace weir {

namespace {

// A requantization of integers of type T from one range to another, in float.
template <class T>
class Rescale {
 public:
  Rescale(const NumberRange& from, const NumberRange& to) : same_(from == to) {
    step_ = static_cast<float>(static_cast<double>(from.max - from.min) / (kIntegers<T> - 1));
    const float low = from.min == from.max ? from.min : std::round(from.min / step_) * step_;
    offset_ = low - static_cast<float>(kLowest<T>) * step_;
    if (to.min != to.max)
      scale_ = static_cast<float>((kIntegers<T> - 1) / static_cast<double>(to.max - to.min));
    shift_ = std::round(to.min * scale_) - static_cast<float>(kLowest<T>);
  }
  T operator()(T q) const {
    if (same_) return q;
    const float x = offset_ + static_cast<float>(q.value) * step_;
    // The largest float below 2^31, for T of 32 bits.
    constexpr float kHigh = std::min(static_cast<float>(kHighest<T>), 2147483520.0f);
    const float y = std::round(x * scale_) - shift_;
    return {static_cast<Word<T>>(std::min(kHigh, std::max(static_cast<float>(kLowest<T>), y)))};
  }

 private:
  const bool same_;
  float step_ = 0, offset_ = 0, scale_ = 0, shift_ = 0;
};

// Reads each input's range, one number each at inputs `mins` and `mins + n` on: of any rank if the
// axis is the first input, otherwise scalars, as in TensorFlow.
absl::StatusOr<std::vector<NumberRange>> ReadRanges(const KernelContext& c, int mins, int n,
                                                    bool any_rank) {
  std::vector<NumberRange> ranges;
  const auto is_one = [any_rank](const Tensor& t) {
    return any_rank ? t.num_elements() == 1 : t.rank() == 0;
  };
  for (int i = 0; i < n; ++i) {
    const Tensor &min = c.input(mins + i), &max = c.input(mins + n + i);
    if (!is_one(min) || !is_one(max)) {
      return InvalidArgument("The ranges must be scalars, but input_mins and input_maxes of input ",
                             i, " have shapes ", min.shape().ToString(), " and ",
                             max.shape().ToString());
    }
    ranges.push_back({min.scalar<float>(), max.scalar<float>()});
  }
  return ranges;
}

// Returns the range that contains all ranges and 0; symmetric for signed integers.
template <class T>
NumberRange RangeOfAll(const std::vector<NumberRange>& ranges) {
  NumberRange all = {0, ranges[0].max};
  for (const NumberRange& r : ranges) all = {std::min(all.min, r.min), std::max(all.max, r.max)};
  if (kLowest<T> == 0) return all;
  const float biggest = std::max(std::abs(all.min), std::abs(all.max));
  return {-biggest, biggest};
}

template <class T, bool kAxisFirst>
absl::Status Concat(KernelContext& c) {
  const int n = (c.num_inputs() - 1) / 3, first = kAxisFirst ? 1 : 0, axis = kAxisFirst ? 0 : n;
  if (c.input(axis).rank() != 0) {
    return InvalidArgument("Concat dim tensor should be a scalar integer, but got shape ",
                           c.input(axis).shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<NumberRange> ranges, ReadRanges(c, n + 1, n, kAxisFirst));
  WEIR_ASSIGN_OR_RETURN(const ConcatLayout join, ConcatLayout::Of(c, first, n, axis));
  const NumberRange range = RangeOfAll<T>(ranges);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, join.shape));
  int64_t column = 0;
  for (int i = 0; i < n; ++i) {
    const Rescale<T> rescale(ranges[i], range);
    const T* const part = c.input_data<T>(first + i);
    const int64_t width = join.widths[i];
    c.pool().ParallelFor(out->num_elements() == 0 ? 0 : join.rows, static_cast<double>(width),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t row = begin; row < end; ++row) {
                             std::transform(part + row * width, part + (row + 1) * width,
                                            out->data<T>() + row * join.row + column, rescale);
                           }
                         });
    column += width;
  }
  return WriteRange(c, 1, range);
}

absl::Status Reshape(KernelContext& c) {
  for (const int i : {2, 3}) {
    if (c.input(i).num_elements() == 1 && c.input(i).rank() <= 1) continue;
    return InvalidArgument(i == 2 ? "input_min" : "input_max",
                           " must be a scalar or a vector of 1 element");
  }
  WEIR_RETURN_IF_ERROR(RunReshape(c));
  return WriteRange(c, 1, {*c.input_data<float>(2), *c.input_data<float>(3)});
}

template <class T>
void AddConcat(KernelRegistry* r) {
  r->Add("QuantizedConcat", kCpu, DataTypeOf<T>::value, Concat<T, true>);
  r->Add("QuantizedConcatV2", kCpu, DataTypeOf<T>::value, Concat<T, false>);
}

}  // namespace

void AddQuantizedConcatCpu(KernelRegistry* r) {
  AddConcat<qint8>(r);
  AddConcat<quint8>(r);
  AddConcat<qint32>(r);
  r->Add("QuantizedReshape", kCpu, Reshape).Aliases({0});
}

}  // namespace weir
