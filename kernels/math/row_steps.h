#ifndef WEIR_KERNELS_MATH_ROW_STEPS_H_
#define WEIR_KERNELS_MATH_ROW_STEPS_H_

#include <cstdint>

#include "weir/core/tensor/dtype.h"

// Vector loops for kernels that combine rows of numbers into accumulators of the same type.
namespace weir {

enum class RowStepOp : uint8_t { kAdd, kMul, kMax, kMin };

// acc[i] = op(acc[i], x[i]) for i in [0, n), with the results of ScalarMath (kernels/lib/
// scalar_math.h): integers wrap around, and a maximum or minimum is NaN if either argument is. The
// two ranges do not overlap.
using RowStep = void (*)(void* acc, const void* x, int64_t n);

// Returns the loop for elements of this type; null if the op has none for it.
RowStep FindRowStep(RowStepOp op, DataType type);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_ROW_STEPS_H_
