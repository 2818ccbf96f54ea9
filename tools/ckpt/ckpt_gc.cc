#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "weir/core/io/retention.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/lib/text_table.h"

// weir ckpt gc: removes old checkpoints from a folder, and what killed saves have left there.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct GcOptions {
  std::string folder;
  RetentionRules rules;
  bool lower = false, dry_run = false, json = false;
};

void PrintJson(const GcOptions& options, const RetentionPlan& plan,
               const std::vector<std::string>& skipped, Console& console) {
  Json checkpoints = Json::array();
  for (const RetainedCheckpoint& each : plan.checkpoints) {
    checkpoints.push_back({{"checkpoint", each.prefix},
                           {"time", each.time},
                           {"bytes", each.bytes},
                           {"metric", each.metric ? Json(*each.metric) : Json()},
                           {"keep", each.is_kept()},
                           {"reason", each.reason}});
  }
  const Json json = {{"folder", options.folder},
                     {"dry_run", options.dry_run},
                     {"checkpoints", std::move(checkpoints)},
                     {"leftovers", plan.leftovers},
                     {"skipped", skipped}};
  console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void PrintText(const GcOptions& options, const RetentionPlan& plan,
               const std::vector<std::string>& skipped, Console& console) {
  TextTable table({"", "checkpoint", "written", ">size", "why"});
  size_t num_removed = 0;
  int64_t bytes = 0;
  for (const RetainedCheckpoint& each : plan.checkpoints) {
    const absl::Time time = absl::FromUnixSeconds(static_cast<int64_t>(each.time));
    table.Row({each.is_kept() ? "keep" : "remove", each.prefix,
               absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::UTCTimeZone()),
               HumanBytes(each.bytes), each.reason});
    if (each.is_kept()) continue;
    ++num_removed;
    bytes += each.bytes;
  }
  table.Print(console);
  for (const std::string& path : plan.leftovers) console.out << "remove leftover " << path << "\n";
  for (const std::string& path : skipped)
    console.out << console.Paint(Style::kNote, "SKIPPED ") << path << ": in use\n";
  console.out << plan.checkpoints.size() - num_removed << " checkpoints kept, " << num_removed
              << " removed (" << HumanBytes(bytes) << "), " << plan.leftovers.size() << " leftovers"
              << (options.dry_run ? "; nothing was removed" : "") << "\n";
}

absl::Status Gc(const GcOptions& options, Console& console) {
  RetentionRules rules = options.rules;
  if (options.lower) rules.better = Better::kLower;
  WEIR_ASSIGN_OR_RETURN(const RetentionPlan plan, PlanRetention(options.folder, rules));
  std::vector<std::string> skipped;
  if (!options.dry_run) {
    WEIR_ASSIGN_OR_RETURN(skipped, ApplyRetention(options.folder, plan));
  }
  (options.json ? PrintJson : PrintText)(options, plan, skipped, console);
  return absl::OkStatus();
}

}  // namespace

void AddGcCommand(Command& ckpt) {
  auto options = std::make_shared<GcOptions>();
  constexpr double kMaxHours = 1e6;
  Command gc = ckpt.Add("gc", "Remove old checkpoints and what killed saves have left",
                        "  weir ckpt gc runs/digits --keep 3 --dry-run");
  gc.Argument("FOLDER", &options->folder, "a folder of checkpoints in format V2").Required();
  gc.Value("--keep", &options->rules.keep,
           "the number of newest complete checkpoints to keep; default 5. Pinned ones are kept too")
      .Word("N")
      .AtLeast(1);
  gc.Value("--best", &options->rules.best,
           "also keep this many checkpoints with the best metrics, which savers store")
      .Word("N")
      .AtLeast(0);
  gc.Flag("--lower", &options->lower, "with --best: lower metrics are better");
  gc.Value("--every-hours", &options->rules.every_hours,
           "also keep the first checkpoint of each period of this many hours")
      .Word("HOURS")
      .Range(0, kMaxHours);
  gc.Flag("--verify", &options->rules.verify,
          "read all checkpoints: one with a wrong checksum is not complete");
  gc.Flag("--dry-run", &options->dry_run, "print what would be removed; remove nothing");
  gc.Flag("--json", &options->json, "print JSON");
  gc.Do([options](Console& console) { return Finish(console, Gc(*options, console)); });
}

}  // namespace weir::tools
