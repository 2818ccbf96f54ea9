#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/tools/case/case_runner.h"
#include "weir/tools/case/process_pool.h"
#include "weir/tools/lib/command.h"

// weir case: runs conformance cases, each in a separate process.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct CaseCommandOptions {
  std::vector<std::string> roots;
  CaseOptions run;
  int jobs = 0;
  double limit_s = 120;
  bool json = false, verbose = false;
};

// Serializes a result to send it from the process that computed it.
std::string Serialize(const CaseResult& result) {
  return Json{{"outcome", result.outcome},
              {"why", result.why},
              {"more", result.more},
              {"notes", result.notes}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}
CaseResult Deserialize(const ProcessResult& process) {
  CaseResult out;
  const Json json = Json::parse(process.output, nullptr, false);
  if (!process.death.empty() || !json.is_object()) {
    out.outcome = CaseResult::kFailed;
    out.why = process.death.empty() ? "its process returned no result" : process.death;
    return out;
  }
  out.outcome = json["outcome"].get<CaseResult::Outcome>();
  out.why = json["why"];
  out.more = json["more"].get<std::vector<std::string>>();
  out.notes = json["notes"].get<std::vector<std::string>>();
  return out;
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

constexpr const char* kWords[] = {"PASS", "FAIL", "SKIP"};

void PrintResult(const std::string& folder, const CaseResult& result,
                 const CaseCommandOptions& options, Console& console) {
  static constexpr Style kStyles[] = {Style::kGood, Style::kBad, Style::kNote};
  console.out << console.Paint(kStyles[result.outcome], kWords[result.outcome]) << " " << folder;
  if (!result.why.empty()) console.out << ": " << OneLine(result.why);
  if (!result.more.empty()) console.out << " (and " << result.more.size() << " more)";
  for (const std::string& note : result.notes) {
    console.out << " " << console.Paint(Style::kDim, "[" + note + "]");
  }
  console.out << "\n";
  for (size_t i = 0; options.verbose && i < result.more.size(); ++i) {
    console.out << "     " << OneLine(result.more[i]) << "\n";
  }
  console.out.flush();
}

int RunCases(const CaseCommandOptions& options, Console& console) {
  const auto folders = FindCases(options.roots);
  if (!folders.ok()) return Fail(console, folders.status());
  BuiltinOps().All();  // once here instead of once per process
  BuiltinKernels().Ops(kCpu);
  const int jobs = options.jobs > 0
                       ? options.jobs
                       : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CaseOptions run = options.run;
  if (run.num_threads == 0 && jobs > 1)
    run.num_threads = 2;  // several threads, but not one per processor for each case
  int count[3] = {};
  Json json = Json::array();
  RunInProcesses(
      static_cast<int>(folders->size()), jobs,
      std::chrono::milliseconds(static_cast<int64_t>(options.limit_s * 1000)),
      [&](int i) { return Serialize(RunCase((*folders)[i], run)); },
      [&](int i, const ProcessResult& process) {
        const CaseResult result = Deserialize(process);
        ++count[result.outcome];
        if (!options.json) return PrintResult((*folders)[i], result, options, console);
        json.push_back({{"case", (*folders)[i]},
                        {"outcome", kWords[result.outcome]},
                        {"why", result.why},
                        {"more", result.more},
                        {"notes", result.notes}});
      });
  if (options.json) {
    console.out << Json{{"passed", count[CaseResult::kPassed]},
                        {"failed", count[CaseResult::kFailed]},
                        {"skipped", count[CaseResult::kSkipped]},
                        {"cases", std::move(json)}}
                       .dump(1, ' ', false, Json::error_handler_t::replace)
                << "\n";
  } else {
    console.out << count[CaseResult::kPassed] << " passed, " << count[CaseResult::kFailed]
                << " failed";
    if (count[CaseResult::kSkipped] > 0)
      console.out << ", " << count[CaseResult::kSkipped] << " skipped";
    console.out << "\n";
  }
  return count[CaseResult::kFailed] == 0 ? kOk : kFailure;
}

}  // namespace

void AddCaseCommand(Command& weir) {
  auto options = std::make_shared<CaseCommandOptions>();
  Command command =
      weir.Add("case", "Run conformance cases: graphs with results recorded from another runtime",
               "  weir case cases/training cases/nn --jobs 2");
  command
      .Arguments("DIR", &options->roots,
                 "folders that contain case.json files (searched recursively)")
      .Required();
  command
      .Value("--jobs,-j", &options->jobs, "number of concurrent cases; default: one per processor")
      .AtLeast(0);
  command.Value("--threads", &options->run.num_threads, "number of threads per session").AtLeast(0);
  command.List("--disable", &options->run.disable, "optimizations to disable, by name")
      .Word("NAME,...");
  command.Value("--limit", &options->limit_s, "time limit per case in seconds").Range(0.001, 86400);
  command.Flag("--verbose,-v", &options->verbose,
               "print all failures of a case, not only the first");
  command.Flag("--json", &options->json, "print JSON");
  command.Do([options](Console& console) { return RunCases(*options, console); });
}

}  // namespace weir::tools
