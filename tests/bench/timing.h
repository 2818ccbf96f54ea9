#ifndef WEIR_TESTS_BENCH_TIMING_H_
#define WEIR_TESTS_BENCH_TIMING_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Timing and output for the programs in this folder. They follow the rules of the workload suite
// that compare.py runs, so that their lines are comparable with the peers'.
namespace weir::bench {

// Returns seconds since a fixed time.
double Now();
// Return the peak and the current memory of the process in MiB.
double PeakMegabytes();
double ResidentMegabytes();
// Resets the peak that PeakMegabytes returns.
void ResetPeak();

// Times `call` after a warm-up (three calls and 0.3 s): repeats of back-to-back calls, each repeat
// at least 20 ms, for `budget` seconds and at least five repeats. Returns the seconds per call,
// best repeat first. Stops at the first error.
absl::StatusOr<std::vector<double>> TimeCalls(const std::function<absl::Status()>& call,
                                              double budget);

// Prints a JSON line {"workload", "peer": "weir", "metric", "value", "unit", "median", "repeats"}.
struct Figure {
  std::string workload, metric;
  double value;
  std::string unit;
  double median = 0;
  size_t repeats = 1;
};
void Emit(const Figure& figure);
// Prints the best of `seconds` (best first) and their median, each converted by `convert`.
void Emit(const std::string& workload, const std::string& metric,
          const std::vector<double>& seconds, const std::string& unit,
          const std::function<double(double)>& convert);

// Parses the flags and returns the other arguments. `usage` describes the program, with an example.
std::vector<std::string> ParseFlags(int argc, char** argv, const std::string& usage);
// Returns the value for main: 0, or 1 after printing the error to stderr.
int ExitCode(const absl::Status& status);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_TIMING_H_
