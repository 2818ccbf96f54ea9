#ifndef WEIR_RPC_METRICS_H_
#define WEIR_RPC_METRICS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "weir/core/status.h"

namespace weir::rpc {

// A server's numbers for Prometheus, at http://address:port/metrics:
//
// clang-format off
//   weir_calls_total{method, code}   calls that have ended
//   weir_call_seconds{method}        how long they took, a histogram
//   weir_sessions, weir_calls        how many there are now
// clang-format on
class Metrics {
 public:
  // Port 0 takes a free one. UNAVAILABLE if the port is taken.
  static absl::StatusOr<std::unique_ptr<Metrics>> Serve(const std::string& address, int port);
  ~Metrics();

  int port() const;
  // A call has ended.
  void CountCall(absl::string_view method, const absl::Status& status,
                 std::chrono::nanoseconds took);
  // What is asked whenever the numbers are. Until it is set, and after it is set to null, there are
  // no sessions and no calls.
  struct Load {
    int sessions = 0, calls = 0;
  };
  void SetLoadCallback(std::function<Load()> load);

 private:
  struct Impl;
  explicit Metrics(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_METRICS_H_
