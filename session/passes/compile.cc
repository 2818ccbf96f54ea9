#include "weir/session/plan/compile.h"

#include <utility>

#include "weir/core/runtime/float_mode.h"
#include "weir/session/passes/lowering.h"
#include "weir/session/passes/passes.h"

namespace weir {

namespace {

// Runs the passes from `first` on, which include lowering.
absl::StatusOr<std::unique_ptr<const Plan>> Compile(PlanGraph graph, Phase first,
                                                    absl::Span<const Shape> feed_shapes,
                                                    const PlanEnvironment& env) {
  Lowering lowering;
  const PassContext context = {.env = env, .feed_shapes = feed_shapes, .lowering = &lowering};
  WEIR_RETURN_IF_ERROR(RunPasses(first, Phase::kLower, graph, context));
  lowering.plan->feed_shapes.assign(feed_shapes.begin(), feed_shapes.end());
  return std::unique_ptr<const Plan>(std::move(lowering.plan));
}

}  // namespace

absl::StatusOr<PlanGraph> PreparePlan(const PlanRequest& request, const PlanEnvironment& env) {
  PlanGraph plan;
  WEIR_RETURN_IF_ERROR(RunPasses(Phase::kPrepare, Phase::kPrepare, plan, {env, {}, &request}));
  return plan;
}

absl::StatusOr<std::unique_ptr<const Plan>> CompilePlan(PlanGraph graph,
                                                        absl::Span<const Shape> feed_shapes,
                                                        const PlanEnvironment& env) {
  const FloatMode now = FloatMode::Current();  // folded constants equal the results of the step
  const ScopedFloatMode mode(env.options.flush_subnormals ? now.Flushing() : now);
  return Compile(std::move(graph), Phase::kOptimize, feed_shapes, env);
}

absl::StatusOr<std::unique_ptr<const Plan>> CompileSubplan(PlanGraph graph,
                                                           absl::Span<const Shape> feed_shapes,
                                                           PlanEnvironment env) {
  env.is_subplan = true;
  return Compile(std::move(graph), Phase::kFuse, feed_shapes, env);
}

}  // namespace weir
