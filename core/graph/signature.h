#ifndef WEIR_CORE_GRAPH_SIGNATURE_H_
#define WEIR_CORE_GRAPH_SIGNATURE_H_

#include "absl/types/span.h"
#include "weir/core/graph/op.h"

// Resolution of a signature's arguments for given attributes. Shared by NodeBuilder and import.
namespace weir {

// Returns true if the argument is a list of tensors.
inline bool IsListArg(const ArgSpec& arg) {
  return !arg.number_attr.empty() || !arg.type_list_attr.empty();
}

// Returns the number of tensors of the argument; 0 if the attribute that determines it is missing.
int64_t ArgLength(const ArgSpec& arg, const AttrMap& attrs);

// Adds the defaults of absent attributes and checks all attributes against the op. Returns
// INVALID_ARGUMENT for missing or invalid attributes, and for attributes that the op does not have,
// unless their names begin with '_'. With `unknown`, the latter are no error: it receives the name
// of the first of them.
absl::Status CompleteAttrs(const OpSpec& op, AttrMap* attrs, std::string* unknown = nullptr);

// Returns the types of all tensors of the arguments in order, including reference types. Returns
// INVALID_ARGUMENT if there are more than `limit`, or if an attribute does not yield a valid type.
absl::StatusOr<NodeTypes> ArgTypes(const OpSpec& op, absl::Span<const ArgSpec> args,
                                   const AttrMap& attrs, int64_t limit);

// Returns true if an input of type `wanted` takes an output of type `given`: the base types are
// equal, and a reference is given where one is wanted.
inline bool AcceptsType(DataType wanted, DataType given) {
  return BaseType(wanted) == BaseType(given) && (IsRef(given) || !IsRef(wanted));
}

// The maximum number of inputs or outputs of a node.
inline constexpr int64_t kMaxNodeArity = 1 << 20;

// Returns true if `name` is a valid node name: [A-Za-z0-9.][A-Za-z0-9_.\\/>-]*
bool IsNodeName(absl::string_view name);
bool IsFirstNodeNameChar(char c);
bool IsNodeNameChar(char c);

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_SIGNATURE_H_
