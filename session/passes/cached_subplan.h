#ifndef WEIR_SESSION_PASSES_CACHED_SUBPLAN_H_
#define WEIR_SESSION_PASSES_CACHED_SUBPLAN_H_

#include <memory>

#include "weir/core/tensor/mutex.h"
#include "weir/kernels/linalg/cache_budget.h"
#include "weir/session/plan/subplan.h"
#include "weir/session/runtime/executor.h"

namespace weir {

// A kernel that runs nodes of a plan which depend on step-invariant values alone
// (cache_step_invariants.cc). It runs them once, and again when one of the arguments is a different
// tensor. Until then it holds references to the arguments, so that nothing writes to them.
// Thread-safe.
class CachedSubplan {
 public:
  // `plan` has not been through the passes that depend on shapes; Make runs them, and returns their
  // errors.
  static absl::StatusOr<std::shared_ptr<CachedSubplan>> Make(PlanGraph plan,
                                                             absl::Span<const Shape> feed_shapes,
                                                             const PlanEnvironment& env,
                                                             const SubplanSignature& signature);
  // Returns the kernel definition of nodes that run a CachedSubplan.
  static const KernelDef& Def();
  const Node& node() const { return *node_; }

  absl::Status Run(KernelContext& c);

 private:
  CachedSubplan(std::unique_ptr<const Plan> plan, const PlanEnvironment& env);
  struct Entry {
    Tensors args, results;
    CacheBudget bytes;
    bool Matches(const KernelContext& c) const;
  };
  // Returns null if there is no entry for the kernel's inputs.
  std::shared_ptr<const Entry> Find(const KernelContext& c);
  void Store(const KernelContext& c, const Tensors& args, const Tensors& results);

  Graph graph_;  // owns node_
  const Node* node_ = nullptr;
  Executor executor_;
  Mutex mutex_;
  std::shared_ptr<const Entry> entry_ ABSL_GUARDED_BY(mutex_);
  ReuseTracker reuse_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_CACHED_SUBPLAN_H_
