#ifndef WEIR_OPS_CONTAINERS_QUEUE_INTERNAL_H_
#define WEIR_OPS_CONTAINERS_QUEUE_INTERNAL_H_

#include <string>

#include "weir/core/graph/op.h"
#include "weir/core/graph/shape_context.h"

// Declarations shared by the sources of queues, tables, readers and similar ops.
namespace weir {

// Most of these ops have two forms: one with a ref-typed handle, and one with a resource handle.
struct HandleForm {
  const char *version, *handle;
  bool is_resource;
};
inline constexpr HandleForm kReferenceForm = {"", "Ref(string)", false};
inline constexpr HandleForm kResourceForm = {"V2", "resource", true};
inline constexpr HandleForm kHandleForms[] = {kReferenceForm, kResourceForm};

// Output 0 is a handle: a scalar, or in the ref form a vector of two strings, container and name.
absl::Status HandleShape(ShapeContext& c);
// The definitions of an op that creates the handle, and of one that takes the handle (and
// `inputs`).
OpSpec HandleCreatorSpec(absl::string_view op, const HandleForm& form, absl::string_view handle);
OpSpec HandleUserSpec(absl::string_view op, const HandleForm& form, absl::string_view handle,
                      absl::string_view inputs = {});
// Returns Ranked(ranks, rule) (ranked_internal.h) for the resource form, whose handle is a scalar,
// and `rule` for the ref form, whose ranks are not checked.
ShapeFn RankedIfResource(const HandleForm& form, absl::string_view ranks, ShapeFn rule);
// Adds the attributes by which nodes share a resource.
OpSpec& AddSharingAttrs(OpSpec& spec);

// Returns the last component of the node's name: the nodes that use the handle are named after it.
std::string LastNameComponent(const std::string& name);

}  // namespace weir

#endif  // WEIR_OPS_CONTAINERS_QUEUE_INTERNAL_H_
