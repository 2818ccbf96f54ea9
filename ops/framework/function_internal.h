#ifndef WEIR_OPS_FRAMEWORK_FUNCTION_INTERNAL_H_
#define WEIR_OPS_FRAMEWORK_FUNCTION_INTERNAL_H_

#include <optional>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/op.h"
#include "weir/core/graph/shape_context.h"

// Helpers shared by the ops that call functions.
namespace weir {

inline constexpr char kSymbolicGradient[] = "SymbolicGradient";
// Attribute of an _Arg: the dtypes of the resources that a handle refers to. The name is
// TensorFlow's.
inline constexpr char kHandleTypes[] = "_handle_dtypes";

// Applies the shapes in the attribute `output_shapes`, if any.
absl::Status DeclaredShapes(ShapeContext& c);
// Returns a trait that the record of an op keeps for the life of the process.
const FunctionCalls* CallsOf(FunctionCalls calls);

// A function's result dtypes and whether it is stateful.
struct Callee {
  DataTypes results;
  bool stateful = false;
};
// Returns the result dtypes of the last of `functions`, and whether one of them is stateful.
// Returns nullopt and fails the graph if a function is unknown.
std::optional<Callee> FindCallees(Graph& graph, const std::vector<FunctionRef>& functions);

// Returns the dtype of the gradient of an input: the dtype of the variable for a variable's handle;
// DT_RESOURCE for any other handle, which has no gradient.
DataType GradientType(const Output& x);
// Returns a reference to the gradient of function `f` with arguments of dtypes `args`, under the
// name that sessions and TensorFlow use. The gradient function takes the arguments and the
// gradients of f's results, and returns a tensor for each argument: its gradient, or the argument
// itself where `results` is DT_RESOURCE.
FunctionRef GradientFunction(const FunctionRef& f, const DataTypes& args, const DataTypes& results);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_FUNCTION_INTERNAL_H_
