#ifndef WEIR_OPS_LIB_MATH_INTERNAL_H_
#define WEIR_OPS_LIB_MATH_INTERNAL_H_

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/op.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/literal.h"
#include "weir/ops/lib/math.h"

// Helpers shared by the math op family.
namespace weir {

// Adds a node of `op` without attributes.
Output Unary(absl::string_view op, Output x, absl::string_view name);
// Adds a node of `op` whose arguments may be literals. Literals become constants inside the scope
// that the node is named after.
Output Binary(absl::string_view op, const TensorArg& x, const TensorArg& y, absl::string_view name,
              const char* x_name = "x", const char* y_name = "y", Attrs attrs = {});
// The record of an elementwise op of two tensors that broadcast.
inline OpSpec BinarySpec(absl::string_view op, absl::string_view types,
                         absl::string_view in = "x: T, y: T") {
  return OpSpec(op).In(in).Out("z: T").Attr(types).Elementwise().InferShape(BroadcastShape);
}

namespace internal {
// Names a variable's read in the current scope (Graph::NameHere). C++ operators call it before they
// open a scope, as Python's operators read their operand first.
void ReadHere(const Output& first);
}  // namespace internal

// Adds a scalar that Python creates with constant_op (named "Const"), not as an operand.
Output ScalarConst(const Output& like, const Literal& value);
// Return zeros (ones) with the shape and dtype of x, as Python's zeros_like: a constant if the
// shape is static.
Output ZerosOf(const Output& x);
Output OnesOf(const Output& x);
// Returns the shape of x as an int32 vector named "Shape": a constant if it is static.
Output ShapeVector(const Output& x);

bool StaticAndEqual(const Shape& a, const Shape& b);

// Returns `shape` with 1 at each of `axes`, computed at run time: Python's reduced_shape.
Output ReducedShape(Output shape, Output axes);

// Returns the two gradients of a broadcasting op, summed over the dimensions that were broadcast:
// Python's _ReduceGradientArgs. `shortcut` omits the Shape nodes if both shapes are static and
// equal.
Grads ReduceGradientArgs(GradContext& g, Output gx, Output gy, bool shortcut = true);
// The older form: computes the axes first, then adds Sum and Reshape to each gradient after it is
// computed.
struct BroadcastAxes {
  Output sx, sy, rx, ry;
};
BroadcastAxes AxesOfBroadcast(const Output& x, const Output& y);
Output SumTo(Output gradient, Output axes, Output shape);

// ---- shape functions

// Returns x without `axes`, or with size 1 for them. INVALID_ARGUMENT for an axis out of range.
absl::StatusOr<Shape> ShapeAfterReduction(const Shape& x, const Tensor& axes, bool keep_dims);
// The shape of the product of two matrices, which `transpose_a` and `transpose_b` may transpose.
absl::Status MatMulShape(ShapeContext& c);
// Inputs 0 and 1 are the data and the segment ids. `count` is the number of segments.
absl::Status SegmentsShape(ShapeContext& c, int64_t count);

// Type constraints used in op definitions.
inline constexpr char kFloatTypes[] = "T: {bfloat16, half, float, double}";
inline constexpr char kFloatComplexTypes[] =
    "T: {bfloat16, half, float, double, complex64, complex128}";
inline constexpr char kRealTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
inline constexpr char kIntegerTypes[] =
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

}  // namespace weir

#endif  // WEIR_OPS_LIB_MATH_INTERNAL_H_
