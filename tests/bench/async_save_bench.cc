// Steps beside an asynchronous save, in pairs with steps beside none, and the memory of the save.

#include <algorithm>
#include <filesystem>

#include "absl/flags/flag.h"
#include "weir/session/weir.h"
#include "weir/tests/bench/timing.h"

ABSL_FLAG(std::string, dir, ".", "folder for the checkpoints, which are removed at the end");
ABSL_FLAG(int, megabytes, 100, "size of all variables");
ABSL_FLAG(int, batch, 64, "rows of the input: the time of a step");
ABSL_FLAG(int, steps, 8, "steps of each half of a pair");
ABSL_FLAG(int, repeats, 8, "number of pairs");

namespace weir::bench {
namespace {

constexpr int64_t kWidth = 1600;  // a matrix of this width has 10 MB

// A network of square matrices, trained by gradient descent, which writes to all variables.
Operation BuildModel(Graph& g) {
  const int64_t layers = std::max<int64_t>(1, int64_t{absl::GetFlag(FLAGS_megabytes)} * 1000000 /
                                                  (kWidth * kWidth * int64_t{sizeof(float)}));
  Output x = Ones(g, Shape({absl::GetFlag(FLAGS_batch), kWidth}));
  for (int64_t i = 0; i < layers; ++i)
    x = MatMul(x, GetVariable(g, absl::StrCat("v", i), {kWidth, kWidth}));
  return GradientDescent(1e-6).Minimize(ReduceMean(x * x));
}

absl::StatusOr<double> TimeSteps(const Step& step) {
  const double start = Now();
  for (int i = 0; i < absl::GetFlag(FLAGS_steps); ++i) WEIR_RETURN_IF_ERROR(step.Run({}, nullptr));
  return Now() - start;
}

// The figures of all pairs.
struct Figures {
  std::vector<double> alone, beside, taking, writing, synchronous;  // seconds
  // Megabytes: the peak of steps before any save, and the peak of all.
  double peak_alone = 0, peak = 0;
};

// Runs a pair. The save begins with the first step of its half.
absl::Status RunPair(Session& session, const Step& step, Saver& saver, const std::string& path,
                     Figures* figures) {
  WEIR_ASSIGN_OR_RETURN(figures->alone.emplace_back(), TimeSteps(step));
  if (figures->peak_alone == 0) figures->peak_alone = PeakMegabytes();
  const double start = Now();
  WEIR_RETURN_IF_ERROR(saver.Save(session, path, {.mode = SaveMode::kAsync}).status());
  figures->taking.push_back(Now() - start);
  WEIR_ASSIGN_OR_RETURN(const double steps, TimeSteps(step));
  figures->beside.push_back(figures->taking.back() + steps);
  WEIR_RETURN_IF_ERROR(saver.Wait());
  figures->writing.push_back(Now() - start);
  figures->peak = PeakMegabytes();
  const double again = Now();
  WEIR_RETURN_IF_ERROR(saver.Save(session, path).status());
  figures->synchronous.push_back(Now() - again);
  return absl::OkStatus();
}

absl::Status RunPairs(const std::string& folder) {
  Graph g;
  const Operation train = BuildModel(g);
  WEIR_ASSIGN_OR_RETURN(Saver saver, Saver::Create(g));
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(GlobalVariablesInitializer(g)));
  WEIR_ASSIGN_OR_RETURN(const Step step, session.Prepare({}, {}, {train}));
  WEIR_RETURN_IF_ERROR(TimeSteps(step).status());
  Figures figures;
  for (int i = 0; i < std::max(1, absl::GetFlag(FLAGS_repeats)); ++i)
    WEIR_RETURN_IF_ERROR(RunPair(session, step, saver, folder + "/m", &figures));
  std::vector<double> ratios;
  for (size_t i = 0; i < figures.alone.size(); ++i)
    ratios.push_back(figures.beside[i] / figures.alone[i]);
  const std::string workload = absl::StrCat("async_save_", absl::GetFlag(FLAGS_megabytes), "MB");
  const auto emit = [&](const char* metric, std::vector<double> values, const char* unit) {
    std::sort(values.begin(), values.end());
    Emit(workload, metric, values, unit, [](double value) { return value; });
  };
  emit("steps_alone", figures.alone, "s");
  emit("steps_beside_save", figures.beside, "s");
  emit("ratio_of_pairs", ratios, "");
  emit("taking_values", figures.taking, "s");
  emit("until_written", figures.writing, "s");
  emit("synchronous_save", figures.synchronous, "s");
  Emit({workload, "peak_alone", figures.peak_alone, "MB"});
  Emit({workload, "peak_beside_save", figures.peak, "MB"});
  return absl::OkStatus();
}

absl::Status RunAll() {
  const std::filesystem::path own = std::filesystem::path(absl::GetFlag(FLAGS_dir)) / "async_save";
  std::filesystem::remove_all(own);
  std::filesystem::create_directories(own);
  const absl::Status status = RunPairs(own.string());
  std::filesystem::remove_all(own);
  return status;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::bench::ParseFlags(argc, argv,
                          "Times steps beside an asynchronous save.\n"
                          "Example: async_save_bench --dir=/tmp --megabytes=2000 --repeats=3");
  return weir::bench::ExitCode(weir::bench::RunAll());
}
