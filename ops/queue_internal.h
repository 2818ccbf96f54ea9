#ifndef WEIR_OPS_QUEUE_INTERNAL_H_
#define WEIR_OPS_QUEUE_INTERNAL_H_

#include <string>

#include "weir/core/op.h"
#include "weir/core/shape_context.h"

// What the records of queues, tables, readers and their like share.
namespace weir {

// Most of these ops have a form with a reference for a handle, and one with a resource.
struct HandleForm {
  const char *version, *handle;
  bool is_resource;
};
inline constexpr HandleForm kReferenceForm = {"", "Ref(string)", false};
inline constexpr HandleForm kResourceForm = {"V2", "resource", true};
inline constexpr HandleForm kHandleForms[] = {kReferenceForm, kResourceForm};

// Output 0 is a handle: a scalar, or in the reference form a vector of two strings, container and
// name.
absl::Status HandleShape(ShapeContext& c);
// The record of an op that makes the handle, and of one that takes it (and `inputs` besides).
OpSpec MakerOfHandle(absl::string_view op, const HandleForm& form, absl::string_view handle);
OpSpec UserOfHandle(absl::string_view op, const HandleForm& form, absl::string_view handle,
                    absl::string_view inputs = {});
// Ranked (ranked_internal.h) for the form with a resource, whose handle is a scalar; the other form
// is asked for nothing.
ShapeFn RankedOf(const HandleForm& form, absl::string_view ranks, ShapeFn rule);
// The attributes by which nodes share a resource.
OpSpec& SharedByName(OpSpec& spec);

// The last part of the name of the node: what nodes that use it are named after.
std::string LastPartOfName(const std::string& name);

}  // namespace weir

#endif  // WEIR_OPS_QUEUE_INTERNAL_H_
