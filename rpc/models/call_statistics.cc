#include "weir/rpc/models/call_statistics.h"

#include <algorithm>

namespace weir::rpc {

namespace {

constexpr size_t kMaxFailures = 50, kMaxMessage = 300;

int64_t SecondOf(CallStatistics::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::chrono::nanoseconds Percentile(std::vector<std::chrono::nanoseconds>& times, size_t percent) {
  if (times.empty()) return std::chrono::nanoseconds(0);
  const auto at = times.begin() + static_cast<int64_t>((times.size() - 1) * percent / 100);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

}  // namespace

void CallStatistics::Record(const std::string& model, const std::string& method,
                            const absl::Status& status, std::chrono::nanoseconds took,
                            Clock::time_point now) {
  const MutexLock lock(mutex_);
  Calls& calls = calls_[{model, method}];
  if (calls.times.size() < kTimes) {
    calls.times.push_back(took);
  } else {
    calls.times[static_cast<size_t>(calls.calls % kTimes)] = took;
  }
  ++calls.calls;
  auto& [second, number] = calls.seconds[static_cast<size_t>(SecondOf(now) % kSeconds)];
  if (std::exchange(second, SecondOf(now)) != SecondOf(now)) number = 0;
  ++number;
  if (status.ok()) return;
  ++calls.errors;
  const absl::Status shortened(status.code(), status.message().substr(0, kMaxMessage));
  failures_.push_front({now, model, method, shortened});
  if (failures_.size() > kMaxFailures) failures_.pop_back();
}

std::vector<CallStatistics::Row> CallStatistics::Rows(Clock::time_point now) const {
  const MutexLock lock(mutex_);
  std::vector<Row> rows;
  for (const auto& [names, calls] : calls_) {
    Row row = {names.first, names.second, calls.calls, calls.errors};
    int64_t recent = 0;
    for (const auto& [second, number] : calls.seconds) {
      if (second > SecondOf(now) - kSeconds) recent += number;
    }
    row.per_second = static_cast<double>(recent) / kSeconds;
    std::vector<std::chrono::nanoseconds> times = calls.times;
    row.median = Percentile(times, 50);
    row.percentile_99 = Percentile(times, 99);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<CallStatistics::Failure> CallStatistics::Failures() const {
  const MutexLock lock(mutex_);
  return {failures_.begin(), failures_.end()};
}

}  // namespace weir::rpc
