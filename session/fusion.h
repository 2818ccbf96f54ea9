#ifndef WEIR_SESSION_FUSION_H_
#define WEIR_SESSION_FUSION_H_

#include <vector>

#include "weir/session/plan.h"

namespace weir {

// What passes that make one node of several have in common: who uses what, which nodes may be
// fused at all, and where the new nodes live.
class Fusion {
 public:
  Fusion(PlanGraph& plan, const PlanEnvironment& env) : plan_(plan), env_(env) {}

 protected:
  // Fills users_ and uses_others_.
  void FindUsers();
  // On the CPU, without effects, of one type that the caller looks at, by a kernel of ours: what a
  // user has registered is what runs.
  static bool IsFusable(const PlanNode& n);
  const Shape& ShapeOf(const PlanValue& v) const { return plan_.nodes[v.node].shapes[v.output]; }
  // The graph of made nodes.
  Graph& made();

  PlanGraph& plan_;
  const PlanEnvironment& env_;
  // By node: those that take its output 0, once for each time; two of -1 if it must stay.
  std::vector<std::vector<int>> users_;
  std::vector<bool> uses_others_;  // by node: somebody takes another output
};

void FuseProducts(PlanGraph& plan, const PlanEnvironment& env);
void FuseElementwise(PlanGraph& plan, const PlanEnvironment& env);

}  // namespace weir

#endif  // WEIR_SESSION_FUSION_H_
