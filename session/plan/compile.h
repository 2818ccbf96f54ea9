#ifndef WEIR_SESSION_PLAN_COMPILE_H_
#define WEIR_SESSION_PLAN_COMPILE_H_

#include <memory>

#include "weir/session/plan/plan.h"
#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"

// From a request to an executable: runs the pass table (passes.h), phase by phase.
namespace weir {

// Runs the passes of Phase::kPrepare, which do not depend on the feed shapes.
absl::StatusOr<PlanGraph> PreparePlan(const PlanRequest& request, const PlanEnvironment& env);
// Runs the other passes, and lowers the result to an executable.
absl::StatusOr<std::unique_ptr<const Plan>> CompilePlan(PlanGraph graph,
                                                        absl::Span<const Shape> feed_shapes,
                                                        const PlanEnvironment& env);
// The same from Phase::kFuse on, for a subplan whose nodes are specialized already.
absl::StatusOr<std::unique_ptr<const Plan>> CompileSubplan(PlanGraph graph,
                                                           absl::Span<const Shape> feed_shapes,
                                                           PlanEnvironment env);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_COMPILE_H_
