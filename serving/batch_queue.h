#ifndef WEIR_SERVING_BATCH_QUEUE_H_
#define WEIR_SERVING_BATCH_QUEUE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/serving/batching.h"

// The queue of a batcher, and the threads that all queues share. It knows rows and times, not
// tensors.
namespace weir::serving {

class BatchCall;
class BatchScheduler;

// Consecutive rows of a call that run in one step.
struct BatchPart {
  std::shared_ptr<BatchCall> call;
  int index = 0;  // among the call's parts
  int64_t begin = 0, end = 0;
  // When the part runs, even if its batch is not full.
  std::chrono::steady_clock::time_point due = {};

  int64_t rows() const { return end - begin; }
};
using BatchParts = std::vector<std::shared_ptr<BatchPart>>;

// Parts that wait to be run, by group: the parts of a batch are all of one group. Thread-safe.
class BatchQueue {
 public:
  // `run` runs a batch, on any thread, up to options.num_batch_threads at once.
  BatchQueue(const BatchingOptions& options, std::function<void(const BatchParts&)> run);
  // Closes the queue, and returns when nothing waits or runs.
  ~BatchQueue();
  // From now on, parts do not wait until they are due.
  void Close();

  // Adds the parts of a call, all or none. Returns UNAVAILABLE if the lane is full. A lane that is
  // empty accepts a call of any number of rows.
  absl::Status Add(const std::string& group, Priority priority, const BatchParts& parts);
  // Removes parts that still wait.
  void Remove(const std::string& group, Priority priority, const BatchParts& parts);

  // The rows that wait, in both lanes.
  int64_t waiting_rows() const;

  // If nothing waits in any queue, and a batch more may run: counts a batch as running, which the
  // caller runs on its own thread and then ends.
  bool TryBegin();
  void End();

 private:
  friend class BatchScheduler;
  struct State;
  std::unique_ptr<State> state_;
  std::shared_ptr<BatchScheduler> scheduler_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_BATCH_QUEUE_H_
