#ifndef WEIR_RPC_LIB_CALL_WATCH_H_
#define WEIR_RPC_LIB_CALL_WATCH_H_

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/lib/call.h"

namespace grpc {
class ServerContextBase;
}

namespace weir::rpc {

// The calls in progress: limits their number, and cancels those whose clients have disconnected or
// stopped sending or reading. gRPC's synchronous servers must be polled for this: one thread polls
// all calls in progress, twenty times per second.
//
// A call receives its request, works, and sends its response. Working calls are limited by
// `max_calls`. Calls that still receive have threads of their own, so half-sent requests do not
// prevent others from working: up to `max_receiving`, of which a client (address) has at most half.
// While there is hardly any memory left, no call begins to work.
class CallWatch {
 public:
  // A request must arrive, and a response must be read, within `transfer_limit` (zero: no limit).
  // `periodic_task` is called about once per second, on the same thread.
  CallWatch(int max_calls, int max_receiving, std::chrono::milliseconds transfer_limit,
            std::function<void()> periodic_task);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  // Calls that do work count toward the limit. Calls that end work do not, so a server that is busy
  // can be administered.
  enum class Kind { kWork, kAdministration };

  // A call in progress, registered for the lifetime of this object.
  class ScopedCall {
   public:
    // The call receives its request.
    ScopedCall(CallWatch& watch, grpc::ServerContextBase& context, Kind kind);
    ~ScopedCall();
    ScopedCall(const ScopedCall&) = delete;
    ScopedCall& operator=(const ScopedCall&) = delete;

    // RESOURCE_EXHAUSTED if too many calls of this client are receiving.
    const absl::Status& admission() const { return admission_; }
    // The request has arrived. Returns RESOURCE_EXHAUSTED if there are too many working calls, or
    // if there is hardly any memory left.
    absl::Status StartWork();
    // The response is being sent.
    void StartSending();
    Call& call() { return call_; }

   private:
    friend class CallWatch;
    using Clock = std::chrono::steady_clock;
    void StopReceiving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(watch_.mutex_);
    void StopWorking() ABSL_EXCLUSIVE_LOCKS_REQUIRED(watch_.mutex_);

    CallWatch& watch_;
    grpc::ServerContextBase& context_;
    const Kind kind_;
    absl::Status admission_;
    Call call_;
    std::string client_;  // the connection without its port
    bool is_receiving_ = false, is_working_ = false;
    Clock::time_point transfer_until_;  // the end of the transfer in progress; max(): none
  };

  // Ends the calls that are in progress at `when`, and those that come later, with `why`.
  void EndCallsAt(std::chrono::steady_clock::time_point when, absl::Status why);

  int num_calls() const;
  // The number of threads that gRPC needs for the calls.
  int num_threads() const { return max_calls_ + max_receiving_; }

 private:
  void Watch();
  // Cancels the calls that are over for their clients.
  void CancelCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The latest end of a transfer that starts now.
  std::chrono::steady_clock::time_point TransferEnd() const;

  const int max_calls_, max_receiving_;
  const std::chrono::milliseconds transfer_limit_;
  const std::function<void()> periodic_task_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::set<ScopedCall*> calls_ ABSL_GUARDED_BY(mutex_);
  int num_working_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> num_receiving_ ABSL_GUARDED_BY(mutex_);  // by client
  std::chrono::steady_clock::time_point end_calls_at_ ABSL_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::time_point::max();
  absl::Status why_calls_end_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_memory_ ABSL_GUARDED_BY(mutex_) = true;
  std::thread thread_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_CALL_WATCH_H_
