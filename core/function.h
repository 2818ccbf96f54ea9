#ifndef WEIR_CORE_FUNCTION_H_
#define WEIR_CORE_FUNCTION_H_

#include "weir/core/kernel.h"

// How kernels call functions of the graph: PartitionedCall, If, While, a data set's map. A session
// gives each kernel factory its functions (KernelInit::functions), and a kernel calls them while it
// runs.
namespace weir {

struct FunctionBody;

// A function with values for its attributes. Lives as long as its session; callable by several
// steps at once, and by itself.
class Function {
 public:
  virtual ~Function() = default;
  virtual const DataTypes& arg_types() const = 0;
  virtual const DataTypes& result_types() const = 0;
  // It holds kernels of the asynchronous form, which wait for others: whoever calls it must not
  // keep a thread from them.
  virtual bool may_wait() const = 0;
  // Runs it as a part of the step, on behalf of `caller`. Arguments and results lie in host memory;
  // results outlive the step. Errors name the nodes that led to it ("caller/node").
  // RESOURCE_EXHAUSTED if calls are nested too deeply.
  virtual absl::Status Call(const StepInfo& step, const Node& caller, absl::Span<const Tensor> args,
                            Tensors* results) = 0;
};

class Functions {
 public:
  virtual ~Functions() = default;
  // INVALID_ARGUMENT if there is no such function, or if it makes no graph. The name
  // "SymbolicGradient" with the attribute `f` is the gradient of f.
  virtual absl::StatusOr<Function*> Find(const FunctionRef& function) = 0;
  // The function as a graph, for who runs its nodes himself: InstantiateFunction
  // (function_library.h). The nodes of a gradient have no prefix.
  virtual absl::StatusOr<FunctionBody> MakeBody(const FunctionRef& function,
                                                absl::string_view prefix) = 0;
  // INVALID_ARGUMENT if `name` is no device of the session.
  virtual absl::Status CheckDevice(absl::string_view name) const = 0;
};

// The function that a kernel made by `init` calls: Functions::Find; FAILED_PRECONDITION where there
// is no session.
absl::StatusOr<Function*> FindFunction(const KernelInit& init, const FunctionRef& function);
// What a PartitionedCall and its like call, or a node whose op is the function itself.
FunctionRef CalleeOf(const Node& call);

}  // namespace weir

#endif  // WEIR_CORE_FUNCTION_H_
