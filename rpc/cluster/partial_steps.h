#ifndef WEIR_RPC_CLUSTER_PARTIAL_STEPS_H_
#define WEIR_RPC_CLUSTER_PARTIAL_STEPS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/mutex.h"

namespace weir::rpc {

// Steps that are fed and fetched piece by piece: the part of this task starts with the first piece,
// waits for what later pieces send, and ends with the last. Thread-safe.
class PartialSteps {
 public:
  PartialSteps();
  // Cancels all, and waits for them.
  ~PartialSteps();

  // Starts the step on a thread of its own, if it is not running. `run` ends when it is cancelled.
  // RESOURCE_EXHAUSTED if there are a thousand, or if no thread can be started.
  absl::Status Start(int64_t step_id, std::function<absl::Status(Cancellation&)> run);
  // Waits for the step, and returns how it ended; OK if there is none.
  absl::Status Finish(int64_t step_id);
  // Cancels the step, if there is one, and waits for it.
  void Cancel(int64_t step_id, const absl::Status& why);

 private:
  struct Running;
  std::unique_ptr<Running> Take(int64_t step_id);

  Mutex mutex_;
  std::map<int64_t, std::unique_ptr<Running>> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_PARTIAL_STEPS_H_
