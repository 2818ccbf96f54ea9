#ifndef WEIR_OPS_FUNCTION_H_
#define WEIR_OPS_FUNCTION_H_

#include "weir/core/gradient.h"
#include "weir/core/graph.h"

// Calls of functions that the graph's library holds (core/function_library.h). Each call is one
// node; the session runs the function's body as a plan of its own.
//
// Types of results are the function's; an unknown function sticks to the graph as INVALID_ARGUMENT,
// and so do arguments of types that it does not take. The gradient of a call runs the function
// again before it goes backwards (SymbolicGradient): a function with random numbers or effects
// draws and does them twice.
namespace weir {

// f(args): PartitionedCall, or StatefulPartitionedCall where the function has state.
Outputs Call(Graph& graph, const FunctionRef& f, const Outputs& args, absl::string_view name = {});

// then_branch(args) or else_branch(args), as `cond` is true or not: If, or StatelessIf. A number is
// true if it is not zero, a string if it is not empty, any other tensor if it has elements.
Outputs FunctionalIf(Output cond, const Outputs& args, const FunctionRef& then_branch,
                     const FunctionRef& else_branch, absl::string_view name = {});

// branches[index](args), or the last branch for an index out of range: Case, or StatelessCase.
Outputs FunctionalCase(Output index, const Outputs& args, const std::vector<FunctionRef>& branches,
                       absl::string_view name = {});

// vars = body(vars) as long as cond(vars) is true: While, or StatelessWhile. Its gradient runs the
// loop once more and keeps what the variables were in each iteration.
Outputs FunctionalWhile(const Outputs& vars, const FunctionRef& cond, const FunctionRef& body,
                        absl::string_view name = {});

// vars = body(i, vars...) for i = start, start + delta, ... before limit: For. Its gradient is that
// of While.
Outputs FunctionalFor(Output start, Output limit, Output delta, const Outputs& vars,
                      const FunctionRef& body, absl::string_view name = {});

// The gradient rule of nodes that call a function by its name as their op.
Grads CallGradient(GradContext& g);

}  // namespace weir

#endif  // WEIR_OPS_FUNCTION_H_
