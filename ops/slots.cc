#include "weir/ops/slots.h"

#include "absl/strings/strip.h"
#include "weir/core/scope.h"
#include "weir/ops/variable_scope.h"

namespace weir {

Variable CreateSlot(const Variable& primary, absl::string_view name,
                    const Initializer& initializer) {
  if (!primary) return {};
  Graph& graph = primary.graph();
  const VariableScope scope(graph, {.default_name = absl::StrCat(primary.op_name(), "/", name)});
  const ColocateWith place(graph, primary.handle().node);
  VariableOptions options{.initializer = initializer,
                          .dtype = primary.dtype(),
                          .trainable = false,
                          .validate_shape = primary.shape().IsFullyDefined(),
                          .use_resource = primary.is_resource()};
  if (initializer.kind() == Initializer::Kind::kShaped) options.shape = primary.shape();
  Variable slot = GetVariable(graph, "", options);
  if (slot && primary.save_slice()) {
    SaveSliceInfo part = *primary.save_slice();
    part.full_name += std::string(absl::StripPrefix(slot.op_name(), primary.op_name()));
    slot.info()->save_slice = part;
  }
  return slot;
}

}  // namespace weir
