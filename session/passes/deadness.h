#ifndef WEIR_SESSION_PASSES_DEADNESS_H_
#define WEIR_SESSION_PASSES_DEADNESS_H_

#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// A condition under which a node runs.
struct Condition {
  // A bool scalar, or the int32 of a _SwitchN; output -1: a condition of that node's own.
  PlanValue pred;
  int side = 0;  // the output of a Switch: 1 if `pred` must be true
  int num_sides = 2;
  // True if both test the same value, for different sides.
  friend bool AreOpposite(const Condition& a, const Condition& b) {
    return a.pred == b.pred && a.num_sides == b.num_sides && a.side != b.side;
  }
  friend bool operator==(const Condition&, const Condition&) = default;
  friend bool operator<(const Condition& a, const Condition& b) {
    return std::tie(a.pred.node, a.pred.output, a.num_sides, a.side) <
           std::tie(b.pred.node, b.pred.output, b.num_sides, b.side);
  }
};
using Conditions = absl::InlinedVector<Condition, 2>;

// Adds conditions to a sorted list.
void AddConditions(const Conditions& more, Conditions* to);

// The value that a predicate passes through copies, Identity and Enter.
PlanValue SourceOf(const PlanGraph& plan, PlanValue v);

// The conditions under which the nodes of a plan run. It is the analysis behind several passes, and
// is valid until the plan changes. The plan must outlive it.
class Deadness {
 public:
  explicit Deadness(const PlanGraph& plan);

  // By node, all conditions that must hold for it to run; none if it always runs.
  const std::vector<Conditions>& runs_if() const { return runs_if_; }
  // The conditions under which those that depend on a node by control run.
  const Conditions& OutputConditions(int id) const;
  // The conditions under which a value is alive.
  Conditions ValueConditions(const PlanValue& v) const;

 private:
  bool IsCarry(const PlanValue& v) const;
  void Visit(int id);
  Conditions TriggerConditions(int id) const;
  Conditions MergeConditions(int id) const;
  Conditions ExitConditions(int id) const;
  bool TakeLoopCond(int loop, int side, Conditions* conditions, PlanValue* cond) const;
  bool VerifyAssumption();

  const PlanGraph& plan_;
  std::vector<Conditions> runs_if_;   // by node
  std::vector<Conditions> exits_if_;  // by Exit: the conditions under which it passes a value
  std::vector<bool> regular_;         // by loop: the assumption of deadness.cc holds
};

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_DEADNESS_H_
