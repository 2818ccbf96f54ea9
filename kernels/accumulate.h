#ifndef WEIR_KERNELS_ACCUMULATE_H_
#define WEIR_KERNELS_ACCUMULATE_H_

#include <type_traits>

#include "weir/core/dtype.h"

namespace weir {

// Sums and differences of two elements. Integers wrap around, as on any machine, without being
// undefined in C++.
template <class T>
inline T Add(T a, T b) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else {
    a += b;
    return a;
  }
}

template <class T>
inline T Subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
  } else {
    a -= b;
    return a;
  }
}

}  // namespace weir

#endif  // WEIR_KERNELS_ACCUMULATE_H_
