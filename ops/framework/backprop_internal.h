#ifndef WEIR_OPS_FRAMEWORK_BACKPROP_INTERNAL_H_
#define WEIR_OPS_FRAMEWORK_BACKPROP_INTERNAL_H_

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "weir/ops/framework/gradient_loops_internal.h"
#include "weir/ops/framework/gradients.h"

namespace weir {

// The gradient rule of a node (gradient_rule.cc).
struct GradientRule {
  const GradientFn* fn;     // empty: the op has no rule
  bool not_differentiable;  // the gradient stops here
};
// Returns the rule of a node. Returns NOT_FOUND, naming the node, if `_gradient_op_type` names a
// rule that is not registered.
absl::StatusOr<GradientRule> RuleOf(const Node& node);

// Reverse-mode differentiation of a graph.
//
// The first pass finds the nodes between the xs and the ys: those that are reachable from some x
// through differentiable tensors and from which some y is reachable. The second pass visits these
// nodes from the ys to the xs. A node becomes ready when all consumers of its outputs between the
// xs and the ys have been differentiated. Then the gradients that arrived at each output are
// summed, the op's gradient rule computes the gradients of the inputs, and these are propagated to
// the producers. The traversal ends at the xs (unless one x depends on another), at nodes whose op
// is not differentiable, and where no gradient arrives.
//
// The implementation uses a queue and arrays indexed by node id. It is linear in the part of the
// graph that the ys depend on and not recursive, so chains of a hundred thousand nodes work. The
// order of the traversal and the scopes and names of the new nodes are those of TensorFlow's
// tf.gradients, so that graphs can be compared node by node.
//
// A path through outputs of integer or string dtype carries no gradient; as in C++, integers carry
// that of an integer y. Differentiable outputs of a visited node that received no gradient get
// zeros, because gradient rules may rely on them.
class Backprop {
 public:
  Backprop(Graph& graph, const Outputs& ys, const Outputs& xs, const GradientsOptions& options)
      : graph_(graph), ys_(ys), xs_(xs), options_(options), loops_(graph) {}

  absl::StatusOr<Grads> Run();

 private:
  enum Mark : uint8_t { kReachesY = 1, kReachedFromX = 2, kBetween = 4, kQueued = 8, kStop = 16 };

  absl::Status Check() const;
  void FindNodesBetween();
  void FindLoops();
  void CountPending();
  void MarkStops();
  absl::Status Start();
  absl::StatusOr<Grad> InitialGrad(int i);
  absl::Status Visit(Node* node);
  absl::StatusOr<Grads> Differentiate(Node* node, const GradientFn& rule, Grads dys);
  absl::Status PropagateGrads(Node* node, Grads dxs);
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
  std::vector<int> pending_;  // unvisited consumers in between_, by node id
  std::vector<Node*> between_;
  std::vector<std::vector<Grads>> arrived_;  // by node id and output
  std::vector<std::vector<Grad>> summed_;    // sums of arrived_, set when the node is visited
  std::deque<Node*> queue_;
  GradientLoops loops_;
};

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_BACKPROP_INTERNAL_H_
