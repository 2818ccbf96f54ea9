#include "weir/ops/train/slots.h"

#include <algorithm>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variable_scope.h"

namespace weir {

Variable CreateSlot(const Variable& primary, absl::string_view name,
                    const Initializer& initializer) {
  if (!primary.valid()) return {};
  Graph& graph = primary.graph();
  const VariableScope scope(graph, {.default_name = absl::StrCat(primary.op_name(), "/", name)});
  scope.scope()->partitioner = nullptr;
  const ColocateWith place(graph, primary.handle().node);
  VariableOptions options{.initializer = initializer,
                          .dtype = primary.dtype(),
                          .trainable = false,
                          .validate_shape = primary.shape().IsFullyDefined(),
                          .use_resource = primary.is_resource()};
  if (initializer.kind() == Initializer::Kind::kShaped) options.shape = primary.shape();
  Variable slot = GetVariable(graph, "", options);
  // If the rank of the slot is lower than that of the part, its slice has the leading dimensions of
  // the part's slice.
  if (slot.valid() && primary.save_slice() && !slot.shape().IsScalar()) {
    SaveSliceInfo part = *primary.save_slice();
    if (slot.shape().has_rank()) {
      for (auto* list : {&part.full_shape, &part.var_offset, &part.var_shape})
        list->resize(std::min<size_t>(list->size(), slot.shape().rank()));
    }
    // "scope/w/part_0/Adam" belongs to "scope/w/Adam", where "scope" is the scope of this call.
    std::string name = slot.op_name();
    if (const size_t at = name.rfind(primary.op_name()); at != std::string::npos)
      name.replace(at, primary.op_name().size(), part.full_name);
    part.full_name = name;
    slot.info()->save_slice = part;
  }
  return slot;
}

}  // namespace weir
