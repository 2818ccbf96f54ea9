#include "weir/session/passes/cached_subplan.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/compile.h"
#include "weir/session/plan/internal_nodes.h"

#include <algorithm>

namespace weir {

const KernelDef& CachedSubplan::Def() {
  static const KernelDef* const def = [] {
    auto* const new_def = new KernelDef;
    new_def->op = "_CachedSubplan";
    return new_def;
  }();
  return *def;
}

CachedSubplan::CachedSubplan(std::unique_ptr<const Plan> plan, const PlanEnvironment& env)
    : graph_(InternalOps()), executor_(std::move(plan), env.pool, env.resources) {}

absl::StatusOr<std::shared_ptr<CachedSubplan>> CachedSubplan::Make(
    PlanGraph plan, absl::Span<const Shape> feed_shapes, const PlanEnvironment& env,
    const SubplanSignature& signature) {
  WEIR_RETURN_IF_ERROR(Specialize(plan, {env, feed_shapes}));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<const Plan> executable,
                        CompileSubplan(std::move(plan), feed_shapes, env));
  std::shared_ptr<CachedSubplan> step(new CachedSubplan(std::move(executable), env));
  WEIR_ASSIGN_OR_RETURN(step->node_, MakeSubplanNode(signature, step->graph_));
  return step;
}

bool CachedSubplan::Entry::Matches(const KernelContext& c) const {
  for (size_t k = 0; k < args.size(); ++k) {
    const Tensor& arg = c.input(static_cast<int>(k));
    if (args[k].raw() != arg.raw() || args[k].shape() != arg.shape()) return false;
  }
  return true;
}

std::shared_ptr<const CachedSubplan::Entry> CachedSubplan::Find(const KernelContext& c) {
  const MutexLock lock(mutex_);
  if (entry_ == nullptr || !entry_->Matches(c)) return nullptr;
  reuse_.RecordReuse();
  return entry_;
}

void CachedSubplan::Store(const KernelContext& c, const Tensors& args, const Tensors& results) {
  // The memory of a step's arena is not ref-counted, and may hold other values when its address
  // recurs.
  const bool owned = std::all_of(args.begin(), args.end(), [](const Tensor& arg) {
    return arg.buffer() && !arg.buffer()->transient();
  });
  int64_t bytes = 0;
  for (const Tensor& t : results) bytes += static_cast<int64_t>(t.num_bytes());
  const MutexLock lock(mutex_);
  if (entry_ != nullptr && entry_->Matches(c)) return;  // another step has stored it concurrently
  entry_ = nullptr;
  reuse_.RecordNewValue();
  if (!owned || !reuse_.pays()) return;
  auto entry = std::make_shared<Entry>(Entry{args, results, CacheBudget(bytes)});
  if (entry->bytes.bytes() == bytes) entry_ = std::move(entry);
}

absl::Status CachedSubplan::Run(KernelContext& c) {
  if (const std::shared_ptr<const Entry> entry = Find(c)) {
    for (size_t k = 0; k < entry->results.size(); ++k)
      c.SetOutput(static_cast<int>(k), entry->results[k]);
    return absl::OkStatus();
  }
  Tensors args, results;
  for (int k = 0; k < c.num_inputs(); ++k) args.push_back(c.input(k));
  WEIR_RETURN_IF_ERROR(executor_.RunWithin(c.step(), args, &results));
  Store(c, args, results);
  for (size_t k = 0; k < results.size(); ++k)
    c.SetOutput(static_cast<int>(k), std::move(results[k]));
  return absl::OkStatus();
}

}  // namespace weir
