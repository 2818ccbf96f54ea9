#ifndef WEIR_SESSION_PLAN_VERIFY_PLAN_H_
#define WEIR_SESSION_PLAN_VERIFY_PLAN_H_

#include "absl/strings/string_view.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// Whether plans are verified after each pass: in builds with assertions, such as those of the
// sanitizers and fuzzers.
#ifdef NDEBUG
inline constexpr bool kVerifiesPlans = false;
#else
inline constexpr bool kVerifiesPlans = true;
#endif

// INTERNAL, naming the pass and the node, if an invariant of plans does not hold: nodes are in
// topological order (if `is_ordered`), edges, fetches, targets and carries lead to nodes that exist
// and have that output, known shapes are one for each output, and loops are nested.
absl::Status VerifyPlan(const PlanGraph& plan, absl::string_view pass, bool is_ordered = true);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_VERIFY_PLAN_H_
