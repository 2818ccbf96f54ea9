#include "weir/core/runtime/function.h"

namespace weir {

absl::StatusOr<Function*> FindFunction(const KernelInit& init, const FunctionRef& function) {
  if (init.functions == nullptr)
    return FailedPrecondition("function '", function.name, "' cannot be called without a session");
  return init.functions->Find(function);
}

FunctionRef CalleeOf(const Node& call) {
  if (!call.op().is_function()) return call.attr<FunctionRef>("f");
  return {call.op_name(), std::make_shared<AttrMap>(call.attrs())};
}

}  // namespace weir
