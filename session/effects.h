#ifndef WEIR_SESSION_EFFECTS_H_
#define WEIR_SESSION_EFFECTS_H_

#include "weir/session/plan.h"

namespace weir {

// It changes something besides its outputs. Looking at a variable is no effect.
bool HasEffect(const PlanNode& n);

// Nothing but a value comes out of it, and nothing but a value goes in. (Where branches may be
// dead, which of them is: edges that only order do not tell.)
bool OnlyComputes(const PlanNode& n);

}  // namespace weir

#endif  // WEIR_SESSION_EFFECTS_H_
