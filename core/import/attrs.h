#ifndef WEIR_CORE_IMPORT_ATTRS_H_
#define WEIR_CORE_IMPORT_ATTRS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "weir/core/import/edges.h"

namespace weir::proto {
class NodeDef;
}

namespace weir {

// The attribute with the inferred shapes. Import merges them into the shapes of the outputs, and
// does not keep the attribute.
inline constexpr absl::string_view kOutputShapesAttr = "_output_shapes";

// Returns the attributes of a node of a known op: all of the NodeDef and the op's defaults, checked
// against the op. The value of a Const that is damaged becomes an uninitialized tensor, and
// `_value_error` says why. `budget` is that of AttrFromProto, `unknown` that of CompleteAttrs.
absl::StatusOr<AttrMap> ImportAttrs(const proto::NodeDef& def, const OpSpec& op, int64_t* budget,
                                    std::string* unknown = nullptr);
// Returns the attributes that can be parsed, for a node of an unknown op. Export writes the others
// from the stored NodeDef.
AttrMap ReadableAttrs(const proto::NodeDef& def, int64_t* budget);
// Returns true for a Const whose value was damaged.
bool HasDamagedValue(const Node& node);

// Prepends `prefix` to the names in the marks "loc:@name" of `_class`, if there are any. Such a
// name is that of a node of the GraphDef, or, without a prefix, of the graph: an earlier import may
// have added it. Returns INVALID_ARGUMENT, with the name of the marked node, for any other name.
absl::Status PrefixColocations(absl::string_view node, absl::string_view prefix,
                               const NodePositions& positions, const Graph& graph, AttrMap* attrs);

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_ATTRS_H_
