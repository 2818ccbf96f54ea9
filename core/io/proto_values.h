#ifndef WEIR_CORE_IO_PROTO_VALUES_H_
#define WEIR_CORE_IO_PROTO_VALUES_H_

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "weir/core/io/graph_io.h"

// The conversions of graph_io.h with a memory limit, for callers that read whole graphs from
// untrusted bytes.
namespace google::protobuf {
class MessageLite;
}

namespace weir::proto {
class NodeDef;
}

namespace weir {

// A few bytes on the wire can expand to a large tensor, because the last value repeats. `budget` is
// the number of bytes that such tensors may still take. The conversion subtracts what it uses, and
// returns RESOURCE_EXHAUSTED if the budget is too small.
inline constexpr int64_t kExpansionBudget = int64_t{1} << 31;
absl::StatusOr<Tensor> TensorFromProto(const proto::TensorProto& proto, int64_t* budget);
absl::StatusOr<AttrValue> AttrFromProto(const proto::AttrValue& proto, int64_t* budget);

// Returns the entries of a map of attributes, sorted by name. Added in this order, each becomes the
// last of an AttrMap; in another order, a hundred thousand of them would take ten seconds.
template <class Map>
absl::InlinedVector<const typename Map::value_type*, 8> SortedAttrs(const Map& attrs) {
  absl::InlinedVector<const typename Map::value_type*, 8> sorted;
  for (const auto& attr : attrs) sorted.push_back(&attr);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  return sorted;
}

// Writes all elements to the typed field of their dtype (float_val), which clients of TensorFlow
// Serving read directly.
void TensorToProtoFields(const Tensor& tensor, proto::TensorProto* proto);

// Returns the record of a function's signature, which allows nodes to call the function like an op.
absl::StatusOr<OpSpec> OpFromProto(const proto::OpDef& def);

// Same as ImportGraphDef, but clears the attributes of nodes in `def` after use.
absl::StatusOr<Outputs> ImportAndClear(Graph& graph, proto::GraphDef* def,
                                       const ImportOptions& options = {});

void NodeToProto(const Node& node, proto::NodeDef* def);

// Returns INVALID_ARGUMENT, with the message type, if the bytes cannot be parsed.
absl::Status ParseBytes(absl::string_view bytes, google::protobuf::MessageLite* message);

// Serializes deterministically: map entries are sorted by key, so equal messages have equal bytes.
std::string DeterministicBytes(const google::protobuf::MessageLite& message);

}  // namespace weir

#endif  // WEIR_CORE_IO_PROTO_VALUES_H_
