#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/backprop_internal.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/recovered_flow.h"

// Finds the nodes that a gradient passes through and reports nodes without a gradient rule.
namespace weir {

absl::Status Backprop::Check() const {
  if (!options_.grad_ys.empty() && options_.grad_ys.size() != ys_.size()) {
    return InvalidArgument("Gradients: length mismatch, ", options_.grad_ys.size(), " grad_ys for ",
                           ys_.size(), " ys");
  }
  for (const Outputs* list : {&ys_, &xs_, &options_.stop_gradients.outputs}) {
    for (const Output& o : *list) {
      if (!o.valid())
        return InvalidArgument("Gradients: an invalid output was given (did a builder fail?)");
      if (&o.graph() != &graph_)
        return InvalidArgument("Gradients: ", o.name(), " belongs to another graph");
    }
  }
  return absl::OkStatus();
}

// Searches backward from the ys, so that the cost depends only on the subgraph they depend on, then
// forward from the xs within that subgraph.
void Backprop::FindNodesBetween() {
  const int num_nodes = graph_.num_nodes();
  marks_.assign(num_nodes, 0);
  pending_.assign(num_nodes, 0);
  arrived_.resize(num_nodes);
  summed_.resize(num_nodes);
  std::vector<Node*> reaches_y;
  const auto add = [&](Node* node) {
    if (Has(node, kReachesY)) return;
    Set(node, kReachesY);
    reaches_y.push_back(node);
  };
  for (const Output& y : ys_) add(y.node);
  for (size_t i = 0; i < reaches_y.size(); ++i) {
    for (const Output& in : reaches_y[i]->inputs()) add(in.node);
  }

  // The consumers of node i are consumers[first[i]] to consumers[first[i + 1] - 1].
  std::vector<int> first(num_nodes + 2, 0);
  const bool carries_integers =
      options_.as_in_cpp &&
      std::any_of(ys_.begin(), ys_.end(), [](const Output& y) { return IsInteger(y.dtype()); });
  const auto for_each_edge = [&](const auto& fn) {
    for (Node* node : reaches_y) {
      for (const Output& in : node->inputs()) {
        if (IsTrainable(in.dtype()) || (carries_integers && IsInteger(in.dtype())))
          fn(in.node->id(), node);
      }
    }
  };
  for_each_edge([&](int from, Node*) { ++first[from + 2]; });
  for (int i = 2; i < num_nodes + 2; ++i) first[i] += first[i - 1];
  std::vector<Node*> consumers(first[num_nodes + 1]);
  for_each_edge([&](int from, Node* to) { consumers[first[from + 1]++] = to; });

  std::vector<Node*> reached;
  const auto reach = [&](Node* node) {
    if (!Has(node, kReachesY) || Has(node, kReachedFromX)) return;
    Set(node, kReachedFromX);
    reached.push_back(node);
  };
  for (const Output& x : xs_) reach(x.node);
  for (size_t i = 0; i < reached.size(); ++i) {
    const int id = reached[i]->id();
    for (int k = first[id]; k < first[id + 1]; ++k) reach(consumers[k]);
  }

  const auto between = [&](Node* node) {
    if (!Has(node, kReachedFromX) || Has(node, kBetween)) return;
    Set(node, kBetween);
    between_.push_back(node);
  };
  for (const Output& y : ys_) between(y.node);
  for (size_t i = 0; i < between_.size(); ++i) {
    for (const Output& in : between_[i]->inputs()) between(in.node);
  }
}

// Builds the gradient loops. If the gradient passes through one Exit of a loop, it passes through
// all Exits of that loop.
void Backprop::FindLoops() {
  const FlowStack& stack = FlowStack::Of(graph_);
  if (std::any_of(between_.begin(), between_.end(), [&stack](const Node* node) {
        return IsLoopExit(node) && stack.ContextOf(node) == nullptr;
      })) {
    RecoverFlow(graph_);
  }
  for (size_t i = 0; i < between_.size(); ++i) {
    if (!IsLoopExit(between_[i])) continue;
    std::optional<ColocateWith> colocate;
    if (options_.colocate_gradients_with_ops) colocate.emplace(graph_, between_[i]);
    for (Node* exit : loops_.Add(between_[i])) {
      if (exit->id() >= static_cast<int>(marks_.size()) || Has(exit, kBetween)) continue;
      Set(exit, kBetween);
      between_.push_back(exit);
    }
  }
}

void Backprop::CountPending() {
  for (const Node* node : between_) {
    for (const Output& in : node->inputs()) {
      if (Has(in.node, kBetween)) ++pending_[in.node->id()];
    }
  }
}

// Marks the nodes at which the traversal stops: the stop_gradients, and each x that does not depend
// on another x.
void Backprop::MarkStops() {
  for (const Output& x : xs_) {
    const auto inputs = x.node->inputs();
    const bool depends_on_x = std::any_of(inputs.begin(), inputs.end(), [&](const Output& in) {
      return pending_[in.node->id()] > 0;
    });
    if (!depends_on_x) Set(x.node, kStop);
  }
  for (const Output& stop : options_.stop_gradients.outputs) Set(stop.node, kStop);
}

// Returns the node names on a shortest path within between_ from `from` to a node that satisfies
// `done`.
std::vector<std::string> Backprop::PathTo(const Node* from,
                                          const std::function<bool(const Node*)>& done,
                                          bool toward_ys) const {
  absl::flat_hash_map<const Node*, std::vector<const Node*>> edges;
  for (const Node* node : between_) {
    for (const Output& in : node->inputs()) {
      if (!Has(in.node, kBetween)) continue;
      if (toward_ys) {
        edges[in.node].push_back(node);
      } else {
        edges[node].push_back(in.node);
      }
    }
  }
  absl::flat_hash_map<const Node*, const Node*> came_from{{from, nullptr}};
  std::deque<const Node*> queue{from};
  while (!queue.empty()) {
    const Node* node = queue.front();
    queue.pop_front();
    if (done(node)) {
      std::vector<std::string> names;
      for (; node != nullptr; node = came_from[node]) names.push_back(node->name());
      return names;
    }
    for (const Node* next : edges[node]) {
      if (came_from.try_emplace(next, node).second) queue.push_back(next);
    }
  }
  return {from->name()};
}

absl::Status Backprop::NoGradient(const Node* node) const {
  if (options_.as_in_cpp) {
    return NotFound("No gradient defined for op: ", node->op_name(),
                    ". Please see https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md"
                    " for instructions on how to add C++ gradients.");
  }
  const auto is_one_of = [](const Outputs& list) {
    return [&list](const Node* n) {
      return std::any_of(list.begin(), list.end(), [&](const Output& o) { return o.node == n; });
    };
  };
  std::vector<std::string> path = PathTo(node, is_one_of(ys_), /*toward_ys=*/true);
  std::vector<std::string> to_x = PathTo(node, is_one_of(xs_), /*toward_ys=*/false);
  path.insert(path.end(), to_x.rbegin() + 1, to_x.rend());
  constexpr size_t kShown = 12;
  if (path.size() > kShown) path.erase(path.begin() + kShown / 2, path.end() - kShown / 2);
  return Unimplemented(
      "No gradient defined for operation '", node->name(), "' (op type: ", node->op_name(),
      "), which is on a path between ys and xs: ", absl::StrJoin(path, " <- "),
      ". Insert StopGradient to treat it as a constant, or add a gradient rule to its op.");
}

// Returns an error if some node was not visited. This happens only if the nodes are on a cycle: a
// loop whose structure is unknown.
absl::Status Backprop::CheckAllVisited() const {
  if (!loops_.empty()) return absl::OkStatus();
  for (const Node* node : between_) {
    if (pending_[node->id()] > 0) {
      return Unimplemented("Gradients of a value inside a loop are not defined: '", node->name(),
                           "' (op type: ", node->op_name(),
                           ") is on a cycle between ys and xs. Differentiate the output of the "
                           "loop's Exit instead.");
    }
  }
  return absl::OkStatus();
}

}  // namespace weir
