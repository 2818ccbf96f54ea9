#ifndef WEIR_RPC_METRICS_H_
#define WEIR_RPC_METRICS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "weir/core/tensor/status.h"

namespace weir::rpc {

// A server's metrics for Prometheus, at http://address:port/metrics:
//
// clang-format off
//   weir_calls_total{method, code}   completed calls
//   weir_call_seconds{method}        duration of calls, a histogram
//   weir_sessions, weir_calls        current number of sessions and of calls in progress
// clang-format on
class Metrics {
 public:
  // Port 0 selects a free port. Returns UNAVAILABLE if the port is in use.
  static absl::StatusOr<std::unique_ptr<Metrics>> Serve(const std::string& address, int port);
  ~Metrics();

  int port() const;
  // Records a completed call.
  void CountCall(absl::string_view method, const absl::Status& status,
                 std::chrono::nanoseconds took);
  // The current number of sessions and of calls in progress.
  struct Load {
    int sessions = 0, calls = 0;
  };
  // Sets the callback that reports the current load at each scrape. Without a callback (before the
  // first call, or after null was passed), the load is zero.
  void SetLoadCallback(std::function<Load()> load);

 private:
  struct Impl;
  explicit Metrics(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_METRICS_H_
