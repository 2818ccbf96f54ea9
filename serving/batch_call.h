#ifndef WEIR_SERVING_BATCH_CALL_H_
#define WEIR_SERVING_BATCH_CALL_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/mutex.h"
#include "weir/serving/servable.h"

namespace weir::serving {

// A step that runs for several calls. It is cancelled when all of them have left.
struct SharedStep {
  explicit SharedStep(int calls) : calls_left(calls) {}
  void Leave(const absl::Status& why) {
    if (--calls_left == 0) cancellation.Cancel(why);
  }

  std::atomic<int> calls_left;
  Cancellation cancellation;
};

// A call that runs in batches, in one part or several. Its caller waits in Wait, while threads that
// run batches read its inputs and set its results. The caller may leave early, at its deadline or
// when it is cancelled, but not while a thread has pinned the inputs: they may be views of memory
// that belongs to the caller. Thread-safe.
class BatchCall {
 public:
  // `options` and its cancellation must stay valid until Wait returns.
  BatchCall(const NamedTensors& inputs, const std::vector<std::string>& outputs, int num_parts,
            const RunOptions& options);

  const NamedTensors& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  std::optional<std::chrono::steady_clock::time_point> deadline() const { return deadline_; }

  // Keeps the caller waiting. Returns false if it has left, or a part has failed: then the inputs
  // must not be read.
  bool Pin();
  // Ends a Pin. If the call's rows run in a shared step, `step` is that step.
  void Unpin(std::shared_ptr<SharedStep> step = nullptr);
  // Returns options for a step that only this pinned call runs in: its cancellation, and the time
  // that is left; DEADLINE_EXCEEDED if none is.
  absl::StatusOr<RunOptions> StepOptions() const;
  // Sets the result of a part. The first error is that of the call.
  void Finish(int part, absl::StatusOr<NamedTensors> result);

  // Called once, by the caller. Returns the results of all parts in order, when they are there, or
  // the error of one, or DEADLINE_EXCEEDED or the status of the cancellation.
  absl::StatusOr<std::vector<NamedTensors>> Wait();

 private:
  absl::Status WaitLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const NamedTensors inputs_;
  const std::vector<std::string> outputs_;
  Cancellation* const cancellation_;
  const std::optional<std::chrono::steady_clock::time_point> deadline_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<NamedTensors> results_ ABSL_GUARDED_BY(mutex_);
  int unfinished_ ABSL_GUARDED_BY(mutex_);
  int pins_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);  // of a part, or why the caller leaves
  std::vector<std::shared_ptr<SharedStep>> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_BATCH_CALL_H_
