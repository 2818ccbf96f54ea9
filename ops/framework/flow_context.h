#ifndef WEIR_OPS_FRAMEWORK_FLOW_CONTEXT_H_
#define WEIR_OPS_FRAMEWORK_FLOW_CONTEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/graph/graph.h"

// The contexts of branches (ops/framework/cond.h) and loops (ops/framework/while_loop.h): which
// node belongs to which context, during graph construction and later, when gradients are built.
namespace weir {

class GradientLoop;  // ops/framework/gradient_loops_internal.h

class FlowStack;

// A branch or a loop. The outermost ones are in the collections "cond_context" and "while_context".
struct FlowContext : public CollectionObject {
  enum class Kind { kBranch, kLoop };
  Kind kind = Kind::kBranch;
  // The enclosing context; null if there is none.
  FlowContext* outer = nullptr;
  // Runs whenever the branch is taken, or in every iteration. Nodes without inputs get a control
  // dependency on it.
  Node* pivot = nullptr;

  // For a branch: the predicate, and the output of a Switch that the branch uses (1 for the true
  // branch).
  Output pred = {};
  int side = 0;
  std::string branch_name = {};
  // For a loop: `condition` is the output of its LoopCond, and `pivot_for_pred` is the pivot of the
  // nodes that compute the condition.
  std::string frame_name = {};
  Node* pivot_for_pred = nullptr;
  Output maximum_iterations = {};
  int64_t parallel_iterations = 10;
  Output condition = {};
  Outputs enters = {}, exits = {};
  // Set if this loop computes the gradient of another loop; otherwise null.
  std::shared_ptr<GradientLoop> gradient = nullptr;

  // Maps values from outside to their replacements inside.
  absl::flat_hash_map<Output, Output> imported = {};

  // The contexts of this context's graph.
  const FlowStack* stack = nullptr;

  std::string name() const override { return kind == Kind::kLoop ? frame_name : branch_name; }
  // Returns a serialized CondContextDef or WhileContextDef, including nested contexts.
  std::string Serialize() const;
  // Returns true if `inner` is this context or nested in it.
  bool Contains(const FlowContext* inner) const {
    while (inner != nullptr && inner != this) inner = inner->outer;
    return inner == this;
  }
};

// Returns the innermost loop around a context (itself included), or null.
FlowContext* LoopAround(FlowContext* context);

// The contexts of a graph: all contexts created so far, and the stack of those that are open.
class FlowStack {
 public:
  explicit FlowStack(Graph& graph) : graph_(graph) {}
  static FlowStack& Of(Graph& graph);

  // All contexts, outer ones first.
  const std::vector<std::shared_ptr<FlowContext>>& contexts() const { return contexts_; }
  const Graph& graph() const { return graph_; }
  // Adds an outermost context to the collection of its kind.
  void AddToCollection(const FlowContext& context);
  // Creates a context nested in the open one.
  FlowContext* Make(FlowContext::Kind kind);
  // Opens a context: new nodes belong to it. If null, new nodes belong to no context.
  void Open(FlowContext* context);
  // Rewires the nodes of the open context and closes it.
  void Close();
  // Rewires the inputs of the nodes created so far. Must be called before the open context's pivot
  // changes.
  void RewireNewNodes();
  // Returns the open context, or null.
  FlowContext* current() const { return open_.empty() ? nullptr : open_.back(); }

  // Returns the context that a node was created in, or that it brings a value into; null if there
  // is none.
  FlowContext* ContextOf(const Node* node) const;
  // Returns the context of the node's outputs: the outputs of an Exit are outside of its loop.
  FlowContext* OutputContextOf(const Node* node) const;
  // Assigns a node to a context without rewiring its inputs.
  void Assign(const Node* node, FlowContext* context);

  // Returns the replacement of `value` inside `context`, creating it if needed, with a name derived
  // from `user`. On error, records it in the graph and returns an invalid Output.
  Output ImportValue(FlowContext* context, const Output& value, const std::string& user);
  // Like ImportValue, for a result of a branch: unlike in ImportValue, the open control
  // dependencies apply to the node that is created.
  Output ImportResult(FlowContext* branch, const Output& value, const std::string& user);
  // Returns true for a tensor that exists only inside an open context.
  bool IsInside(const Output& value) const;
  // Rewires the inputs of a node in `context`, which it is to belong to.
  void RewireIn(FlowContext* context, Node* node);

 private:
  void RewireNode(Node* node);
  std::vector<Node*> RemoveOutsideControls(FlowContext* context, Node* node);
  void AddInnerControl(FlowContext* context, Node* node, Node* control);
  Output ImportInto(FlowContext* c, const Output& value, const std::string& user, bool is_result);
  Node* AddEntryNode(const FlowContext& c, const Output& outer, const std::string& user,
                     bool is_result);

  Graph& graph_;
  std::vector<std::shared_ptr<FlowContext>> contexts_;
  std::vector<FlowContext*> open_;
  // Nodes with an id below `num_rewired_` are rewired, and their contexts, if any, are in
  // context_of_.
  int num_rewired_ = 0;
  absl::flat_hash_map<const Node*, FlowContext*> context_of_;
};

// A scope object: during its lifetime, new nodes belong to `context`.
class InContext {
 public:
  InContext(FlowStack& stack, FlowContext* context) : stack_(stack) { stack_.Open(context); }
  ~InContext() { stack_.Close(); }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  FlowStack& stack_;
};

// A scope object: during its lifetime, new nodes are outside of all branches and loops under
// construction, as variables are. INVALID_ARGUMENT on the graph if such a node uses a tensor that
// was created inside one.
class OutsideFlow {
 public:
  explicit OutsideFlow(Graph& graph);
  ~OutsideFlow();
  OutsideFlow(const OutsideFlow&) = delete;
  OutsideFlow& operator=(const OutsideFlow&) = delete;

 private:
  void CheckOutside(const Node& node) const;

  Graph& graph_;
  int first_ = 0;  // id of the first node created outside
};

// Returns true for the output of an Enter that is constant across iterations.
bool IsLoopConstant(const Output& value);

// Returns true for a tensor that exists only if a branch under construction is taken, or in an
// iteration of a loop under construction.
bool IsInFlow(const Output& value);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_FLOW_CONTEXT_H_
