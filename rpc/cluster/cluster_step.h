#ifndef WEIR_RPC_CLUSTER_CLUSTER_STEP_H_
#define WEIR_RPC_CLUSTER_CLUSTER_STEP_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/cluster/partition.h"
#include "weir/rpc/cluster/session_cluster.h"
#include "weir/rpc/cluster/step_exchange.h"
#include "weir/rpc/lib/timer.h"

namespace weir::proto {
class RunMetadata;
}

namespace weir::rpc {

// A step whose parts have been sent to their tasks.
struct RegisteredStep {
  // A part, on its task.
  struct Part {
    TaskName task;
    std::string handle;        // by which the task knows it
    uint64_t incarnation = 0;  // of the task, when the session began
  };
  const SessionCluster& cluster;  // outlives the steps
  std::string session;            // the handle of the worker sessions
  std::vector<Part> parts;
  std::vector<FedValue> feeds;
  std::vector<RendezvousKey> fetches;
};
// Drops the parts on their tasks. Runs in progress are not affected.
void Deregister(const RegisteredStep& step);

// One run of a step over the tasks of a cluster, by its master: all parts run at the same time; the
// part of the master's own task runs in this process. The first error ends the other parts.
// Thread-safe, but for the order of calls: Start comes first.
class ClusterStep {
 public:
  // What a run reports besides its values.
  struct Report {
    bool trace = false, graphs = false;
  };
  // `step` outlives the run. Cancelling `cancellation` (outlives the run too) ends it.
  ClusterStep(const RegisteredStep& step, const Report& report, Cancellation* cancellation);
  // Ends the parts that still run, and drops what they have sent.
  ~ClusterStep();

  // Cancelling it ends the step.
  Cancellation& cancellation() { return cancellation_; }
  // Sends a feed to the parts that use it; before the start or later.
  absl::Status Feed(int feed, const Tensor& value);
  // Starts the parts of the other tasks, and that of the own one on a thread of its own.
  void Start();
  // Receives fetches, in this order, as soon as the parts have sent them. Each can be received
  // once. Returns the error of the step if it fails.
  absl::StatusOr<Tensors> Fetch(const std::vector<int>& fetches);
  // Waits until all parts have ended, and returns the error that began the failure: one that a task
  // has only passed on, or a part that was cancelled for another's error, does not hide it. Writes
  // what was asked for (null: nothing).
  absl::Status Finish(proto::RunMetadata* metadata = nullptr);
  // All of it: feeds by number, all fetches. The own part runs on the calling thread. A step that
  // takes longer than `limit` (zero: none) is DEADLINE_EXCEEDED.
  absl::StatusOr<Tensors> Run(const std::vector<Tensor>& feeds, std::chrono::milliseconds limit,
                              proto::RunMetadata* metadata);

 private:
  struct Part;
  struct Received;
  // The parts of the others, or the own one; that on a thread of its own.
  void RunParts(bool own);
  void StartOwnPart();
  void EndPart(size_t i, const absl::Status& status);
  void Fail(const TaskName& task, const absl::Status& status);
  // Whether the error came from a task whose own error is still to come.
  bool IsEcho(const absl::Status& status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginFetch(int fetch, Received* received, size_t i);
  absl::Status ErrorLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WaitForParts();

  const RegisteredStep& step_;
  const int64_t id_;
  const std::shared_ptr<LocalRendezvous> local_;
  StepExchange exchange_;
  Cancellation cancellation_;  // of this run
  const LinkedCancellation linked_;
  Cancellation* const outer_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::thread own_part_;
  mutable Mutex mutex_;
  CondVar changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;    // parts
  int receiving_ ABSL_GUARDED_BY(mutex_) = 0;  // fetches
  std::vector<absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::optional<Timer::Alarm> patience_ ABSL_GUARDED_BY(mutex_);  // with a task's own error
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_CLUSTER_STEP_H_
