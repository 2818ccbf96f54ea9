#ifndef WEIR_SESSION_PREPARED_STEP_H_
#define WEIR_SESSION_PREPARED_STEP_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/session/executor.h"
#include "weir/session/plan.h"

namespace weir {

// A step, or the body of a function, made ready: its plan, and an Executor for each set of feed
// shapes it has met (one for any shapes once there are too many). Safe to use from many threads.
class PreparedStep {
 public:
  // All passes that do not depend on shapes. `env` outlives it.
  static absl::StatusOr<std::unique_ptr<PreparedStep>> Make(PlanRequest request,
                                                            const PlanEnvironment& env);

  const PlanRequest& request() const { return request_; }
  // Before the first run.
  const PlanGraph& graph() const { return graph_; }
  // INVALID_ARGUMENT if the feeds are not as many, or not of the types, that the step takes.
  absl::Status CheckFeeds(absl::Span<const Tensor> feeds) const;

  // The status of run(executor), for an Executor that fits the feeds.
  template <class F>
  absl::Status Run(absl::Span<const Tensor> feeds, F&& run) {
    running_.fetch_add(1, std::memory_order_seq_cst);
    const absl::StatusOr<Executor*> executor = Find(feeds);
    absl::Status status = executor.ok() ? run(**executor) : executor.status();
    if (running_.fetch_sub(1, std::memory_order_seq_cst) == 1 && has_retired_.load()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      DropRetired();
    }
    return status;
  }

  // Makes the plans anew before the next run, with resources as they are then.
  void Forget();
  // Ends the runs in flight.
  void Cancel(const absl::Status& why);

 private:
  PreparedStep(PlanRequest request, const PlanEnvironment& env)
      : request_(std::move(request)), env_(env) {}
  absl::Status CheckFeedShapes(absl::Span<const Tensor> feeds) const;
  absl::StatusOr<Executor*> Find(absl::Span<const Tensor> feeds);
  absl::StatusOr<Executor*> FindOrCompile(absl::Span<const Tensor> feeds);
  absl::StatusOr<Executor*> FindOrCompileUnguarded(absl::Span<const Tensor> feeds);
  absl::StatusOr<PlanGraph> TakeGraph();
  void DropRetired();

  const PlanRequest request_;
  const PlanEnvironment env_;
  std::mutex mutex_;
  PlanGraph graph_;
  bool has_graph_ = true;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::unique_ptr<Executor> any_shapes_;
  std::atomic<Executor*> latest_{nullptr};
  // Executors whose resources were forgotten, kept until no run can be inside them.
  std::vector<std::unique_ptr<Executor>> retired_;
  std::atomic<bool> has_retired_{false};
  std::atomic<int> running_{0};
};

}  // namespace weir

#endif  // WEIR_SESSION_PREPARED_STEP_H_
