#ifndef WEIR_SESSION_RESTORE_PLAN_H_
#define WEIR_SESSION_RESTORE_PLAN_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/graph.h"
#include "weir/core/resource.h"

namespace weir {

// What restoring does, as far as the graph and the session's variables say: which nodes read from a
// checkpoint, and which variables their values go to. Not changed once it is made.
struct RestorePlan {
  // A value's path to an assignment.
  struct AssignPath {
    const Node* assign = nullptr;
    int variable = -1;                  // whose handle the assignment takes as it is made
    bool stands_alone = false;          // to set the variable comes to the same
    std::vector<const Node*> reshapes;  // in the order in which the value passes them
  };
  // A node that the restore op stands for, and the path that ends there, if any.
  struct Last {
    Node* node = nullptr;
    int path = -1;
  };

  Operation restore;
  size_t changes_seen = 0;     // of the graph
  std::vector<Node*> readers;  // RestoreV2 and its like
  std::vector<AssignPath> paths;
  // By output of the readers, one reader's after another: its first path. One more ends the last
  // one's.
  std::vector<int> first_way;
  std::vector<Last> lasts;
  // Nodes that make handles, and the state behind each; null where there is none.
  std::vector<Node*> variables;
  std::vector<std::shared_ptr<VariableState>> states;
  std::shared_ptr<const std::vector<std::string>> assigned;  // names of nodes that get values

  // Restoring in this session by that node: the plan of the last time, if it still holds, else a
  // new one. A walk over all that the node waits for, and two look-ups for each variable. `run`
  // runs the nodes of variables that have no state yet, which makes them one.
  static absl::StatusOr<std::shared_ptr<const RestorePlan>> Of(
      const Graph& graph, Node* restore, ResourceMap& resources,
      absl::FunctionRef<absl::Status(const std::vector<Operation>&)> run);
};

}  // namespace weir

#endif  // WEIR_SESSION_RESTORE_PLAN_H_
