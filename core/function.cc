#include "weir/core/function.h"

namespace weir {

absl::StatusOr<Function*> FindFunction(const KernelInit& init, const FunctionRef& function) {
  if (init.functions == nullptr)
    return FailedPrecondition("function '", function.name,
                              "' is called where there are no functions");
  return init.functions->Find(function);
}

}  // namespace weir
