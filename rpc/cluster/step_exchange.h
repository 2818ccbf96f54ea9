#ifndef WEIR_RPC_CLUSTER_STEP_EXCHANGE_H_
#define WEIR_RPC_CLUSTER_STEP_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "weir/core/runtime/rendezvous.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/cluster/peers.h"
#include "weir/rpc/lib/request_numbers.h"

namespace weir::rpc {

// A step in progress, as one task knows it.
struct TaskStep {
  LocalRendezvous exchange;   // where its values cross
  Cancellation cancellation;  // of the parts that run here
};

// The steps in progress, by step id. Whoever asks first makes one: the part of this task, or
// another task that wants a value of it. A step that runs here ends with Remove, or with the
// session that it belongs to; one that others only ask for, with the last that waits. What comes
// late for a step that has ended, as messages may overtake each other, does not begin it again.
// Thread-safe.
//
//   ABORTED             the step has ended
//   RESOURCE_EXHAUSTED  there are too many steps, or too many waits
class StepTable {
 public:
  // The step, of which a part runs here, in this worker session ("": of a master of this task).
  absl::StatusOr<std::shared_ptr<TaskStep>> Join(int64_t step_id, const std::string& session);
  // The step, for a value of which somebody waits. EndWait, which returns it too, once the wait has
  // ended; null: the step has ended before.
  absl::StatusOr<std::shared_ptr<TaskStep>> BeginWait(int64_t step_id);
  std::shared_ptr<TaskStep> EndWait(int64_t step_id);
  // Ends the step: a part that runs, and who waits for a value, get ABORTED. Unknown steps are no
  // error.
  void Remove(int64_t step_id);
  // Ends the steps of a worker session, or all.
  void RemoveSession(const std::string& session);
  void RemoveAll();
  // The number of steps.
  int size() const;

 private:
  struct Entry {
    std::shared_ptr<TaskStep> step;
    int waits = 0;
    bool has_part = false;  // runs here, or has run
    std::string session;
  };

  absl::StatusOr<Entry*> FindLocked(int64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out the steps that `which(id, entry)` says, and ends them.
  template <class F>
  void RemoveIf(const F& which);

  mutable Mutex mutex_;
  absl::flat_hash_map<int64_t, Entry> steps_ ABSL_GUARDED_BY(mutex_);
  int num_waits_ ABSL_GUARDED_BY(mutex_) = 0;
  RequestNumbers ended_ ABSL_GUARDED_BY(mutex_);  // steps
};

// The error of a step whose fetch `key` is the output of a branch not taken, in TensorFlow's words.
absl::Status DeadFetchError(int64_t step_id, absl::string_view key);

// Marks an error that came from another task with a value that was to be received, in TensorFlow's
// words, by which its masters tell it from an error of the task itself; and the task that such an
// error came from, or "".
absl::Status PassedOn(const std::string& task, const absl::Status& status);
std::string PassedOnBy(const absl::Status& status);

// The exchange of one step, as the part of one task sees it. What other tasks send comes from them
// when it is asked for; what this one sends waits here.
class StepExchange final : public Rendezvous {
 public:
  // `own` is the name of this task in the cluster. All references outlive the exchange. What is
  // received counts for the memory quota of the thread that constructs it.
  StepExchange(std::shared_ptr<LocalRendezvous> local, int64_t step_id, const TaskName& own,
               const ClusterSpec& cluster, Peers& peers)
      : local_(std::move(local)),
        step_id_(step_id),
        own_(own),
        cluster_(cluster),
        peers_(peers),
        memory_(MemoryQuota::ShareCurrent()) {}

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
  const std::shared_ptr<MemoryQuota> memory_;  // null: no limit
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_STEP_EXCHANGE_H_
