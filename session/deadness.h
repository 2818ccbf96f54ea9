#ifndef WEIR_SESSION_DEADNESS_H_
#define WEIR_SESSION_DEADNESS_H_

#include <tuple>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "weir/session/plan.h"

namespace weir {

// Something that must be so for a node to run.
struct Condition {
  // A bool scalar, of a _SwitchN an int32; output -1: a condition of its own, of that node.
  PlanValue pred;
  int side = 0;  // the output of a Switch: 1 if `pred` must be true
  int num_sides = 2;
  // On both the same decides, to different sides.
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

// By node: all that must hold for it to run; nothing if it always does.
std::vector<Conditions> FindConditions(const PlanGraph& plan);

}  // namespace weir

#endif  // WEIR_SESSION_DEADNESS_H_
