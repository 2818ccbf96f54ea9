#ifndef WEIR_RPC_CLUSTER_STEP_EXCHANGE_H_
#define WEIR_RPC_CLUSTER_STEP_EXCHANGE_H_

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "weir/core/runtime/rendezvous.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/cluster/peers.h"

namespace weir::rpc {

// A step in progress, as one task knows it.
struct TaskStep {
  LocalRendezvous exchange;   // where its values cross
  Cancellation cancellation;  // of the parts that run here
};

// The steps in progress, by step id. Whoever asks first makes one: the part of this task, or
// another task that wants a value of it. Thread-safe.
class StepTable {
 public:
  std::shared_ptr<TaskStep> Find(int64_t step_id);
  // Ends the step: a part that runs, and who waits for a value, get ABORTED. Unknown steps are no
  // error.
  void Remove(int64_t step_id);

 private:
  Mutex mutex_;
  absl::flat_hash_map<int64_t, std::shared_ptr<TaskStep>> steps_ ABSL_GUARDED_BY(mutex_);
};

// The error of a step whose fetch `key` is the output of a branch not taken, in TensorFlow's words.
absl::Status DeadFetchError(int64_t step_id, absl::string_view key);

// The exchange of one step, as the part of one task sees it. What other tasks send comes from them
// when it is asked for; what this one sends waits here.
class StepExchange final : public Rendezvous {
 public:
  // `own` is the name of this task in the cluster. All references outlive the exchange.
  StepExchange(std::shared_ptr<LocalRendezvous> local, int64_t step_id, const TaskName& own,
               const ClusterSpec& cluster, Peers& peers)
      : local_(std::move(local)), step_id_(step_id), own_(own), cluster_(cluster), peers_(peers) {}

  absl::Status Send(const RendezvousKey& key, SentValue value) override {
    return local_->Send(key, std::move(value));
  }
  // NOT_FOUND, with the tasks that there are, for a key of a task outside of the cluster.
  void Receive(const RendezvousKey& key, Cancellation* cancellation, Done done) override;

 private:
  const std::shared_ptr<LocalRendezvous> local_;
  const int64_t step_id_;
  const TaskName& own_;
  const ClusterSpec& cluster_;
  Peers& peers_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_STEP_EXCHANGE_H_
