#ifndef WEIR_OPS_FLOW_CONTEXT_H_
#define WEIR_OPS_FLOW_CONTEXT_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/core/graph.h"

// Branches (ops/cond.h) and loops (ops/while_loop.h) while they are built.
namespace weir {

struct FlowContext {
  enum class Kind { kBranch, kLoop };
  Kind kind = Kind::kBranch;
  // Runs whenever the branch is taken, or in every iteration: what has no inputs waits for it.
  Node* pivot = nullptr;

  // Of a branch: the predicate, and which output of a Switch it sees (1 if it is for true).
  Output pred;
  int side = 0;
  // Of a loop:
  std::string frame_name;
  int64_t parallel_iterations = 10;

  // The rest is FlowStack's. Nodes from `first` on are made in it, but for those in `outside`;
  // those before `settled` have their edges.
  int first = 0, settled = 0;
  absl::flat_hash_set<const Node*> outside = {};
  absl::flat_hash_map<Output, Output> seen = {};  // values from outside, as they are known inside

  bool Contains(const Node* node) const { return node->id() >= first && !outside.contains(node); }
};

// The open contexts of a graph, innermost last.
class FlowStack {
 public:
  explicit FlowStack(Graph& graph) : graph_(graph) {}
  static FlowStack& Of(Graph& graph);

  bool empty() const { return open_.empty(); }
  // Nodes are made in the context from now on.
  void Open(FlowContext* context);
  // No longer; they all have their edges then.
  void Close();
  // Gives the nodes made so far their edges: before the innermost context's pivot changes.
  void Settle();
  // `value` as it is known in the innermost context; what is made for it is named after `user`.
  // Invalid after an error, which has stuck to the graph.
  Output See(const Output& value, const std::string& user);
  // The same for a result of a branch: what is made for it runs after the control dependencies
  // around, unlike others.
  Output SeeResult(const Output& value, const std::string& user);
  // As it is known in the context around the innermost one.
  Output SeeOutside(const Output& value, const std::string& user);
  // The pivot of the innermost context that has one, outside the innermost one; null if none has.
  Node* OuterPivot() const;
  // True for a tensor that exists only inside an open context.
  bool IsInside(const Output& value) const;

 private:
  friend class OutsideFlow;
  void SettleNode(int level, Node* node);
  std::vector<Node*> TakeOutsideControls(int level, Node* node);
  void WaitInside(int level, Node* node, Node* control);
  Output SeeAt(int level, const Output& value, const std::string& user, bool is_result = false);
  Node* Bring(int level, const Output& outer, const std::string& user, bool is_result);

  Graph& graph_;
  std::vector<FlowContext*> open_;
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
  const int first_;
  std::vector<FlowContext*> open_;
};

// The output of an Enter that is there in every iteration.
bool IsLoopConstant(const Output& value);

// True for a tensor that exists only if a branch under construction is taken, or in an iteration of
// a loop under construction.
bool IsInFlow(const Output& value);

}  // namespace weir

#endif  // WEIR_OPS_FLOW_CONTEXT_H_
