#ifndef WEIR_CORE_IMPORT_NODES_H_
#define WEIR_CORE_IMPORT_NODES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/graph/op.h"

namespace weir::proto {
class GraphDef;
class NodeDef;
}  // namespace weir::proto

namespace weir {

// The parts of a NodeDef that determine its edges: views of the GraphDef.
struct NodeHeader {
  absl::string_view name, op;
  absl::Span<const absl::string_view> inputs;
  const OpSpec* spec = nullptr;  // null if the registry lacks the op
};

// Splits a serialized GraphDef: returns views of its serialized nodes, and parses all other fields
// into `rest`. Returns INVALID_ARGUMENT, with the byte of the damaged field.
absl::StatusOr<std::vector<absl::string_view>> SplitGraph(absl::string_view bytes,
                                                          proto::GraphDef* rest);

// The nodes of a GraphDef, which are messages or serialized. Import needs the headers of all nodes
// before it adds the first one, but one NodeDef at a time.
class ImportNodes {
 public:
  // The nodes of a message that outlives this object.
  explicit ImportNodes(const proto::GraphDef& def);
  // Same, for a message that is no longer needed: Release clears the attributes of a node.
  static ImportNodes Clearing(proto::GraphDef* def);
  // Serialized nodes, views of bytes that outlive this object.
  explicit ImportNodes(std::vector<absl::string_view> serialized);
  ~ImportNodes();
  ImportNodes(ImportNodes&& other) noexcept;

  // Reads the headers and finds the ops. Returns INVALID_ARGUMENT for a malformed node.
  absl::Status ReadHeaders(const OpRegistry& ops);
  absl::Span<const NodeHeader> headers() const { return headers_; }

  // Returns a node, valid until the next call. Returns INVALID_ARGUMENT for a malformed one.
  absl::StatusOr<const proto::NodeDef*> Parse(int i);
  // Frees memory that only Parse(i) needs.
  void Release(int i);

 private:
  bool ReadHeader(absl::string_view bytes, NodeHeader* header);

  const proto::GraphDef* def_ = nullptr;  // null if the nodes are serialized
  proto::GraphDef* cleared_ = nullptr;    // def_, if its attributes may be cleared
  std::vector<absl::string_view> serialized_;
  std::unique_ptr<proto::NodeDef> parsed_;  // from one of serialized_
  std::vector<NodeHeader> headers_;
  std::vector<absl::string_view> inputs_;  // of all nodes, concatenated
};

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_NODES_H_
