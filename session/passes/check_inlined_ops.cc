#include "weir/session/passes/check_unknown_ops.h"
#include "weir/session/passes/passes.h"

// Before inlining, check_unknown_ops does not see the bodies of functions.
namespace weir {

absl::Status CheckInlinedOps(const PlanGraph& plan) { return CheckUnknownOps(plan); }

}  // namespace weir
