#ifndef WEIR_OPS_FUNCTION_INTERNAL_H_
#define WEIR_OPS_FUNCTION_INTERNAL_H_

#include "weir/core/gradient.h"

// Helpers shared by the ops that call functions.
namespace weir {

inline constexpr char kSymbolicGradient[] = "SymbolicGradient";
// Attribute of an _Arg: the dtypes of the resources that a handle refers to. The name is
// TensorFlow's.
inline constexpr char kHandleTypes[] = "_handle_dtypes";

// Gradient rules of calls and branches (function_gradients.cc).
Grads PartitionedCallGradient(GradContext& g);
Grads SymbolicGradientGradient(GradContext& g);
Grads IfGradient(GradContext& g);
Grads CaseGradient(GradContext& g);

// Gradient rules of functional loops (function_loop_gradients.cc).
Grads FunctionalWhileGradient(GradContext& g);
Grads FunctionalForGradient(GradContext& g);

// Returns the dtype of the gradient of an input: the dtype of the variable for a variable's handle;
// DT_RESOURCE for any other handle, which has no gradient.
DataType GradientType(const Output& x);
// Returns a reference to the gradient of function `f` with arguments of dtypes `args`, under the
// name that sessions and TensorFlow use. The gradient function takes the arguments and the
// gradients of f's results, and returns a tensor for each argument: its gradient, or the argument
// itself where `results` is DT_RESOURCE.
FunctionRef GradientFunction(const FunctionRef& f, const DataTypes& args, const DataTypes& results);

}  // namespace weir

#endif  // WEIR_OPS_FUNCTION_INTERNAL_H_
