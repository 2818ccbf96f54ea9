#ifndef WEIR_OPS_FLOW_CONTEXT_H_
#define WEIR_OPS_FLOW_CONTEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/graph.h"

// Branches (ops/cond.h) and loops (ops/while_loop.h): which node belongs to which, while they are
// built and afterward, when their gradients are.
namespace weir {

class GradientLoop;  // ops/gradient_loops_internal.h

class FlowStack;

// A branch or a loop. Outermost ones are in the collections "cond_context" and "while_context".
struct FlowContext : public CollectionObject {
  enum class Kind { kBranch, kLoop };
  Kind kind = Kind::kBranch;
  // The one that it lies in; null if none.
  FlowContext* outer = nullptr;
  // Runs whenever the branch is taken, or in every iteration: what has no inputs waits for it.
  Node* pivot = nullptr;

  // Of a branch: the predicate, and which output of a Switch it sees (1 if it is for true).
  Output pred = {};
  int side = 0;
  std::string branch_name = {};
  // Of a loop; `condition` is the output of its LoopCond, and `pivot_for_pred` the pivot of what it
  // is computed from.
  std::string frame_name = {};
  Node* pivot_for_pred = nullptr;
  Output maximum_iterations = {};
  int64_t parallel_iterations = 10;
  Output condition = {};
  Outputs enters = {}, exits = {};
  // A loop that goes back through the iterations of another one; else null.
  std::shared_ptr<GradientLoop> gradient = nullptr;

  // Values from outside, as they are known inside.
  absl::flat_hash_map<Output, Output> seen = {};

  // The contexts of its graph.
  const FlowStack* stack = nullptr;

  std::string name() const override { return kind == Kind::kLoop ? frame_name : branch_name; }
  // The bytes of a CondContextDef or a WhileContextDef, with the contexts in it.
  std::string Serialize() const;
  // True if `inner` is this one or lies in it.
  bool Contains(const FlowContext* inner) const {
    while (inner != nullptr && inner != this) inner = inner->outer;
    return inner == this;
  }
};

// The innermost loop around a context (itself included); null if there is none.
FlowContext* LoopAround(FlowContext* context);

// The contexts of a graph: all that were made, and those that nodes are being made in.
class FlowStack {
 public:
  explicit FlowStack(Graph& graph) : graph_(graph) {}
  static FlowStack& Of(Graph& graph);

  // All, outer ones first.
  const std::vector<std::shared_ptr<FlowContext>>& contexts() const { return contexts_; }
  const Graph& graph() const { return graph_; }
  // Puts a context, if none is around it, into the collection of its kind.
  void List(const FlowContext& context);
  // A new context in the one that is open.
  FlowContext* Make(FlowContext::Kind kind);
  // Nodes are made in the context from now on; in none if it is null.
  void Open(FlowContext* context);
  // No longer; they all have their edges then.
  void Close();
  // Gives the nodes made so far their edges: before the open context's pivot changes.
  void Settle();
  // The open context; null if none is.
  FlowContext* current() const { return open_.empty() ? nullptr : open_.back(); }

  // The context that a node was made in, or that it brings a value into; null if none.
  FlowContext* ContextOf(const Node* node) const;
  // The same for its outputs: those of an Exit are outside of its loop.
  FlowContext* OutputContextOf(const Node* node) const;
  // Says so, and leaves its edges as they are.
  void Assign(const Node* node, FlowContext* context);

  // `value` as it is known in `context`; what is made for it is named after `user`. Invalid after
  // an error, which has stuck to the graph.
  Output See(FlowContext* context, const Output& value, const std::string& user);
  // The same for a result of a branch: what is made for it runs after the control dependencies
  // around, unlike others.
  Output SeeResult(FlowContext* branch, const Output& value, const std::string& user);
  // True for a tensor that exists only inside an open context.
  bool IsInside(const Output& value) const;
  // Gives a node its edges in `context`, which it is to belong to.
  void SettleIn(FlowContext* context, Node* node);

 private:
  void SettleNode(Node* node);
  std::vector<Node*> TakeOutsideControls(FlowContext* context, Node* node);
  void WaitInside(FlowContext* context, Node* node, Node* control);
  Output SeeIn(FlowContext* c, const Output& value, const std::string& user, bool is_result);
  Node* Bring(const FlowContext& c, const Output& outer, const std::string& user, bool is_result);

  Graph& graph_;
  std::vector<std::shared_ptr<FlowContext>> contexts_;
  std::vector<FlowContext*> open_;
  // Nodes before `settled_` have their edges, and their contexts here, if any.
  int settled_ = 0;
  absl::flat_hash_map<const Node*, FlowContext*> context_of_;
};

// While it lives, nodes are made in `context`.
class InContext {
 public:
  InContext(FlowStack& stack, FlowContext* context) : stack_(stack) { stack_.Open(context); }
  ~InContext() { stack_.Close(); }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  FlowStack& stack_;
};

// While it lives, nodes are made outside of all branches and loops under construction, as variables
// are. INVALID_ARGUMENT on the graph if they take what is made inside one.
class OutsideFlow {
 public:
  explicit OutsideFlow(Graph& graph);
  ~OutsideFlow();
  OutsideFlow(const OutsideFlow&) = delete;
  OutsideFlow& operator=(const OutsideFlow&) = delete;

 private:
  void CheckOutside(const Node& node) const;

  Graph& graph_;
  int first_ = 0;  // node that is made outside
};

// The output of an Enter that is there in every iteration.
bool IsLoopConstant(const Output& value);

// True for a tensor that exists only if a branch under construction is taken, or in an iteration of
// a loop under construction.
bool IsInFlow(const Output& value);

}  // namespace weir

#endif  // WEIR_OPS_FLOW_CONTEXT_H_
