#ifndef WEIR_OPS_FRAMEWORK_FUNCTION_H_
#define WEIR_OPS_FRAMEWORK_FUNCTION_H_

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Calls of functions in the graph's library (core/io/function_library.h). Each call is one node;
// the session runs the function's body as a plan of its own.
//
// The dtypes of the results are the function's. An unknown function, or arguments with dtypes that
// the function does not accept, fail the graph with INVALID_ARGUMENT. The gradient of a call runs
// the function again before the backward pass (SymbolicGradient), so a function with random numbers
// or side effects repeats them.
namespace WEIR_API weir {

// Returns f(args): adds a PartitionedCall, or a StatefulPartitionedCall if the function is
// stateful.
Outputs Call(Graph& graph, const FunctionRef& f, const Outputs& args, absl::string_view name = {});

// Returns then_branch(args) if `cond` is true, otherwise else_branch(args): adds an If or a
// StatelessIf. A number is true if it is not zero, a string if it is not empty, and any other
// tensor if it has elements.
Outputs FunctionalIf(Output cond, const Outputs& args, const FunctionRef& then_branch,
                     const FunctionRef& else_branch, absl::string_view name = {});

// Returns branches[index](args); an index out of range selects the last branch. Adds a Case or a
// StatelessCase.
Outputs FunctionalCase(Output index, const Outputs& args, const std::vector<FunctionRef>& branches,
                       absl::string_view name = {});

// Runs vars = body(vars) while cond(vars) is true: adds a While or a StatelessWhile. Its gradient
// runs the loop again and saves the values of the variables in each iteration.
Outputs FunctionalWhile(const Outputs& vars, const FunctionRef& cond, const FunctionRef& body,
                        absl::string_view name = {});

// Runs vars = body(i, vars...) for i = start, start + delta, ... below limit: adds a For. Its
// gradient is computed like that of While.
Outputs FunctionalFor(Output start, Output limit, Output delta, const Outputs& vars,
                      const FunctionRef& body, absl::string_view name = {});

// The gradient rule of nodes whose op is the name of the function they call.
Grads CallGradient(GradContext& g);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_FUNCTION_H_
