#ifndef WEIR_OPS_GRADIENT_LOOPS_INTERNAL_H_
#define WEIR_OPS_GRADIENT_LOOPS_INTERNAL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/gradient.h"
#include "weir/ops/control_flow.h"
#include "weir/ops/flow_context.h"

// Loops that gradients are computed in. For gradients.cc, and for the gradient rules of the nodes
// that loops and branches are made of.
namespace weir {

// The gradient of a loop: a loop that goes through the iterations of that one, last one first. It
// counts them, and keeps on stacks what it needs of each.
class GradientLoop {
 public:
  // Adds the counters to both. `outer` is the gradient of the loop around `forward`, or null;
  // `base` the context that Gradients was called in.
  GradientLoop(Graph& graph, FlowContext* forward, GradientLoop* outer, FlowContext* base);
  // Makes the loop; once it is owned by its context.
  static std::shared_ptr<GradientLoop> Make(Graph& graph, FlowContext* forward, GradientLoop* outer,
                                            FlowContext* base);

  FlowContext* forward() const { return forward_; }
  FlowContext* backward() const { return backward_; }
  GradientLoop* outer() const { return outer_; }

  // A value of an iteration of the forward loop, in the iteration that goes back through it. Named
  // after `user`.
  Output RealValue(const Output& value, const std::string& user);
  // The predicate of a branch in the forward loop, likewise.
  Output RealPredicate(const Output& pred);
  // A stack that has `value` of each iteration of the forward loop. `dead_branch`: of the side that
  // was not taken.
  Output Push(const Output& value, bool dead_branch = false);
  // The value of the iteration at hand, from that stack.
  Output Pop(const Output& stack, const Output& value, bool dead_branch = false);

  // The first value of a variable of the loop, which has this shape in all iterations.
  Output Enter(const Output& value, const Shape& shape, absl::string_view name) const;
  // The sum over all iterations of the gradients of what a constant Enter brings in.
  Grad Accumulate(const Node& enter, const Grad& grad);

  // The Merges in which gradients go round, by the Switch of the forward loop.
  absl::flat_hash_map<const Node*, Output>& merges() { return merges_; }
  // If the gradient of a variable does not depend on what it was an iteration later, zeros go
  // round.
  void Finish();

 private:
  Output AddForwardCounter();
  void AddBackwardCounter(Output count);
  void CountBackward(Output count, Output one);
  Node* ForwardSync();
  Node* BackwardSync();
  Node* ControlTrigger(absl::string_view name, FlowContext* context);
  Output PushIn(FlowContext* context, const Output& stack, const Output& value);
  Output ZerosToAccumulate(const Node& enter, const Output& grad);
  Grad AccumulateRows(const Node& enter, const IndexedSlices& rows);
  Outputs Accumulated(const Outputs& starts, const std::vector<Shape>& shapes,
                      const std::function<Outputs(const Outputs&)>& next);
  FlowContext* AroundBackward() const {
    return backward_->outer != nullptr ? backward_->outer : base_;
  }

  Graph& g_;
  FlowStack& stack_;
  FlowContext* const forward_;
  FlowContext* backward_ = nullptr;
  GradientLoop* const outer_;
  FlowContext* const base_;
  Output forward_index_, backward_index_;  // the counters' NextIterations
  Node *forward_sync_ = nullptr, *backward_sync_ = nullptr;
  absl::flat_hash_map<Output, Output> history_;
  absl::flat_hash_map<const Node*, Output> merges_;
};

// The loops that one call of Gradients goes back through.
class GradientLoops {
 public:
  explicit GradientLoops(Graph& graph);

  bool empty() const { return loops_.empty(); }
  // Makes the gradient of the loop that this Exit leaves, if it is not there yet, and returns the
  // Exits of that loop.
  std::vector<Node*> Add(const Node* exit);
  // The loop that the gradient of a node is computed in; null if in none. `before`: that the
  // gradients of its outputs are summed in.
  GradientLoop* Of(const Node* node, bool before) const;
  // Zeros for an output that no gradient came to; invalid if it needs none.
  Output ZerosFor(const Output& y);
  // Zeros for an Exit whose loop has gradients of other variables.
  Output ZerosForExit(const Output& exit);
  void Finish();

  // How many Exits of a loop have not been reached, and those that got nothing.
  struct Exits {
    GradientLoop* loop;
    std::vector<Node*> all, deferred, unused;
    int pending = 0;
  };
  std::vector<std::unique_ptr<Exits>>& exits() { return exits_; }
  Exits* ExitsOf(const Node* exit) const;

 private:
  Graph& g_;
  FlowStack& stack_;
  FlowContext* const base_;
  absl::flat_hash_map<const FlowContext*, std::shared_ptr<GradientLoop>> loops_;
  std::vector<std::unique_ptr<Exits>> exits_;
};

// An Exit; an Exit or a Switch of a loop that was built here.
bool IsLoopExit(const Node* node);
bool IsLoopSwitch(const Node* node);

// A Switch beside what it switches.
SwitchResult SwitchBeside(const Output& value, const Output& pred, absl::string_view name);
// The shape of a tensor, or of the variable that a handle is to.
Output DynamicShape(const Output& value);

// The gradient rules (control_flow_gradients.cc).
Grads SwitchGradient(GradContext& g);
Grads MergeGradient(GradContext& g);
Grads EnterGradient(GradContext& g);
Grads ExitGradient(GradContext& g);

}  // namespace weir

#endif  // WEIR_OPS_GRADIENT_LOOPS_INTERNAL_H_
