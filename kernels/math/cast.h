#ifndef WEIR_KERNELS_MATH_CAST_H_
#define WEIR_KERNELS_MATH_CAST_H_

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/numeric_types.h"
#include "weir/core/tensor/status.h"
#include "weir/core/tensor/tensor.h"

// Converts one element. Floating-point values out of an integer type's range become what x86's
// conversion produces: the lowest int32 or int64, truncated to the width of the type. TensorFlow
// does so in parts of a tensor, and takes the nearest integer in others. Complex numbers lose their
// imaginary part, also those that become bool.
namespace weir {

template <class I, class F>
WEIR_HD I TruncateLikeX86(F x) {
  constexpr F kLow = static_cast<F>(std::numeric_limits<I>::min());
  // -low is 2^31 or 2^63, the smallest value out of range; NaN fails both comparisons. The choice
  // is between numbers, not between conversions, so that loops can be vectorized.
  const bool fits = (x >= kLow) & (x < -kLow);
  return static_cast<I>(fits ? x : kLow);
}

template <class To, class From>
WEIR_HD To Convert(From x) {
  if constexpr (std::is_same_v<From, std::complex<float>> ||
                std::is_same_v<From, std::complex<double>>) {
    if constexpr (std::is_same_v<To, std::complex<float>> ||
                  std::is_same_v<To, std::complex<double>>)
      return To(x);
    else
      return Convert<To>(x.real());
  } else if constexpr (std::is_same_v<To, std::complex<float>>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, std::complex<double>>) {
    return To(static_cast<double>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, uint64_t>) {
      return x >= From(9223372036854775808.0) && x < From(18446744073709551616.0)
                 ? static_cast<uint64_t>(x)
                 : static_cast<uint64_t>(TruncateLikeX86<int64_t>(x));
    } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint32_t>) {
      return static_cast<To>(TruncateLikeX86<int64_t>(x));
    } else {
      return static_cast<To>(TruncateLikeX86<int32_t>(x));
    }
  } else {
    return static_cast<To>(x);
  }
}

// Returns the number of bits after the leading one in a floating-point type; 0 for other types.
constexpr int MantissaBits(DataType t) {
  return t == DT_HALF ? 10 : t == DT_BFLOAT16 ? 7 : t == DT_FLOAT ? 23 : t == DT_DOUBLE ? 52 : 0;
}

// Returns the function that converts n elements. Null if a type is a 16-bit float or not numeric.
using CastFn = void (*)(const void* from, void* to, int64_t n);
CastFn FindCast(DataType from, DataType to);  // cast_cpu.cc

// Fills `to` with the elements of `from`, converted to the type of `to`; both have the same number
// of elements. UNIMPLEMENTED if a type is not numeric.
absl::Status ConvertElements(ThreadPool& pool, const Tensor& from, Tensor* to);  // cast_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_CAST_H_
