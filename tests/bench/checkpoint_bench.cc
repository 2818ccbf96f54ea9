// W7 of the suite: saves many variables, with and without waiting for the disk, and restores them.

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "weir/session/weir.h"
#include "weir/tests/bench/timing.h"

ABSL_FLAG(std::string, dir, ".", "folder for the checkpoints, which are removed at the end");
ABSL_FLAG(std::string, only, "", "only workloads whose names contain this");
ABSL_FLAG(int, repeats, 4, "number of saves and restores");

namespace weir::bench {
namespace {

// Restores into a session whose variables have no values yet.
absl::Status RestoreFresh(const Graph& g, const Saver& saver, const std::string& path,
                          const std::string& workload, double bytes) {
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  const double before = ResidentMegabytes();
  ResetPeak();
  const double start = Now();
  WEIR_RETURN_IF_ERROR(saver.Restore(session, path));
  Emit({workload, "restore_fresh", bytes / (Now() - start) * 1e-9, "GB/s"});
  Emit({workload, "restore_fresh_peak", PeakMegabytes() - before, "MB"});
  return absl::OkStatus();
}

absl::Status Run(const std::string& workload, int64_t count, int64_t elements,
                 const std::string& directory) {
  const double bytes = static_cast<double>(count * elements) * 4;
  double start = Now();
  Graph g;
  for (int64_t i = 0; i < count; ++i)
    GetVariable(g, absl::StrCat("v", i), {elements}, Constant(static_cast<double>(i) * 0.5));
  WEIR_ASSIGN_OR_RETURN(Saver saver, Saver::Create(g, {.max_to_keep = 1}));
  const Operation init = GlobalVariablesInitializer(g);
  WEIR_RETURN_IF_ERROR(g.status());
  Emit({workload, "build_graph", Now() - start, "s"});
  WEIR_ASSIGN_OR_RETURN(Saver unsynced,
                        Saver::Create(g, {.max_to_keep = 1, .durability = Durability::kUnsynced}));
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  start = Now();
  WEIR_RETURN_IF_ERROR(session.Run(Feeds{}, Outputs{}, {init}).status());
  Emit({workload, "initialize", Now() - start, "s"});

  std::vector<double> saves, unsynced_saves, restores;
  double save_peak = 0, restore_peak = 0;
  std::string path;
  for (int i = 0; i < std::max(1, absl::GetFlag(FLAGS_repeats)); ++i) {
    const SaveOptions options{.global_step = i, .write_state = false, .write_meta_graph = false};
    start = Now();
    WEIR_RETURN_IF_ERROR(unsynced.Save(session, directory + "/u", options).status());
    unsynced_saves.push_back(Now() - start);
    double before = ResidentMegabytes();
    ResetPeak();
    start = Now();
    WEIR_ASSIGN_OR_RETURN(path, saver.Save(session, directory + "/m", options));
    saves.push_back(Now() - start);
    save_peak = std::max(save_peak, PeakMegabytes() - before);
    before = ResidentMegabytes();
    ResetPeak();
    start = Now();
    WEIR_RETURN_IF_ERROR(saver.Restore(session, path));
    restores.push_back(Now() - start);
    restore_peak = std::max(restore_peak, PeakMegabytes() - before);
  }
  const auto rate = [&](double s) { return bytes / s * 1e-9; };
  std::sort(saves.begin(), saves.end());
  std::sort(unsynced_saves.begin(), unsynced_saves.end());
  std::sort(restores.begin(), restores.end());
  Emit(workload, "save", unsynced_saves, "GB/s", rate);
  Emit(workload, "save_fsync", saves, "GB/s", rate);
  Emit(workload, "restore", restores, "GB/s", rate);
  Emit({workload, "save_peak_extra", save_peak, "MB"});
  Emit({workload, "restore_peak_extra", restore_peak, "MB"});
  WEIR_RETURN_IF_ERROR(RestoreFresh(g, saver, path, workload, bytes));
  // Checks that the last variable is unchanged.
  WEIR_ASSIGN_OR_RETURN(const Tensors last, session.Run(Feeds{}, {GlobalVariables(g).back()}));
  const double is = last[0].data<float>()[elements - 1], was = static_cast<double>(count - 1) * 0.5;
  return is == was ? absl::OkStatus() : Internal("The last variable is ", is, " and was ", was);
}

absl::Status RunAll() {
  const std::filesystem::path own = std::filesystem::path(absl::GetFlag(FLAGS_dir)) / "w7_weir";
  absl::Status status;
  for (const auto& [name, count, elements] :
       {std::tuple{"W7.big_100x10MiB", 100, 2621440}, {"W7.many_10000x1KiB", 10000, 256}}) {
    if (!status.ok() || !absl::StrContains(name, absl::GetFlag(FLAGS_only))) continue;
    std::filesystem::remove_all(own);
    std::filesystem::create_directories(own);
    status = Run(name, count, elements, own.string());
  }
  std::filesystem::remove_all(own);
  return status;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::bench::ParseFlags(
      argc, argv,
      "Saves and restores variables.\nExample: checkpoint_bench --dir=/tmp --only=many");
  return weir::bench::ExitCode(weir::bench::RunAll());
}
