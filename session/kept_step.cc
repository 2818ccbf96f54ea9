#include "weir/session/kept_step.h"

namespace weir {

const KernelDef& KeptStep::Def() {
  static const KernelDef* const def = [] {
    auto* const made = new KernelDef;
    made->op = "_KeptValues";
    return made;
  }();
  return *def;
}

KeptStep::KeptStep(std::unique_ptr<const Plan> plan, const PlanEnvironment& env)
    : graph_(InnerPlanOps()), executor_(std::move(plan), env.pool, env.resources) {}

absl::StatusOr<std::shared_ptr<KeptStep>> KeptStep::Make(PlanGraph plan,
                                                         absl::Span<const Shape> feed_shapes,
                                                         const PlanEnvironment& env,
                                                         const Face& face) {
  WEIR_RETURN_IF_ERROR(Specialize(plan, feed_shapes, env));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<const Plan> made,
                        FinishPlan(std::move(plan), feed_shapes, env));
  std::shared_ptr<KeptStep> step(new KeptStep(std::move(made), env));
  WEIR_ASSIGN_OR_RETURN(step->node_, MakeFace(face, step->graph_));
  return step;
}

Tensors KeptStep::Find(const KernelContext& c) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t k = 0; k < args_.size(); ++k) {
    const Tensor& arg = c.input(static_cast<int>(k));
    if (args_[k].raw() != arg.raw() || args_[k].shape() != arg.shape()) return {};
  }
  if (!results_.empty()) uses_.Use();
  return results_;
}

void KeptStep::Keep(const Tensors& args, const Tensors& results) {
  int64_t bytes = 0;
  for (const Tensor& t : results) bytes += static_cast<int64_t>(t.num_bytes());
  const std::lock_guard<std::mutex> lock(mutex_);
  args_.clear();
  results_.clear();
  bytes_ = {};
  uses_.Change();
  for (const Tensor& arg : args) {
    // Memory of a step's arena has no owners, and may have other values when it comes again.
    if (!arg.buffer() || arg.buffer()->transient()) return;
  }
  if (!uses_.pays()) return;
  bytes_ = KeptBytes(bytes);
  if (bytes_.bytes() != bytes) return;
  args_ = args;
  results_ = results;
}

absl::Status KeptStep::Run(KernelContext& c) {
  Tensors results = Find(c);
  if (results.empty()) {
    Tensors args;
    for (int k = 0; k < c.num_inputs(); ++k) args.push_back(c.input(k));
    WEIR_RETURN_IF_ERROR(
        executor_.RunWithin(static_cast<const TracedStep&>(c.step()), args, &results));
    Keep(args, results);
  }
  for (size_t k = 0; k < results.size(); ++k)
    c.SetOutput(static_cast<int>(k), std::move(results[k]));
  return absl::OkStatus();
}

}  // namespace weir
