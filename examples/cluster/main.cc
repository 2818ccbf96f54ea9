// Trains a small network on handwritten digits with parameter servers and workers. Without --job it
// starts all of them on this machine, as processes of its own; with --cluster, --job and --task it
// is one of them, on any machine.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "weir/examples/cluster/processes.h"
#include "weir/examples/cluster/training.h"

namespace cluster {
namespace {

struct Flags {
  int ps = 2, workers = 3;
  std::string cluster, job;
  int task = 0;
  int parent = 0;  // the process that started this one, for its own use
  TrainingOptions training = {.data = "examples/data/digits/digits.csv.gz",
                              .directory = {},
                              .save_every = 0,
                              .steps = 600,
                              .batch = 32,
                              .report_every = 50,
                              .learning_rate = 3e-3f};
};

// Starts a process for each task, with the arguments of this one, and returns when all workers have
// ended.
absl::Status RunAll(const Flags& flags, const std::vector<std::string>& arguments) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                        FreeAddresses(flags.ps + flags.workers));
  const auto first_worker = addresses.begin() + flags.ps;
  const std::string cluster =
      absl::StrCat("ps|", absl::StrJoin(addresses.begin(), first_worker, ";"), ",worker|",
                   absl::StrJoin(first_worker, addresses.end(), ";"));
  std::printf("Starting %d parameter servers and %d workers: --cluster='%s'\n", flags.ps,
              flags.workers, cluster.c_str());
  std::fflush(stdout);
  Processes processes;
  const auto start = [&](const char* job, int count, bool must_end) {
    for (int task = 0; task < count; ++task) {
      std::vector<std::string> own = arguments;
      own.insert(own.end(), {absl::StrCat("--cluster=", cluster), absl::StrCat("--job=", job),
                             absl::StrCat("--task=", task)});
      WEIR_RETURN_IF_ERROR(processes.Start(absl::StrCat(job, " ", task), own, must_end));
    }
    return absl::OkStatus();
  };
  WEIR_RETURN_IF_ERROR(start("ps", flags.ps, /*must_end=*/false));
  WEIR_RETURN_IF_ERROR(start("worker", flags.workers, /*must_end=*/true));
  return processes.Wait();
}

absl::Status Run(const Flags& flags, const std::vector<std::string>& arguments) {
  if (flags.job.empty()) return RunAll(flags, arguments);
  if (flags.parent != 0) EndWithParent(flags.parent);
  WEIR_ASSIGN_OR_RETURN(const auto cluster, weir::rpc::ClusterSpec::Parse(flags.cluster));
  return flags.job == "ps" ? RunParameterServer(cluster, flags.task)
                           : RunWorker(cluster, flags.task, flags.training);
}

}  // namespace
}  // namespace cluster

int main(int argc, char** argv) {
  cluster::Flags flags;
  cluster::TrainingOptions& training = flags.training;
  CLI::App app(
      "Trains on handwritten digits with parameter servers and workers, here by default.\n"
      "Example: cluster --workers 4 --sync");
  app.add_option("--ps", flags.ps, "parameter servers to start")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "workers to start")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--sync", training.sync, "apply the mean of all workers' gradients in each step");
  app.add_option("--steps", training.steps, "updates of the variables")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch", training.batch, "images per gradient")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rate", training.learning_rate, "learning rate of Adam")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--report-every", training.report_every, "steps between two lines of a worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--dir", training.directory, "folder for checkpoints, from which it goes on");
  app.add_option("--save-every", training.save_every,
                 "updates between two checkpoints; 0: one every ten minutes")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--data", training.data, "gzipped CSV file of images and labels")
      ->capture_default_str();
  CLI::Option* const job = app.add_option("--job", flags.job, "run only a task of this job")
                               ->check(CLI::IsMember({"ps", "worker"}));
  app.add_option("--task", flags.task, "with --job: its number")->check(CLI::NonNegativeNumber);
  CLI::Option* const spec = app.add_option(
      "--cluster", flags.cluster, "with --job: all tasks, 'ps|HOST:PORT,worker|HOST:PORT;...'");
  job->needs(spec);
  app.add_option("--parent", flags.parent)->group("");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = cluster::Run(flags, {argv + 1, argv + argc});
  if (!status.ok()) std::fprintf(stderr, "cluster: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
