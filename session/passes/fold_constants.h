#ifndef WEIR_SESSION_PASSES_FOLD_CONSTANTS_H_
#define WEIR_SESSION_PASSES_FOLD_CONSTANTS_H_

#include <map>
#include <optional>
#include <vector>

#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// The values, by node, of constants that are not folded because they have control inputs, and of
// nodes computed from them and constants alone.
using ControlledConstants = std::map<int, std::vector<Tensor>>;

// Finds them in a plan that has been specialized. Loops that are not structured are excluded: in
// them the control edge makes the constant available in each iteration.
ControlledConstants FindControlledConstants(PlanGraph& plan, const PlanEnvironment& env);

// Evaluates nodes whose inputs are known. Constants are host values, whatever the device of the
// node: a node of an accelerator is evaluated with the CPU's kernel.
//
// Large values that are broadcast from small ones, such as the zeros of an optimizer's slot
// variables, are not folded if they are only used in assignments: the variable stores them, and the
// plan would hold a second copy for the lifetime of the session.
//
// A node is not folded if it may be dead, has state, or has a control edge. An error of a kernel is
// not reported here: the node stays, and reports it when (and only if) it runs.
class ConstantFolder {
 public:
  ConstantFolder(PlanGraph& plan, const PlanEnvironment& env);

  // Sets the constants of a Shape, ShapeN, Size or Rank of tensors whose shapes are known: they do
  // not need the tensors. Returns false for other nodes.
  static bool FoldShape(const PlanGraph& plan, PlanNode& n);
  // Returns true if the node may be evaluated and all of its inputs are known. Function calls are
  // not evaluated: that would compile a plan within a plan.
  bool CanFold(const PlanNode& n, const ControlledConstants* controlled = nullptr);
  // Returns the values of a node for which CanFold is true; none if its kernel fails, or does not
  // set all outputs.
  std::vector<Tensor> Fold(PlanNode& n, const ControlledConstants* controlled = nullptr);

 private:
  bool IsAssigned(int i);
  const Tensor* KnownValue(const PlanValue& v, const ControlledConstants* controlled) const;
  std::optional<Kernel> HostKernel(PlanNode& n, absl::Span<const Shape> inputs) const;
  int IndexOf(const PlanNode& n) const { return static_cast<int>(&n - plan_.nodes.data()); }

  PlanGraph& plan_;
  const PlanEnvironment& env_;
  StepInfo step_;
  std::vector<bool> assigned_;  // by node: used only in assignments; empty until first use
};

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_FOLD_CONSTANTS_H_
