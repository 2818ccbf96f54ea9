#ifndef WEIR_OPS_FUNCTION_INTERNAL_H_
#define WEIR_OPS_FUNCTION_INTERNAL_H_

#include "weir/core/gradient.h"

// What the sources of the ops that call functions share.
namespace weir {

inline constexpr char kSymbolicGradient[] = "SymbolicGradient";
// Of an _Arg: what a handle refers to, as TensorFlow names it.
inline constexpr char kHandleTypes[] = "_handle_dtypes";

// The gradient rules of calls and branches (function_gradients.cc).
Grads PartitionedCallGradient(GradContext& g);
Grads SymbolicGradientGradient(GradContext& g);
Grads IfGradient(GradContext& g);
Grads CaseGradient(GradContext& g);

// The gradient rules of loops of functions (function_loop_gradients.cc).
Grads FunctionalWhileGradient(GradContext& g);
Grads FunctionalForGradient(GradContext& g);

// The type of what comes back for an input: a variable's for its handle; DT_RESOURCE for a handle
// to something else, which has no gradient.
DataType GradientType(const Output& x);
// The gradient of the function f of arguments `args`, by the name under which sessions and
// TensorFlow know it. It takes them and what arrived at f's results, and gives a tensor for each of
// them: where `results` says DT_RESOURCE, the argument itself.
FunctionRef GradientFunction(const FunctionRef& f, const DataTypes& args, const DataTypes& results);

}  // namespace weir

#endif  // WEIR_OPS_FUNCTION_INTERNAL_H_
