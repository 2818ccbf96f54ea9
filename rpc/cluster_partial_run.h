#ifndef WEIR_RPC_CLUSTER_PARTIAL_RUN_H_
#define WEIR_RPC_CLUSTER_PARTIAL_RUN_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/cluster_steps.h"

namespace weir::rpc {

// A step over tasks that is fed and fetched piece by piece. All parts start with the first piece,
// and wait for the feeds of later ones. Thread-safe: concurrent pieces run one after another.
class ClusterPartialRun {
 public:
  // `steps` outlives the run. Cancelling `cancellation`, which outlives it too, ends it.
  ClusterPartialRun(ClusterSteps& steps, std::shared_ptr<const PreparedClusterStep> step,
                    StepNames names, Cancellation* cancellation)
      : steps_(steps),
        step_(std::move(step)),
        names_(std::move(names)),
        run_(step_->registered, {}, cancellation),
        fed_(names_.feeds.size()),
        fetched_(names_.fetches.size()) {}

  // Feeds some of the step's feeds, and returns some of its fetches. INVALID_ARGUMENT, after which
  // the run can go on, for a name that is not part of the step or was used before, and for a fetch
  // that needs a feed not fed yet. Other errors, and cancelling `cancellation`, end the run.
  absl::StatusOr<Tensors> Run(std::vector<std::pair<std::string, Tensor>> feeds,
                              const std::vector<std::string>& fetches,
                              const std::vector<std::string>& targets, Cancellation* cancellation);
  // Returns whether all feeds and fetches have been used, or the run has failed.
  bool is_over() const;

 private:
  absl::StatusOr<std::vector<int>> CheckPiece(
      const std::vector<std::pair<std::string, Tensor>>& feeds,
      const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
      std::vector<int>* fed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Tensors> RunPiece(const std::vector<std::pair<std::string, Tensor>>& feeds,
                                   const std::vector<int>& fed, const std::vector<int>& fetches)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ClusterSteps& steps_;
  const std::shared_ptr<const PreparedClusterStep> step_;
  const StepNames names_;
  ClusterStep run_;
  mutable Mutex mutex_;  // held while a piece runs
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<bool> fed_ ABSL_GUARDED_BY(mutex_), fetched_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_PARTIAL_RUN_H_
