#ifndef WEIR_CORE_IMPORT_TRANSACTION_H_
#define WEIR_CORE_IMPORT_TRANSACTION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/graph/graph.h"
#include "weir/core/graph/unknown_op.h"

namespace weir {

// The changes of one import to a graph. Until Commit, the graph only has additional nodes at the
// end and other versions; the destructor of a transaction that was not committed drops the nodes
// and restores the versions. Meanwhile, nothing else changes the graph.
class ImportTransaction {
 public:
  explicit ImportTransaction(Graph& graph);
  ~ImportTransaction();
  ImportTransaction(const ImportTransaction&) = delete;
  ImportTransaction& operator=(const ImportTransaction&) = delete;

  // Expects this many nodes.
  void Reserve(size_t num_nodes);
  // Returns a node without an op; Add adds it to the graph. Its name, prefix included, is new.
  std::unique_ptr<Node> NewNode(absl::string_view prefix, absl::string_view name,
                                absl::string_view device);
  // Sets the attributes; shares them with the op's last node if they are equal.
  void SetAttrs(Node* node, AttrMap attrs) { graph_.SetSharedAttrs(node, std::move(attrs)); }
  Node* Add(std::unique_ptr<Node> node);
  // Keeps the record of a node's op.
  const UnknownOp* AddUnknownOp(std::unique_ptr<const UnknownOp> op);

  absl::Span<const std::unique_ptr<Node>> added() const {
    return graph_.nodes().subspan(num_nodes_before_);
  }
  bool has_unknown_ops() const { return !unknown_ops_.empty(); }

  // Reserves the names of the nodes and their scopes, and keeps all changes. `functions` becomes
  // the graph's library.
  void Commit(std::shared_ptr<const FunctionLibrary> functions);

 private:
  void ReserveName(absl::string_view name);

  Graph& graph_;
  const size_t num_nodes_before_;
  const GraphVersions versions_before_;
  std::vector<std::unique_ptr<const UnknownOp>> unknown_ops_;
  bool committed_ = false;
};

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_TRANSACTION_H_
