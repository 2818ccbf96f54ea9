#ifndef WEIR_OPS_BACKPROP_INTERNAL_H_
#define WEIR_OPS_BACKPROP_INTERNAL_H_

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "weir/ops/gradient_loops_internal.h"
#include "weir/ops/gradients.h"

namespace weir {

// How a node is differentiated (gradient_rule.cc).
struct GradientRule {
  const GradientFn* fn;     // empty: the op has no rule
  bool not_differentiable;  // the gradient stops here
};
// NOT_FOUND, naming the node, if `_gradient_op_type` names a rule that nobody registered.
absl::StatusOr<GradientRule> RuleOf(const Node& node);

// Reverse-mode differentiation of a graph.
//
// First the nodes that matter are found: those that some x reaches through differentiable tensors
// and that reach some y. They are walked from the ys to the xs. A node waits until every consumer
// of its outputs that matters has been differentiated; then what arrived at each output is summed,
// the rule of its op is asked for the gradients of its inputs, and these are handed on. The walk
// ends at the xs (unless one x depends on another), at nodes whose op is not differentiable, and
// where no gradient arrives.
//
// All of it is a queue and arrays indexed by node id: linear in the part of the graph behind the
// ys, and no recursion, so that chains of a hundred thousand nodes are fine. The order of the walk,
// the scopes and the names of the nodes it makes are those of TensorFlow's tf.gradients, so that
// graphs can be compared node by node.
//
// A path through the outputs of integer or string type carries no gradient. Outputs of a visited
// node that got none, but could have, get zeros, since rules may rely on them.
class Backprop {
 public:
  Backprop(Graph& graph, const Outputs& ys, const Outputs& xs, const GradientsOptions& options)
      : graph_(graph), ys_(ys), xs_(xs), options_(options), loops_(graph) {}

  absl::StatusOr<Grads> Run();

 private:
  enum Mark : uint8_t { kBehindY = 1, kReached = 2, kBetween = 4, kQueued = 8, kStop = 16 };

  absl::Status Check() const;
  void FindNodesBetween();
  void FindLoops();
  void CountPending();
  void FindStops();
  absl::Status Start();
  absl::StatusOr<Grad> InitialGrad(int i);
  absl::Status Visit(Node* node);
  absl::StatusOr<Grads> Differentiate(Node* node, const GradientFn& rule, Grads dys);
  absl::Status HandOn(Node* node, Grads dxs);
  Grads TakeGrads(Node* node);
  void Enqueue(Node* node);
  void EnqueueExits();
  void EnqueueExit(Node* exit);
  void StartFromExit(Node* exit);
  bool HasGrads(const Node* node) const;
  Grad Sum(Node* node, const Grads& parts);
  absl::Status NoGradient(const Node* node) const;
  std::vector<std::string> PathTo(const Node* from, const std::function<bool(const Node*)>& done,
                                  bool toward_ys) const;
  absl::Status CheckAllVisited() const;
  Grads Results();

  bool Has(const Node* node, Mark mark) const { return (marks_[node->id()] & mark) != 0; }
  void Set(const Node* node, Mark mark) { marks_[node->id()] |= mark; }

  Graph& graph_;
  const Outputs& ys_;
  const Outputs& xs_;
  const GradientsOptions& options_;
  std::vector<uint8_t> marks_;
  std::vector<int> pending_;  // consumers between that have not been visited, by node id
  std::vector<Node*> between_;
  std::vector<std::vector<Grads>> arrived_;  // by node id and output
  std::vector<std::vector<Grad>> summed_;    // the same once the node was visited
  std::deque<Node*> queue_;
  GradientLoops loops_;
};

}  // namespace weir

#endif  // WEIR_OPS_BACKPROP_INTERNAL_H_
