#ifndef WEIR_CORE_RUNTIME_FUNCTION_H_
#define WEIR_CORE_RUNTIME_FUNCTION_H_

#include "weir/core/runtime/kernel.h"

// Function calls from kernels: PartitionedCall, If, While, a data set's map. A session passes its
// functions to kernel factories (KernelInit::functions); the kernels call them when they run.
namespace weir {

struct FunctionBody;

// A function instantiated for a set of attribute values. Lives as long as its session. Reentrant:
// several steps may call it at once, and it may call itself.
class Function {
 public:
  virtual ~Function() = default;
  virtual const DataTypes& arg_types() const = 0;
  virtual const DataTypes& result_types() const = 0;
  // True if the function contains asynchronous kernels, which wait for other work. The caller must
  // not block a thread that this work needs.
  virtual bool may_wait() const = 0;
  // Runs the function as part of the step, on behalf of `caller`. Arguments and results are in host
  // memory; results outlive the step. Errors contain the path of nodes ("caller/node"). Returns
  // RESOURCE_EXHAUSTED if calls are nested too deeply.
  virtual absl::Status Call(const StepInfo& step, const Node& caller, absl::Span<const Tensor> args,
                            Tensors* results) = 0;
  // What a call changes that other calls see, and so what calls at the same time could get in
  // another order: nothing; the positions of random streams, from each of which a call draws at
  // most once and in the order of StepInfo::draws; or any state.
  enum class State { kNone, kRandomStreams, kAny };
  virtual State state() const = 0;
};

class Functions {
 public:
  virtual ~Functions() = default;
  // Returns INVALID_ARGUMENT if the function does not exist or cannot be instantiated. The name
  // "SymbolicGradient" with the attribute `f` denotes the gradient of f.
  virtual absl::StatusOr<Function*> Find(const FunctionRef& function) = 0;
  // Instantiates the function as a graph (InstantiateFunction in function_library.h), for callers
  // that run its nodes themselves. The nodes of a gradient have no prefix.
  virtual absl::StatusOr<FunctionBody> MakeBody(const FunctionRef& function,
                                                absl::string_view prefix) = 0;
  // Returns INVALID_ARGUMENT if the session has no device of this name.
  virtual absl::Status CheckDevice(absl::string_view name) const = 0;
};

// Returns Functions::Find(function) for a kernel constructed from `init`, or FAILED_PRECONDITION if
// there is no session.
absl::StatusOr<Function*> FindFunction(const KernelInit& init, const FunctionRef& function);
// Returns the function called by a PartitionedCall or similar node, or by a node whose op is the
// function itself.
FunctionRef CalleeOf(const Node& call);

}  // namespace weir

#endif  // WEIR_CORE_RUNTIME_FUNCTION_H_
