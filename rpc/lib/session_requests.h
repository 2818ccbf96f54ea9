#ifndef WEIR_RPC_LIB_SESSION_REQUESTS_H_
#define WEIR_RPC_LIB_SESSION_REQUESTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"
#include "weir/core/tensor/tensor.h"
#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/response_limit.h"

namespace weir::proto {
class RunCallableRequest;
class RunStepRequest;
class TensorProto;
}  // namespace weir::proto

// What sessions in a process and over the tasks of a cluster have in common: how they read requests
// and keep what clients make.
namespace weir::rpc {

// The names in a repeated field.
template <class Field>
std::vector<std::string> Names(const Field& field) {
  return {field.begin(), field.end()};
}

// The memory of a session, and of one of its steps: a part of `outer` (may be null) that is limited
// to so many bytes, or `outer` itself if that is 0.
std::shared_ptr<MemoryQuota> SessionMemory(std::shared_ptr<MemoryQuota> outer, int64_t bytes);
std::shared_ptr<MemoryQuota> StepMemory(std::shared_ptr<MemoryQuota> outer, int64_t bytes);

// Counts a tensor that came in a message for the memory quota of the thread, if it has one.
absl::StatusOr<Tensor> CountMemory(Tensor tensor);
// Moves the feeds out of requests; the tensors count as above. INVALID_ARGUMENT, with the name, for
// a malformed one.
absl::StatusOr<Tensor> TakeFeed(const std::string& name, proto::TensorProto* value);
absl::Status TakeFeeds(proto::RunStepRequest& request, std::vector<std::string>* names,
                       std::vector<Tensor>* values);
// `names` are those of the callable's feeds.
absl::StatusOr<std::vector<Tensor>> TakeFeeds(const std::vector<std::string>& names,
                                              proto::RunCallableRequest& request);
// Returns RESOURCE_EXHAUSTED if the response with these values, and a report of so many bytes,
// would be larger than `limit`, or if there is no memory for it. The call has the memory until the
// response is sent.
absl::Status ReserveResponse(const std::vector<Tensor>& values, uint64_t report_bytes,
                             const ResponseLimit& limit, Call& call);

// The partial runs and callables that clients have made in a session, by handle, up to 10,000 and
// 100,000 at a time. Thread-safe.
template <class PartialRun, class Callable>
class SessionHandles {
 public:
  absl::StatusOr<std::string> AddPartialRun(std::shared_ptr<PartialRun> run) {
    const MutexLock lock(mutex_);
    if (partial_runs_.size() >= kMaxPartialRuns)
      return absl::ResourceExhaustedError("The session has too many unfinished partial runs");
    std::string handle = absl::StrCat(next_handle_++);
    partial_runs_[handle] = std::move(run);
    return handle;
  }
  absl::StatusOr<std::shared_ptr<PartialRun>> FindPartialRun(const std::string& handle) const {
    const MutexLock lock(mutex_);
    const auto found = partial_runs_.find(handle);
    if (found != partial_runs_.end()) return found->second;
    return InvalidArgument(
        "Must run PartialRunSetup before performing partial runs: there is no partial run '",
        handle, "'");
  }
  void RemovePartialRun(const std::string& handle) {
    std::shared_ptr<PartialRun> run;  // destroyed without the lock
    const MutexLock lock(mutex_);
    const auto found = partial_runs_.find(handle);
    if (found == partial_runs_.end()) return;
    run = std::move(found->second);
    partial_runs_.erase(found);
  }
  void RemovePartialRuns() {
    std::map<std::string, std::shared_ptr<PartialRun>> runs;  // destroyed without the lock
    const MutexLock lock(mutex_);
    runs.swap(partial_runs_);
  }

  absl::StatusOr<int64_t> AddCallable(std::shared_ptr<const Callable> callable) {
    const MutexLock lock(mutex_);
    if (callables_.size() >= kMaxCallables)
      return absl::ResourceExhaustedError("The session has too many callables");
    callables_[next_handle_] = std::move(callable);
    return next_handle_++;
  }
  absl::StatusOr<std::shared_ptr<const Callable>> FindCallable(int64_t handle) const {
    const MutexLock lock(mutex_);
    const auto found = callables_.find(handle);
    if (found != callables_.end()) return found->second;
    return InvalidArgument("Attempted to run callable after handle was released: ", handle);
  }
  absl::Status RemoveCallable(int64_t handle) {
    const MutexLock lock(mutex_);
    if (callables_.erase(handle) > 0) return absl::OkStatus();
    return InvalidArgument("No such callable handle: ", handle);
  }

 private:
  static constexpr size_t kMaxPartialRuns = 10'000, kMaxCallables = 100'000;

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::shared_ptr<const Callable>> callables_ ABSL_GUARDED_BY(mutex_);
  int64_t next_handle_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_SESSION_REQUESTS_H_
