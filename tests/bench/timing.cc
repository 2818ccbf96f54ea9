#include "weir/tests/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace weir::bench {

namespace {

// Reads a line such as "VmHWM:   1234 kB" from the process status of Linux.
double StatusMegabytes(absl::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!absl::StartsWith(line, key)) continue;
    double kilobytes = 0;
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (parts.size() > 1 && absl::SimpleAtod(parts[1], &kilobytes)) return kilobytes / 1024;
  }
  return 0;
}

}  // namespace

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double PeakMegabytes() { return StatusMegabytes("VmHWM:"); }
double ResidentMegabytes() { return StatusMegabytes("VmRSS:"); }
void ResetPeak() { std::ofstream("/proc/self/clear_refs") << 5; }

absl::StatusOr<std::vector<double>> TimeCalls(const std::function<absl::Status()>& call,
                                              double budget) {
  double last = 1;
  const double warm = Now();
  for (int i = 0; i < 3 || Now() - warm < 0.3; ++i) {
    const double start = Now();
    if (const absl::Status status = call(); !status.ok()) return status;
    last = Now() - start;
  }
  const int calls = std::max(1, static_cast<int>(0.02 / last + 0.999));
  std::vector<double> seconds;
  for (const double start = Now(); Now() - start < budget || seconds.size() < 5;) {
    const double repeat = Now();
    for (int i = 0; i < calls; ++i) {
      if (const absl::Status status = call(); !status.ok()) return status;
    }
    seconds.push_back((Now() - repeat) / calls);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

void Emit(const Figure& f) {
  nlohmann::ordered_json line = {
      {"workload", f.workload}, {"peer", "weir"}, {"metric", f.metric},
      {"value", f.value},       {"unit", f.unit},
  };
  if (f.median != 0) line["median"] = f.median;
  line["repeats"] = f.repeats;
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

void Emit(const std::string& workload, const std::string& metric,
          const std::vector<double>& seconds, const std::string& unit,
          const std::function<double(double)>& convert) {
  Emit({workload, metric, convert(seconds.front()), unit, convert(seconds[seconds.size() / 2]),
        seconds.size()});
}

std::vector<std::string> ParseFlags(int argc, char** argv, const std::string& usage) {
  absl::SetProgramUsageMessage(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  return {rest.begin() + 1, rest.end()};
}

int ExitCode(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace weir::bench
