#ifndef WEIR_SESSION_CACHED_SUBPLAN_H_
#define WEIR_SESSION_CACHED_SUBPLAN_H_

#include <memory>
#include <mutex>

#include "weir/kernels/cache_budget.h"
#include "weir/session/executor.h"
#include "weir/session/subplan.h"

namespace weir {

// Nodes of a plan that depend on nothing but lasting values, as one kernel (cache_step_invariants.cc): run
// once, and again when one of the values is another one. Meanwhile the values are held, so that
// nobody writes to them. Thread-safe.
class CachedSubplan {
 public:
  // `plan` before all passes that follow from shapes; an error of these passes.
  static absl::StatusOr<std::shared_ptr<CachedSubplan>> Make(PlanGraph plan,
                                                        absl::Span<const Shape> feed_shapes,
                                                        const PlanEnvironment& env,
                                                        const SubplanSignature& face);
  // Of nodes that run one.
  static const KernelDef& Def();
  const Node& node() const { return *node_; }

  // To be called by an Executor's item alone, whose step is a TracedStep.
  absl::Status Run(KernelContext& c);

 private:
  CachedSubplan(std::unique_ptr<const Plan> plan, const PlanEnvironment& env);
  struct Kept {
    Tensors args, results;
    CacheBudget bytes;
    bool IsFor(const KernelContext& c) const;
  };
  // Null if nothing is kept for what the kernel is given.
  std::shared_ptr<const Kept> Find(const KernelContext& c);
  void Keep(const KernelContext& c, const Tensors& args, const Tensors& results);

  Graph graph_;  // has the node
  const Node* node_ = nullptr;
  Executor executor_;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Kept> kept_;
  ReuseTracker uses_;
};

}  // namespace weir

#endif  // WEIR_SESSION_CACHED_SUBPLAN_H_
