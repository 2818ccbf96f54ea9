#ifndef WEIR_OPS_MATH_INTERNAL_H_
#define WEIR_OPS_MATH_INTERNAL_H_

#include "weir/core/gradient.h"
#include "weir/core/op.h"
#include "weir/core/shape_context.h"
#include "weir/ops/literal.h"
#include "weir/ops/math.h"

// What the sources of the math family share.
namespace weir {

// Scalars that Python makes with constant_op (named "Const"), not as an operand.
Output ScalarConst(const Output& like, const Literal& value);
// Zeros (ones) with the shape and type of x, as Python's zeros_like: a constant where the shape is
// static.
Output ZerosOf(const Output& x);
Output OnesOf(const Output& x);
// The shape of x as an int32 vector, "Shape": a constant where it is static.
Output ShapeVector(const Output& x);

// `shape` with 1 for each of `axes`, computed in the step: Python's reduced_shape.
Output ReducedShape(Output shape, Output axes);

// The two gradients of a broadcasting op, summed over the dimensions that were broadcast: what
// Python calls _ReduceGradientArgs. `shortcut` leaves the Shape nodes out when both shapes are
// static and equal.
Grads ReduceGradientArgs(GradContext& g, Output gx, Output gy, bool shortcut = true);
// The older form: axes first, then (for each gradient, after it was computed) Sum and Reshape.
struct BroadcastAxes {
  Output sx, sy, rx, ry;
};
BroadcastAxes AxesOfBroadcast(const Output& x, const Output& y);
Output SumTo(Output gradient, Output axes, Output shape);

// ---- shape rules

// x without `axes`, or with extents of 1 for them. INVALID_ARGUMENT for an axis out of range.
absl::StatusOr<Shape> ShapeAfterReduction(const Shape& x, const Tensor& axes, bool keep_dims);
// The product of two matrices that `transpose_a` and `transpose_b` may turn.
absl::Status MatMulShape(ShapeContext& c);
// Inputs 0 and 1 are data and the numbers of its segments, of which there are `count`.
absl::Status SegmentsShape(ShapeContext& c, int64_t count);

// The types lists of signatures.
inline constexpr char kFloatTypes[] = "T: {bfloat16, half, float, double}";
inline constexpr char kFloatComplexTypes[] =
    "T: {bfloat16, half, float, double, complex64, complex128}";

}  // namespace weir

#endif  // WEIR_OPS_MATH_INTERNAL_H_
