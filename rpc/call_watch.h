#ifndef WEIR_RPC_CALL_WATCH_H_
#define WEIR_RPC_CALL_WATCH_H_

#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/master.h"

namespace grpc {
class ServerContext;
}

namespace weir::rpc {

// The calls in progress: limits their number, and cancels those whose clients have disconnected.
// gRPC's synchronous servers must be polled for this: one thread polls all calls in progress,
// twenty times per second.
class CallWatch {
 public:
  // `periodic_task` is called about once per second, on the same thread.
  CallWatch(int max_calls, std::function<void()> periodic_task);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  // Calls that do work count toward the limit. Calls that end work do not, so a server that is busy
  // can be administered.
  enum class Kind { kWork, kAdministration };

  // A call in progress, registered for the lifetime of this object.
  class ScopedCall {
   public:
    ScopedCall(CallWatch& watch, grpc::ServerContext& context, Kind kind);
    ~ScopedCall();
    ScopedCall(const ScopedCall&) = delete;
    ScopedCall& operator=(const ScopedCall&) = delete;
    // RESOURCE_EXHAUSTED if there are too many calls.
    const absl::Status& admission() const { return admission_; }
    Call& call() { return call_; }

   private:
    friend class CallWatch;
    CallWatch& watch_;
    grpc::ServerContext& context_;
    absl::Status admission_;
    bool counts_ = false;
    Call call_;
  };

  int num_calls() const;

 private:
  void Watch();

  const int max_calls_;
  const std::function<void()> periodic_task_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::set<ScopedCall*> calls_ ABSL_GUARDED_BY(mutex_);
  int num_working_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CALL_WATCH_H_
