#include "weir/session/model/ancestors.h"

namespace weir {

absl::flat_hash_set<const Node*> Ancestors(const std::vector<const Node*>& nodes) {
  absl::flat_hash_set<const Node*> found(nodes.begin(), nodes.end());
  std::vector<const Node*> queue = nodes;
  while (!queue.empty()) {
    const Node* const node = queue.back();
    queue.pop_back();
    const auto visit = [&](const Node* input) {
      if (found.insert(input).second) queue.push_back(input);
    };
    for (const Output& input : node->inputs()) visit(input.node);
    for (const Node* control : node->control_inputs()) visit(control);
  }
  return found;
}

}  // namespace weir
