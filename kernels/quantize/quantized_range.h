#ifndef WEIR_KERNELS_QUANTIZE_QUANTIZED_RANGE_H_
#define WEIR_KERNELS_QUANTIZE_QUANTIZED_RANGE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "weir/core/runtime/kernel.h"

// Integers that represent the numbers of a range, and arithmetic on them. The smallest integer of a
// type represents the range's minimum (rounded to a multiple of the step, so that 0 is exact), the
// largest integer its maximum. The arithmetic is TensorFlow's, operation by operation: the integers
// are equal.
namespace weir {

struct NumberRange {
  float min = 0, max = 0;
  friend bool operator==(const NumberRange&, const NumberRange&) = default;
};

// Reads the range from inputs `first` and `first` + 1, which must be scalars.
absl::StatusOr<NumberRange> ReadRange(const KernelContext& c, int first);
// Reads it from tensors of one element each and any rank, which some ops accept, as in TensorFlow.
absl::StatusOr<NumberRange> ReadSingleRange(const KernelContext& c, int first);
// Returns INVALID_ARGUMENT if the range read from these inputs is empty.
absl::Status CheckNotEmpty(const KernelContext& c, int first, const NumberRange& range);
absl::Status WriteRange(KernelContext& c, int first, const NumberRange& range);

template <class T>
using Word = decltype(T::value);
template <class T>
inline constexpr int64_t kLowest = std::numeric_limits<Word<T>>::min();
template <class T>
inline constexpr int64_t kHighest = std::numeric_limits<Word<T>>::max();
// The number of integers.
template <class T>
inline constexpr double kIntegers = static_cast<double>(kHighest<T> - kLowest<T> + 1);

// Converts a double to an integer, clamped to values far outside 32 bits; NaN becomes 0.
inline int64_t ToInt64(double x) {
  constexpr double kLimit =
      4611686018427387904.0;  // 2^62, so that the sum of two such integers does not overflow
  return std::isnan(x) ? 0 : static_cast<int64_t>(std::clamp(x, -kLimit, kLimit));
}

template <class T>
float QuantizedToFloat(int64_t q, const NumberRange& r) {
  if (r.min == r.max) return r.min;
  const double range = static_cast<double>(r.max - r.min) * (kIntegers<T> / (kIntegers<T> - 1.0));
  const double step = range / kIntegers<T>;
  const float rounded_step = static_cast<float>(step);
  const double low = static_cast<double>(std::round(r.min / rounded_step)) * rounded_step;
  return static_cast<float>(low + static_cast<double>(q - kLowest<T>) * step);
}

// May be outside T's range.
template <class T>
int64_t FloatToQuantizedUnclamped(float x, const NumberRange& r) {
  if (r.min == r.max) return kLowest<T>;
  const double range = static_cast<double>(r.max - r.min) * (kIntegers<T> / (kIntegers<T> - 1.0));
  const double scale = kIntegers<T> / range;
  return ToInt64(std::round(x * scale) - std::round(r.min * scale)) + kLowest<T>;
}
template <class T>
int64_t FloatToQuantized(float x, const NumberRange& r) {
  return std::clamp(FloatToQuantizedUnclamped<T>(x, r), kLowest<T>, kHighest<T>);
}

// Returns the integer that represents 0; outside T if the range does not contain 0.
template <class T>
int32_t ZeroPoint(const NumberRange& r) {
  return static_cast<int32_t>(
      std::clamp(FloatToQuantizedUnclamped<T>(0, r), kLowest<qint32>, kHighest<qint32>));
}

// Returns the range of 32-bit integers that are sums of products of a T1 and a T2, minus their zero
// points.
template <class T1, class T2>
NumberRange RangeOfProducts(const NumberRange& a, const NumberRange& b) {
  const float step_a = (a.max - a.min) / static_cast<float>(kHighest<T1> - kLowest<T1>);
  const float step_b = (b.max - b.min) / static_cast<float>(kHighest<T2> - kLowest<T2>);
  const float step = step_a * step_b;
  return {step * static_cast<float>(kLowest<qint32>), step * static_cast<float>(kHighest<qint32>)};
}

// Returns the range of 32-bit integers that are sums of numbers of both ranges, with this many
// spare bits.
inline NumberRange RangeOfSums(const NumberRange& a, const NumberRange& b, int bits) {
  const float biggest = std::max(std::max(std::abs(a.min), std::abs(a.max)),
                                 std::max(std::abs(b.min), std::abs(b.max))) *
                        static_cast<float>(1 << bits);
  return {-biggest, biggest};
}

}  // namespace weir

#endif  // WEIR_KERNELS_QUANTIZE_QUANTIZED_RANGE_H_
