#ifndef WEIR_OPS_LIB_COMMON_SHAPE_H_
#define WEIR_OPS_LIB_COMMON_SHAPE_H_

#include "weir/core/tensor/shape.h"

namespace weir {

// Returns the dimensions that `a` and `b` have in common: the most specific shape with which both
// are compatible.
Shape CommonShape(const Shape& a, const Shape& b);

}  // namespace weir

#endif  // WEIR_OPS_LIB_COMMON_SHAPE_H_
