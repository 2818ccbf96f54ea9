#ifndef WEIR_TESTS_BENCH_TIMING_H_
#define WEIR_TESTS_BENCH_TIMING_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// How the programs here take times and print them: by the rules of the suite of workloads that
// compare.py runs, so that their lines stand beside the peers'.
namespace weir::bench {

// Seconds since some fixed moment.
double Now();
// The most memory that the process has had, and what it has, both in MiB.
double PeakMegabytes();
double ResidentMegabytes();
// From now on PeakMegabytes counts anew.
void ResetPeak();

// Times `call` when warm (three calls and 0.3 s): repeats of back-to-back calls, each of 20 ms or
// more, for `budget` seconds and at least five times. Seconds a call, best repeat first. Ends with
// the first error.
absl::StatusOr<std::vector<double>> TimeCalls(const std::function<absl::Status()>& call,
                                              double budget);

// A JSON line {"workload", "peer": "weir", "metric", "value", "unit", "median", "repeats"}.
struct Figure {
  std::string workload, metric;
  double value;
  std::string unit;
  double median = 0;
  size_t repeats = 1;
};
void Emit(const Figure& figure);
// The best of `seconds` (best first) and their middle, each given to `convert`.
void Emit(const std::string& workload, const std::string& metric,
          const std::vector<double>& seconds, const std::string& unit,
          const std::function<double(double)>& convert);

// Reads the flags; returns the other arguments. `usage` says what the program does, with an
// example.
std::vector<std::string> ParseFlags(int argc, char** argv, const std::string& usage);
// 0, or 1 and the reason on stderr: what main returns.
int ExitCode(const absl::Status& status);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_TIMING_H_
