#ifndef WEIR_OPS_ARRAY_INTERNAL_H_
#define WEIR_OPS_ARRAY_INTERNAL_H_

#include "weir/core/gradient.h"
#include "weir/core/shape_context.h"
#include "weir/ops/array.h"
#include "weir/ops/math.h"

// Helpers shared by the array, control flow and data flow op families.
namespace weir {

// Returns outputs 0 to count - 1 of a node, or `count` invalid outputs if `node` is null.
Outputs AllOutputs(Node* node, size_t count);

// ---- shape functions

// Copies the shape and the handle data of input `input` to output `output`.
absl::Status PassShape(ShapeContext& c, int input, int output);
// Copies the shape and handle data of input 0 to every output (Identity).
absl::Status IdentityShape(ShapeContext& c);
// Returns `axis` counted from the front, or INVALID_ARGUMENT if it is outside [-rank, rank).
absl::StatusOr<int> CheckedAxis(int64_t axis, int rank);
// Returns the integers of input i if they are constant at graph construction time.
std::optional<std::vector<int64_t>> KnownInts(ShapeContext& c, int i);
// Returns the number of elements of the vector at input i, or -1 if unknown.
absl::StatusOr<int64_t> VectorLength(ShapeContext& c, int i);
// Sets the shape of output 0 to the concatenation of inputs [first, last) along the axis at input
// `axis_input`.
absl::Status ConcatenatedShape(ShapeContext& c, int first, int last, int axis_input);
// Returns the shape that the vector at input i contains. Returns INVALID_ARGUMENT if the input is
// not a vector or a dimension is negative.
absl::StatusOr<Shape> RequestedShape(ShapeContext& c, int i);
// Returns a shape with `rank` unknown dimensions, or of unknown rank if `rank` is negative.
Shape UnknownDims(int64_t rank);

// ---- gradients

// Return the gradient of output i unchanged as the gradient of input i.
Grads PassGradient(GradContext& g);
Grads PassAllGradients(GradContext& g);
// Returns dy reshaped to the shape of x (ExpandDims, Squeeze).
Grads ReshapeToInputGradient(GradContext& g);

// Add nodes of the math family with the names that Python's operators and functions use.
Output SubOp(Output a, Output b, absl::string_view name = "sub");
Output AddV2Op(Output a, Output b, absl::string_view name = "add");
Output MulOp(Output a, Output b, absl::string_view name = "mul");
// Returns a % b for b >= 0 (FloorMod).
Output ModOp(Output a, Output b, absl::string_view name = "mod");
// Returns the sum of all elements, reducing over the axes that Python lists in this case.
Output SumAll(Output x);
Output ProdOp(Output x, const Ints& axes);
Output RangeOp(Graph& graph, const Ints& start, const Ints& limit, const Ints& delta,
               absl::string_view name = "range");
Output UnsortedSegmentSumOp(Output data, Output ids, Output num_segments);

}  // namespace weir

#endif  // WEIR_OPS_ARRAY_INTERNAL_H_
