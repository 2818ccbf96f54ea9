#ifndef WEIR_KERNELS_LIB_NARROW_FLOATS_H_
#define WEIR_KERNELS_LIB_NARROW_FLOATS_H_

#include <cstdint>

#include "weir/core/tensor/numeric_types.h"

// Arrays of 16-bit floats to and from arrays of floats, by vectors. The bits are those of the
// conversions of one number (core/tensor/numeric_types.h), NaN and subnormal numbers included.
namespace weir {

// Write n elements to `to`, which does not overlap `from`. Any alignment.
void Widen(const half* from, float* to, int64_t n);
void Widen(const bfloat16* from, float* to, int64_t n);
void Narrow(const float* from, half* to, int64_t n);
void Narrow(const float* from, bfloat16* to, int64_t n);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_NARROW_FLOATS_H_
