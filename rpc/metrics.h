#ifndef WEIR_RPC_METRICS_H_
#define WEIR_RPC_METRICS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/call.h"

namespace weir::rpc {

// A server's metrics for Prometheus, at http://address:port/metrics:
//
// clang-format off
//   weir_calls_total{method, code}                completed calls
//   weir_call_seconds{method}                     duration of calls, a histogram
//   weir_model_calls_total{model, method, code}   the same, of calls of models that exist
//   weir_model_call_seconds{model, method}
//   weir_sessions, weir_calls                     current number of sessions and of calls in progress
//   weir_dropped_log_records                      requests that were to be logged, and were not
// clang-format on
//
// The calls of models also have TensorFlow Serving's names:
// `:tensorflow:serving:request_count{model_name, status}`, and
// `:tensorflow:serving:request_latency{model_name, API, entrypoint}`, a histogram of microseconds.
class Metrics {
 public:
  // Creates metrics that are served nowhere yet.
  static std::unique_ptr<Metrics> Create();
  // Creates metrics and serves them. Port 0 selects a free port. Returns UNAVAILABLE if the port is
  // in use.
  static absl::StatusOr<std::unique_ptr<Metrics>> Serve(const std::string& address, int port,
                                                        const std::string& path = "/metrics");
  ~Metrics();

  // The port that they are served on; 0: none.
  int port() const;
  // Returns the page, in Prometheus's text format 0.0.4.
  std::string Page() const;
  // Records a completed call.
  void CountCall(const CallRecord& call);
  // The current number of sessions and of calls in progress, and how many records the logs of
  // requests have dropped.
  struct Load {
    int sessions = 0, calls = 0;
    int64_t dropped_log_records = 0;
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
