#ifndef WEIR_CAPI_EAGER_EXECUTOR_H_
#define WEIR_CAPI_EAGER_EXECUTOR_H_

#include <deque>
#include <memory>
#include <thread>

#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"

namespace weir::capi {

// Calls of ops in the order in which they were added, on a thread of its own. An error stays until
// it is cleared: calls that wait are dropped, and no more are taken. Thread-safe.
class EagerExecutor {
 public:
  // A call that waits.
  class Call {
   public:
    virtual ~Call() = default;
    // Runs it, and sets the outputs unless it fails.
    virtual absl::Status Run() = 0;
    // Gives an error to the outputs.
    virtual void Abort(const absl::Status& error) = 0;
  };

  // A synchronous executor has no thread, and takes no calls. At most `limit` calls wait or run
  // (0: any number).
  static absl::StatusOr<std::shared_ptr<EagerExecutor>> Make(bool is_async, int limit);
  // Aborts the calls that wait, with CANCELLED. A call that runs ends before.
  ~EagerExecutor();
  EagerExecutor(const EagerExecutor&) = delete;
  EagerExecutor& operator=(const EagerExecutor&) = delete;

  bool is_async() const { return is_async_; }
  // Adds a call; waits while there are too many. Returns the error, and drops the call, if there is
  // one.
  absl::Status Add(std::unique_ptr<Call> call);
  // Waits for the calls added before, or for an error, which it returns.
  absl::Status WaitForAll();
  void ClearError();

 private:
  EagerExecutor(bool is_async, int limit) : is_async_(is_async), limit_(limit) {}
  void Loop();
  void Run(Call& call);
  int64_t num_open() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return num_added_ - num_done_; }

  const bool is_async_;
  const int64_t limit_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::unique_ptr<Call>> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t num_added_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t num_done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace weir::capi

#endif  // WEIR_CAPI_EAGER_EXECUTOR_H_
