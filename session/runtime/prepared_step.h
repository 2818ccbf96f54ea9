#ifndef WEIR_SESSION_RUNTIME_PREPARED_STEP_H_
#define WEIR_SESSION_RUNTIME_PREPARED_STEP_H_

#include <atomic>
#include <memory>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/session/plan/compile.h"
#include "weir/session/runtime/executor.h"

namespace weir {

// A prepared step or function body: its plan, and an Executor for each set of feed shapes seen so
// far (one for arbitrary shapes once there are too many). Thread-safe.
class PreparedStep {
 public:
  // Runs all passes that do not depend on shapes. `env` must outlive the step.
  static absl::StatusOr<std::unique_ptr<PreparedStep>> Make(PlanRequest request,
                                                            const PlanEnvironment& env);

  const PlanRequest& request() const { return request_; }
  // May be called only before the first run.
  const PlanGraph& graph() const { return graph_; }
  // Returns INVALID_ARGUMENT if the number or the dtypes of the feeds differ from those of the
  // step.
  absl::Status CheckFeeds(absl::Span<const Tensor> feeds) const;

  // Returns the status of run(executor), with an Executor for the shapes of the feeds.
  template <class F>
  absl::Status Run(absl::Span<const Tensor> feeds, F&& run) {
    running_.fetch_add(1, std::memory_order_seq_cst);
    const absl::StatusOr<Executor*> executor = Find(feeds);
    absl::Status status = executor.ok() ? run(**executor) : executor.status();
    if (running_.fetch_sub(1, std::memory_order_seq_cst) == 1 && has_retired_.load()) {
      const MutexLock lock(mutex_);
      DropRetired();
    }
    return status;
  }

  // Discards the plans; the next run compiles them again, with the resources at that time.
  void Forget();
  // Cancels the runs in flight.
  void Cancel(const absl::Status& why);

 private:
  PreparedStep(PlanRequest request, const PlanEnvironment& env)
      : request_(std::move(request)), env_(env) {}
  absl::Status CheckFeedShapes(absl::Span<const Tensor> feeds) const;
  absl::StatusOr<Executor*> Find(absl::Span<const Tensor> feeds);
  absl::StatusOr<Executor*> FindOrCompile(absl::Span<const Tensor> feeds);
  absl::StatusOr<Executor*> FindOrCompileUnguarded(absl::Span<const Tensor> feeds);
  absl::StatusOr<PlanGraph> TakeGraph() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropRetired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PlanRequest request_;
  const PlanEnvironment env_;
  Mutex mutex_;
  PlanGraph graph_;  // requires the lock, except before the first run
  bool has_graph_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<std::unique_ptr<Executor>> executors_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Executor> any_shapes_ ABSL_GUARDED_BY(mutex_);
  std::atomic<Executor*> latest_{nullptr};
  // Executors whose resources were forgotten, kept until no run can be using them.
  std::vector<std::unique_ptr<Executor>> retired_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_retired_{false};
  std::atomic<int> running_{0};
};

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_PREPARED_STEP_H_
