#ifndef WEIR_KERNELS_MATH_REDUCERS_H_
#define WEIR_KERNELS_MATH_REDUCERS_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "weir/core/tensor/numeric_types.h"
#include "weir/kernels/lib/scalar_math.h"

// Reducers for kernels of all devices: an accumulator type, its neutral value, the value of an
// element, the merge of two accumulators, and the result.
//
// Floating-point sums and products accumulate in double. Integers accumulate modulo 2^64 and are
// truncated to their width at the end, which is equivalent to wrapping around at each step.
namespace weir {

// The vectorized loop over floats and doubles that computes the reduction.
enum class RowKind { kSum, kProduct, kSquares, kMax, kMin };

namespace internal {
template <class T>
struct Accumulator {
  using type = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
};
template <class T>
struct Accumulator<std::complex<T>> {
  using type = std::complex<double>;
};
}  // namespace internal

template <class T>
struct SumReduction {
  using Acc = typename internal::Accumulator<T>::type;
  static constexpr RowKind kRow = RowKind::kSum;
  WEIR_HD static Acc Neutral() { return Acc(0); }
  WEIR_HD static Acc Value(T x) { return static_cast<Acc>(x); }
  WEIR_HD static Acc Merge(Acc a, Acc b) { return a + b; }
  WEIR_HD static T Result(Acc a, int64_t) { return static_cast<T>(a); }
};

template <class T>
struct MeanReduction : SumReduction<T> {
  using Acc = typename internal::Accumulator<T>::type;
  WEIR_HD static T Result(Acc a, int64_t count) {
    if constexpr (std::is_integral_v<T>) {
      if (count == 0) return T(0);
      if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<int64_t>(a) / count);
      return static_cast<T>(a / static_cast<uint64_t>(count));
    } else {
      return static_cast<T>(a / static_cast<double>(count));
    }
  }
};

template <class T>
struct ProdReduction : SumReduction<T> {
  using Acc = typename internal::Accumulator<T>::type;
  static constexpr RowKind kRow = RowKind::kProduct;
  WEIR_HD static Acc Neutral() { return Acc(1); }
  WEIR_HD static Acc Merge(Acc a, Acc b) { return a * b; }
};

template <class T>
struct NormReduction : SumReduction<T> {
  using Acc = typename internal::Accumulator<T>::type;
  static constexpr RowKind kRow = RowKind::kSquares;
  WEIR_HD static Acc Value(T x) {
    const Acc v = static_cast<Acc>(x);
    if constexpr (ScalarMath<T>::kComplex) {
      return std::norm(v);
    } else {
      return v * v;
    }
  }
  WEIR_HD static T Result(Acc a, int64_t) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::sqrt(static_cast<double>(a)));
    } else {
      return static_cast<T>(std::sqrt(a));
    }
  }
};

template <class T, bool kMax>
struct ExtremeReduction {
  static constexpr RowKind kRow = kMax ? RowKind::kMax : RowKind::kMin;
  // 16-bit floats compare as floats.
  using Acc = Wide<T>;
  using Limits = std::numeric_limits<Acc>;
  WEIR_HD static Acc Neutral() {
    if constexpr (Limits::has_infinity) {
      return kMax ? -Limits::infinity() : Limits::infinity();
    } else {
      return kMax ? Limits::lowest() : Limits::max();
    }
  }
  WEIR_HD static Acc Value(T x) { return static_cast<Acc>(x); }
  WEIR_HD static Acc Merge(Acc a, Acc b) {
    return kMax ? ScalarMath<Acc>::Max(a, b) : ScalarMath<Acc>::Min(a, b);
  }
  WEIR_HD static T Result(Acc a, int64_t) { return static_cast<T>(a); }
};
template <class T>
using MaxReduction = ExtremeReduction<T, true>;
template <class T>
using MinReduction = ExtremeReduction<T, false>;

// Reductions of bools stored as bytes: true is 1 and false 0, so All is the minimum and Any the
// maximum.
struct AllReduction : MinReduction<uint8_t> {
  WEIR_HD static uint8_t Neutral() { return 1; }
};
using AnyReduction = MaxReduction<uint8_t>;

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_REDUCERS_H_
