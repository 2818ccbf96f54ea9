#ifndef WEIR_CORE_PROTO_VALUES_H_
#define WEIR_CORE_PROTO_VALUES_H_

#include "weir/core/graph_io.h"

// The conversions of graph_io.h with a limit, for sources that read whole graphs from untrusted
// bytes.
namespace google::protobuf {
class MessageLite;
}

namespace weir::proto {
class NodeDef;
}

namespace weir {

// A few bytes on the wire may stand for a large tensor, because the last value repeats. `budget` is
// how many bytes such tensors may still take; what they take is subtracted, and RESOURCE_EXHAUSTED
// comes back when it is not enough.
inline constexpr int64_t kExpansionBudget = int64_t{1} << 31;
absl::StatusOr<Tensor> TensorFromProto(const proto::TensorProto& proto, int64_t* budget);
absl::StatusOr<AttrValue> AttrFromProto(const proto::AttrValue& proto, int64_t* budget);

// The record of a function's signature, so that a node may call the function as an op.
absl::StatusOr<OpSpec> OpFromProto(const proto::OpDef& def);

// ImportGraphDef, which takes the nodes' attributes out of `def` as it goes.
absl::StatusOr<Outputs> ImportAndClear(Graph& graph, proto::GraphDef* def,
                                       const ImportOptions& options = {});

void NodeToProto(const Node& node, proto::NodeDef* def);

// INVALID_ARGUMENT, naming the message's type, for bytes that are no such message.
absl::Status ParseBytes(absl::string_view bytes, google::protobuf::MessageLite* message);

// The same bytes for equal messages: maps are written in the order of their keys.
std::string DeterministicBytes(const google::protobuf::MessageLite& message);

}  // namespace weir

#endif  // WEIR_CORE_PROTO_VALUES_H_
