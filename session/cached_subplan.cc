#include "weir/session/cached_subplan.h"

#include <algorithm>

namespace weir {

const KernelDef& CachedSubplan::Def() {
  static const KernelDef* const def = [] {
    auto* const made = new KernelDef;
    made->op = "_CachedSubplan";
    return made;
  }();
  return *def;
}

CachedSubplan::CachedSubplan(std::unique_ptr<const Plan> plan, const PlanEnvironment& env)
    : graph_(SubplanOps()), executor_(std::move(plan), env.pool, env.resources) {}

absl::StatusOr<std::shared_ptr<CachedSubplan>> CachedSubplan::Make(PlanGraph plan,
                                                         absl::Span<const Shape> feed_shapes,
                                                         const PlanEnvironment& env,
                                                         const SubplanSignature& face) {
  WEIR_RETURN_IF_ERROR(Specialize(plan, feed_shapes, env));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<const Plan> made,
                        FinishPlan(std::move(plan), feed_shapes, env));
  std::shared_ptr<CachedSubplan> step(new CachedSubplan(std::move(made), env));
  WEIR_ASSIGN_OR_RETURN(step->node_, MakeSubplanNode(face, step->graph_));
  return step;
}

bool CachedSubplan::Kept::IsFor(const KernelContext& c) const {
  for (size_t k = 0; k < args.size(); ++k) {
    const Tensor& arg = c.input(static_cast<int>(k));
    if (args[k].raw() != arg.raw() || args[k].shape() != arg.shape()) return false;
  }
  return true;
}

std::shared_ptr<const CachedSubplan::Kept> CachedSubplan::Find(const KernelContext& c) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (kept_ == nullptr || !kept_->IsFor(c)) return nullptr;
  uses_.Use();
  return kept_;
}

void CachedSubplan::Keep(const KernelContext& c, const Tensors& args, const Tensors& results) {
  // Memory of a step's arena has no owners, and may have other values when it comes again.
  const bool owned = std::all_of(args.begin(), args.end(), [](const Tensor& arg) {
    return arg.buffer() && !arg.buffer()->transient();
  });
  int64_t bytes = 0;
  for (const Tensor& t : results) bytes += static_cast<int64_t>(t.num_bytes());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (kept_ != nullptr && kept_->IsFor(c)) return;  // by another step, meanwhile
  kept_ = nullptr;
  uses_.Change();
  if (!owned || !uses_.pays()) return;
  auto kept = std::make_shared<Kept>(Kept{args, results, CacheBudget(bytes)});
  if (kept->bytes.bytes() == bytes) kept_ = std::move(kept);
}

absl::Status CachedSubplan::Run(KernelContext& c) {
  if (const std::shared_ptr<const Kept> kept = Find(c)) {
    for (size_t k = 0; k < kept->results.size(); ++k)
      c.SetOutput(static_cast<int>(k), kept->results[k]);
    return absl::OkStatus();
  }
  Tensors args, results;
  for (int k = 0; k < c.num_inputs(); ++k) args.push_back(c.input(k));
  WEIR_RETURN_IF_ERROR(
      executor_.RunWithin(static_cast<const TracedStep&>(c.step()), args, &results));
  Keep(c, args, results);
  for (size_t k = 0; k < results.size(); ++k)
    c.SetOutput(static_cast<int>(k), std::move(results[k]));
  return absl::OkStatus();
}

}  // namespace weir
