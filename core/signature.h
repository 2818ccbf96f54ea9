#ifndef WEIR_CORE_SIGNATURE_H_
#define WEIR_CORE_SIGNATURE_H_

#include "absl/types/span.h"
#include "weir/core/op.h"

// What the arguments of a signature come to once a node's attributes are known. Shared by
// NodeBuilder and by import.
namespace weir {

// True if the argument takes or gives a list of tensors.
inline bool IsListArg(const ArgSpec& arg) {
  return !arg.number_attr.empty() || !arg.type_list_attr.empty();
}

// How many tensors the argument stands for; 0 if the attribute that says so is missing.
int64_t ArgLength(const ArgSpec& arg, const AttrMap& attrs);

// Fills in the defaults of attributes that are absent and checks all against the op.
// INVALID_ARGUMENT for a missing or wrong attribute, and for one that the op does not have, unless
// its name begins with '_'.
absl::Status CompleteAttrs(const OpSpec& op, AttrMap* attrs);

// The types of all tensors of the arguments in order, reference types as such. INVALID_ARGUMENT if
// there are more than `limit`, or if an attribute gives no usable type.
absl::StatusOr<NodeTypes> ArgTypes(const OpSpec& op, absl::Span<const ArgSpec> args,
                                   const AttrMap& attrs, int64_t limit);

// Most inputs or outputs that a node may have.
inline constexpr int64_t kMaxNodeArity = 1 << 20;

// True if `name` may be a node's: [A-Za-z0-9.][A-Za-z0-9_.\\/>-]*
bool IsNodeName(absl::string_view name);
bool IsFirstNodeNameChar(char c);
bool IsNodeNameChar(char c);

}  // namespace weir

#endif  // WEIR_CORE_SIGNATURE_H_
