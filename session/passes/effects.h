#ifndef WEIR_SESSION_PASSES_EFFECTS_H_
#define WEIR_SESSION_PASSES_EFFECTS_H_

#include "weir/session/plan/plan_graph.h"

namespace weir {

// True if the node changes something besides its outputs. Reading a variable is not an effect.
bool HasEffect(const PlanNode& n);

// True if the node only computes values from values. (Not true of a node that may be dead: control
// edges alone do not keep track of which branch is dead.)
bool OnlyComputes(const PlanNode& n);

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_EFFECTS_H_
