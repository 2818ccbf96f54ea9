#include "weir/tests/fuzz/step_fuzzer.h"

#include <cstdlib>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/tests/fuzz/case_graph.h"
#include "weir/tests/io/test_files.h"

namespace weir::fuzz {
namespace {

std::vector<std::string> Begin() {
  std::vector<std::string> paths;
  const std::string folder = "tests/fuzz/corpus/steps";
  const auto names = Files().List(folder);
  if (names.ok()) {
    for (const std::string& name : *names) paths.push_back(JoinPath(folder, name));
  }
  if (const char* cases = std::getenv("WEIR_CASES")) paths.push_back(cases);
  const auto graphs = ReadGraphs(paths);
  return graphs.ok() ? *graphs : std::vector<std::string>();
}

TEST(StepFuzzer, EqualSeedsMakeEqualGraphs) {
  const std::vector<std::string> graphs = Begin();
  ASSERT_FALSE(graphs.empty());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(MutatedGraph(graphs, seed).size(), MutatedGraph(graphs, seed).size()) << seed;
  }
}

// Runs for WEIR_FUZZ_SECONDS; .ci/run sets it to 60.
TEST(StepFuzzer, FindsNothing) {
  const std::vector<std::string> graphs = Begin();
  ASSERT_FALSE(graphs.empty());
  FuzzOptions options;
  const char* seconds = std::getenv("WEIR_FUZZ_SECONDS");
  options.seconds = seconds == nullptr ? 10 : std::atoi(seconds);
  const FuzzReport report = Fuzz(graphs, options);
  EXPECT_TRUE(report.finds.empty()) << absl::StrJoin(report.finds, "\n");
  std::printf("%llu mutations\n", static_cast<unsigned long long>(report.runs));
}

}  // namespace
}  // namespace weir::fuzz
