#ifndef WEIR_SESSION_FUSION_H_
#define WEIR_SESSION_FUSION_H_

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "weir/session/plan.h"

namespace weir {

// What passes that put new nodes into a plan have in common, most of them one for several: who uses
// what, which nodes may be fused at all, and where the new nodes live.
class Fusion {
 public:
  Fusion(PlanGraph& plan, const PlanEnvironment& env)
      : plan_(plan), env_(env), only_builtin_(&env.kernels == &BuiltinKernels()) {}

 protected:
  // Fills users_ and uses_others_.
  void FindUsers();
  // On the CPU, without effects, of one type that the caller looks at, by a kernel of ours: what a
  // user has registered is what runs.
  bool IsFusable(const PlanNode& n) const;
  // Its kernel is ours.
  bool IsBuiltin(const PlanNode& n) const { return IsBuiltin(*n.def, *n.node); }
  const Shape& ShapeOf(const PlanValue& v) const { return plan_.nodes[v.node].shapes[v.output]; }
  // Null if it is not known.
  const Tensor* ConstantOf(const PlanValue& v) const;
  // It is known that every element is 0, and no -0.
  bool IsZero(const PlanValue& v) const;
  // IsFusable, and may disappear in a node that takes the place of `result`: nothing orders it, and
  // it is dead when that node's arguments are.
  bool CanDisappear(const PlanNode& n, const PlanNode& result) const;
  // The first of x's axes that an op like Mean reduces, if the node reduces x, and all axes from
  // that one to the last.
  std::optional<int> FirstReducedAxis(const PlanNode& n, const PlanValue& x) const;
  // The node whose elements the value has, in the same order: what lies before Squeeze and its
  // like, which are added to `passed`.
  int BeforeReshapes(const PlanValue& v, std::set<int>* passed) const;
  // The values of `nodes` are needed nowhere but in them, except that of `result`.
  bool AreNeededOnlyFor(const std::set<int>& nodes, int result) const;
  // Everybody takes output 0, as an input: nobody returns the value, or waits for the node.
  bool MayMove(int id) const;
  // Whoever takes the value takes `result` instead, which is the last result of its node so far.
  // They may stand before it.
  void Give(const PlanValue& value, const PlanValue& result);
  // The graph of made nodes.
  Graph& made();
  // What stands for an argument there, for kernels that look at nothing of it but the type.
  Output MakePlaceholder(DataType type);
  // The same, a reference to a variable of the type.
  Output StandForVariable(DataType type);
  // A Const there.
  Node* MakeConst(absl::string_view name, const Tensor& value);
  // A node for the plan that runs `node`, which is in made(), in `loop` and on the device of
  // `like`. Without a kernel: Replace makes one, or Specialize, where that comes later.
  PlanNode Make(const PlanNode& like, const Node& node, int loop,
                absl::InlinedVector<PlanValue, 3> inputs = {}) const;
  // Adds a node to the plan, and says where.
  int Add(PlanNode n);
  // A constant of the plan, of what MakeConst has made.
  PlanValue AddConstant(const Node& constant, const Tensor& value);
  // The plan's node `result` runs `node`, which is in made(), on these values from now on. False,
  // and nothing has changed, if there is no kernel.
  bool Replace(int result, const Node& node, absl::Span<const PlanValue> inputs);
  // And the others of `nodes` are not run.
  template <class Nodes>
  bool Replace(int result, const Node& node, absl::Span<const PlanValue> inputs,
               const Nodes& nodes) {
    if (!Replace(result, node, inputs)) return false;
    for (const int other : nodes) {
      if (other != result) plan_.nodes[other].Remove();
    }
    return true;
  }

  PlanGraph& plan_;
  const PlanEnvironment& env_;
  // By node: those that take its output 0, once for each time; two of -1 if it must stay.
  std::vector<IndexList> users_;
  std::vector<bool> uses_others_;  // by node: somebody takes another output

 private:
  bool IsBuiltin(const KernelDef& def, const Node& node) const;

  const bool only_builtin_;  // kernels in the registry: spares looking them up
  std::map<DataType, Output> stands_;
};

// `shape`, broadcast to `x`, has x's extents in the dimensions [first, last), and 1 in the others.
bool HasOnlyDims(const Shape& shape, const Shape& x, int first, int last);

absl::Status SinkTiles(PlanGraph& plan, const PlanEnvironment& env);
absl::Status SinkSlices(PlanGraph& plan, const PlanEnvironment& env);
void FuseEpilogues(PlanGraph& plan, const PlanEnvironment& env);
void FuseSeparableConvs(PlanGraph& plan, const PlanEnvironment& env);
absl::Status FuseLayerNorms(PlanGraph& plan, const PlanEnvironment& env);
absl::Status FuseSoftmaxes(PlanGraph& plan, const PlanEnvironment& env);
void FuseElementwise(PlanGraph& plan, const PlanEnvironment& env);
absl::Status FuseUpdates(PlanGraph& plan, const PlanEnvironment& env);
absl::Status DeferMatMuls(PlanGraph& plan, const PlanEnvironment& env);

}  // namespace weir

#endif  // WEIR_SESSION_FUSION_H_
