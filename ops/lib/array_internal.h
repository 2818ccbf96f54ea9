#ifndef WEIR_OPS_LIB_ARRAY_INTERNAL_H_
#define WEIR_OPS_LIB_ARRAY_INTERNAL_H_

#include <initializer_list>
#include <optional>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

// Helpers shared by the array, control flow and data flow op families.
namespace weir {

// Returns outputs 0 to count - 1 of a node, or `count` invalid outputs if `node` is null.
Outputs AllOutputs(Node* node, size_t count);

// ---- builders

// The name scope that a Python wrapper opens under the name of its last node. Literals are created
// inside the scope; the node itself is named `name()`.
class NodeScope : public NameScope {
 public:
  NodeScope(Graph& graph, absl::string_view name, absl::string_view fallback)
      : NameScope(graph, name.empty() ? fallback : name) {}
};

// Returns the dtype for literals among several integer arguments. As in Python, it is the dtype of
// a tensor among them.
DataType TypeAmong(std::initializer_list<const Ints*> args);
// Adds a node of `op` with arguments x and integers. Literals become constants named after the
// argument, in the scope that the node is named after.
Output WithInts(absl::string_view op, Output x, absl::string_view argument, const Ints& ints,
                absl::string_view name, Attrs attrs = {}, absl::string_view default_name = {});
// The same for two arguments of integers. `same_type`: literals have the dtype of the other one.
Output WithTwoInts(absl::string_view op, Output x, absl::string_view name1, const Ints& ints1,
                   absl::string_view name2, const Ints& ints2, absl::string_view name,
                   bool same_type);
// Returns the value of an option. If it is unset, returns `number` as a scalar of the given dtype.
Output OptionValue(Graph& graph, DataType dtype, const std::optional<Literal>& value, int number,
                   absl::string_view name);

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

#endif  // WEIR_OPS_LIB_ARRAY_INTERNAL_H_
