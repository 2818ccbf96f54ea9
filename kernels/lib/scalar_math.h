#ifndef WEIR_KERNELS_LIB_SCALAR_MATH_H_
#define WEIR_KERNELS_LIB_SCALAR_MATH_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/numeric_types.h"

// The operations that functors (kernels/math/elementwise.h) use, for one element of type T: a
// floating-point number, an integer or a complex number. VectorMath (kernels/lib/vector_math-inl.h)
// has the same names for vectors of floats. Usable in CUDA. Integers wrap around instead of
// overflowing.
namespace weir {

template <class T>
inline constexpr bool kIsNarrowFloat = kContains<T, NarrowFloats>;
// The type of the computation: 16-bit floats compute in float.
template <class T>
using Wide = std::conditional_t<kIsNarrowFloat<T>, float, T>;

template <class T>
struct ScalarMath;

namespace internal {
template <class T>
struct IsComplexNumber : std::false_type {};
template <class T>
struct IsComplexNumber<std::complex<T>> : std::true_type {};
}  // namespace internal

template <class T>
struct ScalarMath {
  using V = T;
  using Mask = bool;
  static constexpr bool kComplex = internal::IsComplexNumber<T>::value;
  static constexpr bool kInteger = std::is_integral_v<T>;

  WEIR_HD static T Num(double c) { return static_cast<T>(c); }
  WEIR_HD static T If(bool condition, T a, T b) { return condition ? a : b; }
  WEIR_HD static bool Lt(T a, T b) { return a < b; }
  WEIR_HD static bool Le(T a, T b) { return a <= b; }
  WEIR_HD static bool Eq(T a, T b) { return a == b; }
  WEIR_HD static bool IsNan(T x) { return x != x; }

  WEIR_HD static T Add(T a, T b) {
    if constexpr (kInteger)
      return static_cast<T>(Unsigned(a) + Unsigned(b));
    else
      return static_cast<T>(a + b);
  }
  WEIR_HD static T Sub(T a, T b) {
    if constexpr (kInteger)
      return static_cast<T>(Unsigned(a) - Unsigned(b));
    else
      return static_cast<T>(a - b);
  }
  WEIR_HD static T Mul(T a, T b) {
    if constexpr (kInteger)
      return static_cast<T>(Unsigned(a) * Unsigned(b));
    else
      return static_cast<T>(a * b);
  }
  // Integers: rounds toward zero; b must not be 0.
  WEIR_HD static T Div(T a, T b) {
    if constexpr (kInteger && std::is_signed_v<T>)
      return b == T(-1) ? Neg(a) : static_cast<T>(a / b);
    else
      return static_cast<T>(a / b);
  }
  WEIR_HD static T Neg(T x) {
    if constexpr (kInteger)
      return static_cast<T>(Unsigned(0) - Unsigned(x));
    else
      return -x;
  }
  WEIR_HD static T Abs(T x) {
    if constexpr (std::is_unsigned_v<T>)
      return x;
    else if constexpr (kInteger)
      return x < 0 ? Neg(x) : x;
    else
      return std::abs(x);
  }
  // NaN if either is NaN.
  WEIR_HD static T Max(T a, T b) { return a > b || a != a ? a : b; }
  WEIR_HD static T Min(T a, T b) { return a < b || a != a ? a : b; }
  // The remainder with the sign of a.
  WEIR_HD static T Mod(T a, T b) {
    if constexpr (!kInteger)
      return std::fmod(a, b);
    else if constexpr (std::is_signed_v<T>)
      return b == T(-1) ? T(0) : static_cast<T>(a % b);
    else
      return static_cast<T>(a % b);
  }

  WEIR_HD static T Sqrt(T x) { return std::sqrt(x); }
  WEIR_HD static T Exp(T x) { return std::exp(x); }
  WEIR_HD static T Log(T x) { return std::log(x); }
  WEIR_HD static T Sin(T x) { return std::sin(x); }
  WEIR_HD static T Cos(T x) { return std::cos(x); }
  WEIR_HD static T Tan(T x) { return std::tan(x); }
  WEIR_HD static T Asin(T x) { return std::asin(x); }
  WEIR_HD static T Acos(T x) { return std::acos(x); }
  WEIR_HD static T Atan(T x) { return std::atan(x); }
  WEIR_HD static T Atan2(T y, T x) { return std::atan2(y, x); }
  WEIR_HD static T Sinh(T x) { return std::sinh(x); }
  WEIR_HD static T Cosh(T x) { return std::cosh(x); }
  WEIR_HD static T Tanh(T x) { return std::tanh(x); }
  WEIR_HD static T Asinh(T x) { return std::asinh(x); }
  WEIR_HD static T Acosh(T x) { return std::acosh(x); }
  WEIR_HD static T Atanh(T x) { return std::atanh(x); }
  WEIR_HD static T Erf(T x) { return std::erf(x); }
  WEIR_HD static T Erfc(T x) { return std::erfc(x); }
  WEIR_HD static T Pow(T x, T y) { return std::pow(x, y); }
  WEIR_HD static T Expm1(T x) {
    if constexpr (kComplex) {
      // exp(a + bi) - 1 = (expm1(a) cos b - 2 sin^2(b / 2)) + i exp(a) sin b
      const auto s = std::sin(x.imag() / 2);
      return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s,
              std::exp(x.real()) * std::sin(x.imag())};
    } else {
      return std::expm1(x);
    }
  }
  WEIR_HD static T Log1p(T x) {
    if constexpr (kComplex) {
      // |1 + a + bi|^2 - 1 = a (2 + a) + b^2
      const auto a = x.real(), b = x.imag();
      return {std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a)};
    } else {
      return std::log1p(x);
    }
  }
  WEIR_HD static T Floor(T x) { return std::floor(x); }
  WEIR_HD static T Ceil(T x) { return std::ceil(x); }
  WEIR_HD static T Trunc(T x) { return std::trunc(x); }
  // Halves to even.
  WEIR_HD static T Round(T x) {
    if constexpr (kInteger)
      return x;
    else if constexpr (kComplex)
      return {std::rint(x.real()), std::rint(x.imag())};
    else
      return std::rint(x);
  }
  WEIR_HD static T Conj(T x) {
    if constexpr (kComplex)
      return {x.real(), -x.imag()};
    else
      return x;
  }
  // The nearest number of type N, a 16-bit float.
  template <class N>
  WEIR_HD static T RoundTo(T x) {
    return static_cast<T>(N(x));
  }

 private:
  // The type for signed arithmetic without overflow: the unsigned type of at least 32 bits.
  WEIR_HD static auto Unsigned(T x) {
    using U = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, int, T>>;
    return static_cast<std::conditional_t<(sizeof(T) < 4), uint32_t, U>>(x);
  }
};

#include "weir/kernels/lib/rounded_math-inl.h"

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_SCALAR_MATH_H_
