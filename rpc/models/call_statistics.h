#ifndef WEIR_RPC_MODELS_CALL_STATISTICS_H_
#define WEIR_RPC_MODELS_CALL_STATISTICS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"

namespace weir::rpc {

// What the status page shows of the calls to models. Thread-safe. Of times, the latest thousand for
// each model and method are kept, of errors the latest 50.
class CallStatistics {
 public:
  using Clock = std::chrono::system_clock;

  // Records a completed call. `model` is one that the server has, or "": what clients make up must
  // not fill the memory.
  void Record(const std::string& model, const std::string& method, const absl::Status& status,
              std::chrono::nanoseconds took, Clock::time_point now = Clock::now());

  struct Row {
    std::string model, method;
    int64_t calls = 0, errors = 0;
    double per_second = 0;  // over the last minute
    std::chrono::nanoseconds median{0}, percentile_99{0};
  };
  std::vector<Row> Rows(Clock::time_point now = Clock::now()) const;

  struct Failure {
    Clock::time_point at;
    std::string model, method;
    absl::Status status;  // with a shortened message
  };
  // The latest first.
  std::vector<Failure> Failures() const;

 private:
  static constexpr int kSeconds = 60, kTimes = 1000;
  struct Calls {
    int64_t calls = 0, errors = 0;
    std::vector<std::chrono::nanoseconds> times;  // a ring of the latest ones
    // The numbers of calls in the last seconds: second s is at s % kSeconds, if it is of that time.
    std::array<std::pair<int64_t, int64_t>, kSeconds> seconds = {};  // second, number
  };

  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Calls> calls_ ABSL_GUARDED_BY(mutex_);
  std::deque<Failure> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_CALL_STATISTICS_H_
