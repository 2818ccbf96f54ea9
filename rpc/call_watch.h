#ifndef WEIR_RPC_CALL_WATCH_H_
#define WEIR_RPC_CALL_WATCH_H_

#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/mutex.h"

namespace grpc {
class ServerContext;
}

namespace weir::rpc {

// Cancels calls whose clients have disconnected. gRPC's synchronous servers must be polled for
// this: one thread polls all calls in progress, twenty times per second.
class CallWatch {
 public:
  // `periodic_task` is called about once per second, on the same thread.
  explicit CallWatch(std::function<void()> periodic_task);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  // A call in progress, registered for the lifetime of this object.
  class Call {
   public:
    Call(CallWatch& watch, grpc::ServerContext& context);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    Cancellation& cancellation() { return cancellation_; }

   private:
    friend class CallWatch;
    CallWatch& watch_;
    grpc::ServerContext& context_;
    Cancellation cancellation_;
  };

  int num_calls() const;

 private:
  void Watch();

  const std::function<void()> periodic_task_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CALL_WATCH_H_
