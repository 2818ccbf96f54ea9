#ifndef WEIR_OPS_NN_INTERNAL_H_
#define WEIR_OPS_NN_INTERNAL_H_

#include "weir/core/op.h"
#include "weir/ops/literal.h"
#include "weir/ops/window.h"

// Declarations shared by the sources of the nn family.
namespace weir {

// Returns the shape of a convolution's result. `depth` is its number of channels.
absl::StatusOr<Shape> ConvOutputShape(const ConvAttributes& a, const Shape& input,
                                      const Shape& filter, int64_t depth);
// Shape functions of Conv2D and of DepthwiseConv2dNative.
absl::Status InferConv2D(ShapeContext& c);
absl::Status InferDepthwiseConv2D(ShapeContext& c);

// Builds x `op` y, where y is a constant of x's type, as the nodes `name` and `name`/y.
Output WithScalar(absl::string_view op, Output x, const Literal& y, absl::string_view name);
// The floating-point types whose values are computed in float.
inline bool IsNarrow(DataType type) { return type == DT_HALF || type == DT_BFLOAT16; }

}  // namespace weir

#endif  // WEIR_OPS_NN_INTERNAL_H_
