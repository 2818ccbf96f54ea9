#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "weir/core/io/bundle.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/formats.h"
#include "weir/tools/lib/progress.h"
#include "weir/tools/lib/text_table.h"

// weir ckpt verify: every byte of a checkpoint, accounted for by checksums where there are some.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct VerifyOptions {
  std::string path;
  bool json = false;
};

Json ProblemToJson(const BundleProblem& problem) {
  return {{"file", problem.file},
          {"offset", problem.offset},
          {"size", problem.size},
          {"tensor", problem.name},
          {"message", problem.message}};
}

std::string ProblemToText(const BundleProblem& problem) {
  std::string where = problem.file;
  if (problem.size > 0) {
    absl::StrAppend(&where, " bytes [", problem.offset, ", ", problem.offset + problem.size, ")");
  }
  if (!problem.name.empty()) absl::StrAppend(&where, " tensor '", problem.name, "'");
  return absl::StrCat(where, ": ", problem.message);
}

// Reads each tensor of a format that has no index to account for every byte.
BundleReport ReadAll(const CheckpointLocation& location) {
  BundleReport report;
  const auto problem = [&](const std::string& name, const absl::Status& status) {
    report.problems.push_back({location.path, 0, 0, name, std::string(status.message())});
  };
  Metadata ignored;
  const auto reader = location.format->open(location.path, &ignored);
  if (!reader.ok()) {
    problem("", reader.status());
    return report;
  }
  const std::vector<CheckpointTensor> tensors = *(*reader)->List();
  for (const CheckpointTensor& tensor : tensors) {
    ++report.tensors;
    const absl::Status status = (*reader)->Check(tensor.name);
    if (status.ok())
      report.data_bytes += BytesOf(tensor.dtype, tensor.shape);
    else
      problem(tensor.name, status);
  }
  return report;
}

void PrintJson(const CheckpointLocation& location, const BundleReport& report, Console& console) {
  Json problems = Json::array();
  for (const BundleProblem& problem : report.problems) problems.push_back(ProblemToJson(problem));
  const Json out = {{"checkpoint", location.path},
                    {"format", std::string(location.format->name)},
                    {"checksums", location.format->has_checksums},
                    {"sound", report.problems.empty()},
                    {"tensors", report.tensors},
                    {"index_bytes", report.index_bytes},
                    {"data_bytes", report.data_bytes},
                    {"problems", std::move(problems)}};
  console.out << out.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void PrintText(const CheckpointLocation& location, const BundleReport& report, Console& console) {
  const bool sound = report.problems.empty();
  for (const BundleProblem& problem : report.problems) {
    console.out << console.Paint(Style::kBad, "DAMAGED ") << ProblemToText(problem) << "\n";
  }
  console.out << console.Paint(sound ? Style::kGood : Style::kBad, sound ? "OK" : "DAMAGED") << " "
              << location.path << ": " << report.tensors << " tensors, ";
  if (report.index_bytes > 0)
    console.out << WithCommas(report.index_bytes) << " bytes of index and ";
  console.out << WithCommas(report.data_bytes) << (report.index_bytes > 0 ? " of data" : " bytes")
              << (location.format->has_checksums
                      ? " are sound"
                      : " are readable; without checksums, changed values are not found");
  if (!sound) console.out << ", " << report.problems.size() << " problems";
  console.out << "\n";
}

absl::StatusOr<BundleReport> VerifyAll(const CheckpointLocation& location, Console& console) {
  const ProgressBar progress = ShowReading(console, location.path, CheckpointBytes(location.path));
  const bool is_bundle = location.format->name == "v1" || location.format->name == "v2";
  if (is_bundle) return VerifyBundle(location.path);
  return ReadAll(location);
}

absl::StatusOr<bool> Verify(const VerifyOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointLocation location,
                        LocateCheckpoint(options.path, &console.err));
  WEIR_ASSIGN_OR_RETURN(const BundleReport report, VerifyAll(location, console));
  (options.json ? PrintJson : PrintText)(location, report, console);
  return report.problems.empty();
}

}  // namespace

void AddVerifyCommand(Command& ckpt) {
  auto options = std::make_shared<VerifyOptions>();
  Command verify = ckpt.Add(
      "verify", "Check every byte of index and data and report damage (exit status 1 if damaged)",
      "  weir ckpt verify runs/digits/model-500");
  verify.Argument("CHECKPOINT", &options->path, kCheckpointHelp).Required();
  verify.Flag("--json", &options->json, "print JSON");
  verify.Do([options](Console& console) {
    const absl::StatusOr<bool> sound = Verify(*options, console);
    if (!sound.ok()) return Fail(console, sound.status());
    return *sound ? kOk : kFailure;
  });
}

}  // namespace weir::tools
