#ifndef WEIR_SESSION_MODEL_RESTORE_GRAPH_INFO_H_
#define WEIR_SESSION_MODEL_RESTORE_GRAPH_INFO_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/graph/graph.h"
#include "weir/core/runtime/resource.h"
#include "weir/core/tensor/mutex.h"

namespace weir {

// The effects of a restore op, according to the graph and the session's variables: which nodes read
// from a checkpoint, and to which variables their values are assigned. Immutable.
struct RestoreGraphInfo {
  // The path of a value to an assignment.
  struct AssignPath {
    const Node* assign = nullptr;
    int variable = -1;                  // whose handle the assignment takes directly; -1: none
    bool is_sole_use = false;           // setting the variable directly is equivalent
    std::vector<const Node*> reshapes;  // in order from the reading node to the assignment
  };
  // A node that the restore op groups, and the path that ends there, if any.
  struct FinalNode {
    Node* node = nullptr;
    int path = -1;
  };

  Operation restore;
  size_t changes_seen = 0;     // the number of changes of the graph so far
  std::vector<Node*> readers;  // RestoreV2 and its older variants
  std::vector<AssignPath> paths;
  // By output of the readers, in the order of the readers: the index of its first path. A final
  // entry holds the number of paths.
  std::vector<int> first_path;
  std::vector<FinalNode> final_nodes;
  // Nodes that create handles or references, and the state behind each; null where there is none.
  std::vector<Node*> variables;
  std::vector<std::shared_ptr<VariableState>> states;
  std::shared_ptr<const std::vector<std::string>>
      assigned;  // names of nodes that are assigned a value

  // Returns the analysis of `restore` for this session: the cached one if it is still valid, else a
  // new one. A new one takes a walk over all nodes on which `restore` depends, and two look-ups per
  // variable. `run` runs the nodes of variables that have no state yet, which creates it.
  static absl::StatusOr<std::shared_ptr<const RestoreGraphInfo>> Of(
      const Graph& graph, Node* restore, ResourceMap& resources,
      absl::FunctionRef<absl::Status(const std::vector<Operation>&)> run);
};

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_RESTORE_GRAPH_INFO_H_
