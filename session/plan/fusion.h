#ifndef WEIR_SESSION_PLAN_FUSION_H_
#define WEIR_SESSION_PLAN_FUSION_H_

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"
#include "weir/session/plan/plan_uses.h"

namespace weir {

// The base class of passes that add nodes to a plan, most of which replace several nodes by one. It
// tracks the uses of values, decides which nodes may be fused at all, and owns the new nodes.
class Fusion {
 public:
  Fusion(PlanGraph& plan, const PlanEnvironment& env)
      : plan_(plan), env_(env), only_builtin_(&env.kernels == &BuiltinKernels()) {}

 protected:
  // The uses of all nodes, found at the first call.
  PlanUses& uses();
  // True for a node on the CPU without effects that has a built-in kernel; the caller checks its
  // type. Kernels that users have registered are never fused away.
  bool IsFusable(const PlanNode& n) const;
  // The same of a node with any kernel.
  bool IsReplaceable(const PlanNode& n) const;
  // True if the node has a built-in kernel.
  bool IsBuiltin(const PlanNode& n) const { return IsBuiltin(*n.def, *n.node); }
  const Shape& ShapeOf(const PlanValue& v) const { return plan_.ShapeOf(v); }
  // Null if the value is not known.
  const Tensor* ConstantOf(const PlanValue& v) const { return plan_.ConstantOf(v); }
  // True if every element is known to be 0, and not -0.
  bool IsZero(const PlanValue& v) const;
  // True if the node is fusable and may be removed when a new node replaces `result`: no control
  // edge orders it, and it is dead when the arguments of the new node are.
  bool CanDisappear(const PlanNode& n, const PlanNode& result) const;
  // If the node reduces x like Mean, over all axes from some axis to the last, returns that first
  // axis.
  std::optional<int> FirstReducedAxis(const PlanNode& n, const PlanValue& x) const;
  // Returns the node that computes the elements of the value, in the same order: skips Squeeze and
  // similar nodes, and adds these to `passed`.
  int StripReshapes(const PlanValue& v, std::set<int>* passed) const;
  // True if the values of `nodes`, except that of `result`, are used by `nodes` alone.
  bool AreUsedOnlyBy(const std::set<int>& nodes, int result);
  // Makes all users of the value, which has only input uses, use `result` instead, which is the
  // last result of its node so far. The users may come before that node.
  void RedirectUses(const PlanValue& value, const PlanValue& result);
  // The graph that owns new nodes.
  Graph& internal_graph();
  // Returns a placeholder in it for an argument, for kernels that need only its type.
  Output MakePlaceholder(DataType type);
  // The same for a reference to a variable of the type.
  Output MakeVariablePlaceholder(DataType type);
  // Returns a Const in it.
  Node* MakeConst(absl::string_view name, const Tensor& value);
  // Returns a plan node that runs `node`, which is in internal_graph(), in `loop` and on the device
  // of `like`.
  PlanNode Make(const PlanNode& like, const Node& node, int loop,
                absl::InlinedVector<PlanValue, 3> inputs = {}) const;
  // Adds a constant to the plan, for a node that MakeConst has returned.
  PlanValue AddConstant(const Node& constant, const Tensor& value);
  // Makes the plan's node `result` run `node`, which is in internal_graph(), on these inputs.
  // Returns false, and changes nothing, if no kernel is registered.
  bool Replace(int result, const Node& node, absl::Span<const PlanValue> inputs);
  // Also removes the other nodes of `nodes`.
  template <class Nodes>
  bool Replace(int result, const Node& node, absl::Span<const PlanValue> inputs,
               const Nodes& nodes) {
    if (!Replace(result, node, inputs)) return false;
    for (const int other : nodes) {
      if (other != result) plan_.Fuse(other);
    }
    return true;
  }

  PlanGraph& plan_;
  const PlanEnvironment& env_;

 private:
  bool IsBuiltin(const KernelDef& def, const Node& node) const;

  const bool only_builtin_;  // the registry has only built-in kernels, so that IsBuiltin need not
                             // look them up
  PlanUses uses_;            // empty until the first call of uses()
  std::map<DataType, Output> placeholders_;
};

// True if `shape`, broadcast to `x`, has x's extents in the dimensions [first, last), and 1 in the
// others.
bool HasOnlyDims(const Shape& shape, const Shape& x, int first, int last);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_FUSION_H_
