#ifndef WEIR_TESTS_BENCH_CALLERS_H_
#define WEIR_TESTS_BENCH_CALLERS_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

// The measurement of W11, for Weir and for its peers. It depends only on the standard library.
namespace weir::bench {

struct Calls {
  double per_second = 0, p50_us = 0, p99_us = 0;
  bool failed = false;
};

// Runs `threads` threads that call in a closed loop for `budget` seconds. `call(thread)` returns
// false on failure, which ends all threads.
inline Calls CallFrom(int threads, double budget, const std::function<bool(int)>& call) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::atomic<bool> ends{false}, failed{false};
  std::mutex mutex;
  std::vector<double> latencies;
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> callers;
  for (int t = 0; t < threads; ++t) {
    callers.emplace_back([&, t] {
      std::vector<double> own;
      while (!ends) {
        const Clock::time_point began = Clock::now();
        if (!call(t)) failed = ends = true;
        own.push_back(seconds_since(began));
      }
      const std::lock_guard<std::mutex> lock(mutex);
      latencies.insert(latencies.end(), own.begin(), own.end());
    });
  }
  while (!ends && seconds_since(start) < budget)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ends = true;
  for (std::thread& caller : callers) caller.join();
  const double seconds = seconds_since(start);
  if (latencies.empty()) return {0, 0, 0, true};
  std::sort(latencies.begin(), latencies.end());
  const auto quantile = [&](double q) {
    return latencies[static_cast<size_t>(q * static_cast<double>(latencies.size() - 1))] * 1e6;
  };
  return {static_cast<double>(latencies.size()) / seconds, quantile(0.5), quantile(0.99), failed};
}

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_CALLERS_H_
