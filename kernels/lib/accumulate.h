#ifndef WEIR_KERNELS_LIB_ACCUMULATE_H_
#define WEIR_KERNELS_LIB_ACCUMULATE_H_

#include <type_traits>

#include "weir/core/tensor/dtype.h"
#include "weir/kernels/lib/scalar_math.h"

// Arithmetic for kernels that accumulate elements.
namespace weir {

// Sums and differences of two elements. Integers wrap around, strings are concatenated.
template <class T>
inline T Add(T a, T b) {
  return ScalarMath<T>::Add(a, b);
}
template <class T>
inline T Subtract(T a, T b) {
  return ScalarMath<T>::Sub(a, b);
}

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_ACCUMULATE_H_
