#ifndef WEIR_OPS_FRAMEWORK_GRADIENT_LOOPS_INTERNAL_H_
#define WEIR_OPS_FRAMEWORK_GRADIENT_LOOPS_INTERNAL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/graph/gradient.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/flow_context.h"

// Gradient loops. Used by gradients.cc and by the gradient rules of control flow nodes.
namespace weir {

// The gradient of a loop: a loop over the iterations of the forward loop in reverse order. It
// counts the iterations and keeps the values it needs from each on stacks.
class GradientLoop {
 public:
  // Adds the counters to both loops. `outer` is the gradient of the loop around `forward`, or null;
  // `base` is the context in which Gradients was called.
  GradientLoop(Graph& graph, FlowContext* forward, GradientLoop* outer, FlowContext* base);
  // Creates the loop, owned by its context.
  static std::shared_ptr<GradientLoop> Make(Graph& graph, FlowContext* forward, GradientLoop* outer,
                                            FlowContext* base);

  FlowContext* forward() const { return forward_; }
  FlowContext* backward() const { return backward_; }
  GradientLoop* outer() const { return outer_; }

  // Returns the value of `value`, a tensor of the forward loop, from the forward iteration that
  // corresponds to the current backward iteration. New nodes are named after `user`.
  Output RealValue(const Output& value, const std::string& user);
  // Like RealValue, for the predicate of a branch in the forward loop.
  Output RealPredicate(const Output& pred);
  // Pushes `value` on a stack in each iteration of the forward loop and returns the stack.
  // `dead_branch`: the value belongs to the side that was not taken.
  Output Push(const Output& value, bool dead_branch = false);
  // Pops the value of the current iteration from that stack.
  Output Pop(const Output& stack, const Output& value, bool dead_branch = false);

  // Adds the Enter of a loop variable with the initial value `value`. The variable has this shape
  // in all iterations.
  Output Enter(const Output& value, const Shape& shape, absl::string_view name) const;
  // Returns the sum over all iterations of the gradients of a constant Enter.
  Grad Accumulate(const Node& enter, const Grad& grad);

  // The Merges of the loop-carried gradients, keyed by the Switch of the forward loop.
  absl::flat_hash_map<const Node*, Output>& merges() { return merges_; }
  // Sets the loop-carried gradient of a variable to zeros if the gradient does not depend on the
  // variable's value in the next iteration.
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
  Outputs AddAccumulators(const Outputs& starts, const std::vector<Shape>& shapes,
                          const std::function<Outputs(const Outputs&)>& next);
  FlowContext* OuterContext() const {
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

// The loops that one call of Gradients differentiates.
class GradientLoops {
 public:
  explicit GradientLoops(Graph& graph);

  bool empty() const { return loops_.empty(); }
  // Creates the gradient of the loop that this Exit leaves, unless it exists, and returns the Exits
  // of that loop.
  std::vector<Node*> Add(const Node* exit);
  // Returns the gradient loop in which the gradient of a node is computed, or null. With `before`,
  // returns the loop in which the gradients of its outputs are summed.
  GradientLoop* LoopOf(const Node* node, bool before) const;
  // Returns zeros for an output without a gradient; invalid if it needs none.
  Output ZerosFor(const Output& y);
  // Returns zeros for an Exit whose loop has gradients of other variables.
  Output ZerosForExit(const Output& exit);
  void Finish();

  // The number of Exits of a loop that have not been reached, and the Exits without a gradient.
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

// Return whether the node is an Exit, and whether it is a Switch of a loop.
bool IsLoopExit(const Node* node);
bool IsLoopSwitch(const Node* node);

// Adds a Switch colocated with its input.
SwitchResult SwitchBeside(const Output& value, const Output& pred, absl::string_view name);
// Returns the shape of a tensor, or of the variable that a handle refers to.
Output DynamicShape(const Output& value);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_GRADIENT_LOOPS_INTERNAL_H_
