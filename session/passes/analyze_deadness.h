#ifndef WEIR_SESSION_PASSES_ANALYZE_DEADNESS_H_
#define WEIR_SESSION_PASSES_ANALYZE_DEADNESS_H_

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

// Returns, by node, all conditions that must hold for it to run; none if it always runs.
std::vector<Conditions> FindConditions(const PlanGraph& plan);

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_ANALYZE_DEADNESS_H_
