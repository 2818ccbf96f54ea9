#include "weir/core/import/transaction.h"

#include <algorithm>
#include <iterator>

namespace weir {

ImportTransaction::ImportTransaction(Graph& graph)
    : graph_(graph), num_nodes_before_(graph.nodes_.size()), versions_before_(graph.versions_) {}

ImportTransaction::~ImportTransaction() {
  if (committed_) return;
  for (const auto& node : added()) graph_.names_.Remove(node.get());
  graph_.nodes_.resize(num_nodes_before_);
  graph_.versions_ = versions_before_;
}

void ImportTransaction::Reserve(size_t num_nodes) {
  graph_.nodes_.reserve(num_nodes_before_ + num_nodes);
  graph_.names_.Reserve(graph_.names_.size() + num_nodes);
}

std::unique_ptr<Node> ImportTransaction::NewNode(absl::string_view prefix, absl::string_view name,
                                                 absl::string_view device) {
  auto node = std::make_unique<Node>();
  node->graph_ = &graph_;
  node->id_ = graph_.num_nodes();
  node->name_.reserve(prefix.size() + name.size());
  node->name_.append(prefix.data(), prefix.size()).append(name.data(), name.size());
  graph_.SetInternedDevice(node.get(), device);
  return node;
}

Node* ImportTransaction::Add(std::unique_ptr<Node> node) {
  graph_.names_.Add(node.get());
  graph_.nodes_.push_back(std::move(node));
  return graph_.nodes_.back().get();
}

const UnknownOp* ImportTransaction::AddUnknownOp(std::unique_ptr<const UnknownOp> op) {
  unknown_ops_.push_back(std::move(op));
  return unknown_ops_.back().get();
}

void ImportTransaction::Commit(std::shared_ptr<const FunctionLibrary> functions) {
  committed_ = true;
  for (const auto& node : added()) ReserveName(node->name());
  graph_.set_functions(std::move(functions));
  if (unknown_ops_.empty()) return;
  auto& ops = graph_.Extension<UnknownOps>().ops;
  std::move(unknown_ops_.begin(), unknown_ops_.end(), std::back_inserter(ops));
}

// Reserves the name and its enclosing scopes.
void ImportTransaction::ReserveName(absl::string_view name) {
  graph_.names_.Take(name);
  for (size_t slash = name.rfind('/'); slash != absl::string_view::npos && slash > 0;
       slash = name.rfind('/', slash - 1)) {
    if (!graph_.names_.Take(name.substr(0, slash))) return;
  }
}

}  // namespace weir
