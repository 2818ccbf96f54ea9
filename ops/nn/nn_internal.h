#ifndef WEIR_OPS_NN_NN_INTERNAL_H_
#define WEIR_OPS_NN_NN_INTERNAL_H_

#include "weir/core/graph/op.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/literal.h"
#include "weir/ops/lib/window.h"

// Declarations shared by the sources of the nn family.
namespace weir {

// Returns the shape of a convolution's result. `depth` is its number of channels.
absl::StatusOr<Shape> ConvOutputShape(const ConvAttributes& a, const Shape& input,
                                      const Shape& filter, int64_t depth);
// Shape functions of Conv2D and of DepthwiseConv2dNative.
absl::Status InferConv2D(ShapeContext& c);
absl::Status InferDepthwiseConv2D(ShapeContext& c);

// A type constraint used in op definitions.
inline constexpr char kFloats[] = "T: {half, bfloat16, float, double}";

// Adds a node of an op that has no attributes but the types of its inputs.
inline Output Op(absl::string_view op, Output a, absl::string_view name) {
  return AddOp(op, {a}, {}, name);
}
inline Output Op(absl::string_view op, Output a, Output b, absl::string_view name) {
  return AddOp(op, {a, b}, {}, name);
}
// Builds x `op` y, where y is a constant of x's type, as the nodes `name` and `name`/y.
inline Output WithScalar(absl::string_view op, Output x, const Literal& y, absl::string_view name) {
  NameScope scope(x.graph(), name);
  return Op(op, x, ConstLike(x, y, "y"), scope.name());
}
// Returns the name that the user gave, or else the default one.
inline absl::string_view Or(absl::string_view name, absl::string_view otherwise) {
  return name.empty() ? otherwise : name;
}

// The floating-point types whose values are computed in float.
inline bool IsNarrow(DataType type) { return type == DT_HALF || type == DT_BFLOAT16; }

}  // namespace weir

#endif  // WEIR_OPS_NN_NN_INTERNAL_H_
