#ifndef WEIR_OPS_ARRAY_INTERNAL_H_
#define WEIR_OPS_ARRAY_INTERNAL_H_

#include "weir/core/gradient.h"
#include "weir/core/shape_context.h"
#include "weir/ops/array.h"
#include "weir/ops/math.h"

// What the sources of the array, control flow and data flow families share.
namespace weir {

// Outputs 0 to count - 1 of a node; as many invalid ones if there is no node.
Outputs AllOutputs(Node* node, size_t count);

// ---- shape rules

// Output i takes the shape of input i, and what its handle refers to.
absl::Status PassShape(ShapeContext& c, int input, int output);
// Every output like input 0, handles included (Identity).
absl::Status IdentityShape(ShapeContext& c);
// `axis` counted from the front; INVALID_ARGUMENT if it is outside [-rank, rank).
absl::StatusOr<int> CheckedAxis(int64_t axis, int rank);
// The integers of input i if they are known before the step.
std::optional<std::vector<int64_t>> KnownInts(ShapeContext& c, int i);
// How many elements the vector at input i has; -1 if unknown.
absl::StatusOr<int64_t> VectorLength(ShapeContext& c, int i);
// Inputs [first, last) joined along the axis at input `axis_input`, as output 0.
absl::Status JoinedShape(ShapeContext& c, int first, int last, int axis_input);
// The shape that the vector at input i spells out; INVALID_ARGUMENT if it is no vector, or if a
// dimension is negative.
absl::StatusOr<Shape> RequestedShape(ShapeContext& c, int i);
// An unknown extent in each of `rank` dimensions; unknown rank for a negative one.
Shape UnknownDims(int64_t rank);

// ---- gradients

// The gradient of output i goes to input i as it is.
Grads PassGradient(GradContext& g);
Grads PassAllGradients(GradContext& g);
// dy in the shape of x (ExpandDims, Squeeze).
Grads ReshapeToInputGradient(GradContext& g);

// Nodes of the math family, as Python's operators and functions name them.
Output SubOp(Output a, Output b, absl::string_view name = "sub");
Output AddV2Op(Output a, Output b, absl::string_view name = "add");
Output MulOp(Output a, Output b, absl::string_view name = "mul");
// a % b with b >= 0 (FloorMod).
Output ModOp(Output a, Output b, absl::string_view name = "mod");
// All elements summed, over the dimensions Python lists for that.
Output SumAll(Output x);
Output ProdOp(Output x, const Ints& axes);
Output RangeOp(Graph& graph, const Ints& start, const Ints& limit, const Ints& delta,
               absl::string_view name = "range");
Output UnsortedSegmentSumOp(Output data, Output ids, Output num_segments);

}  // namespace weir

#endif  // WEIR_OPS_ARRAY_INTERNAL_H_
