#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tools/case_runner.h"
#include "weir/tools/cli.h"

// Recorded cases lie beside the project, not in it: the variable WEIR_CASES says where
// (tools/test.sh sets it if they are there). Without them these tests are skipped.
namespace weir::tools {
namespace {

void ExpectAllPass(const std::vector<std::string>& names) {
  const char* root = std::getenv("WEIR_CASES");
  if (root == nullptr || access(root, R_OK) != 0) {
    GTEST_SKIP() << "WEIR_CASES does not say where the recorded cases are";
  }
  std::vector<std::string> roots;
  for (const std::string& name : names) roots.push_back(std::string(root) + "/" + name);
  const auto folders = FindCases(roots);
  ASSERT_TRUE(folders.ok()) << folders.status();
  for (const std::string& folder : *folders) {
    const CaseResult result = RunCase(folder);
    EXPECT_EQ(result.outcome, CaseResult::kPassed) << folder << ": " << result.why;
    for (const std::string& more : result.more) ADD_FAILURE() << folder << ": " << more;
  }
}

class Cases : public testing::TestWithParam<const char*> {};

TEST_P(Cases, AllPass) { ExpectAllPass({GetParam()}); }

INSTANTIATE_TEST_SUITE_P(Categories, Cases,
                         testing::Values("bad_input", "checkpoints", "control", "functions",
                                         "later", "math", "nn", "queues", "random", "real",
                                         "session", "tables", "training", "variables"),
                         [](const auto& category) { return std::string(category.param); });

// Not "merged": its mean of twenty floats is added up in double here, and comes out three units in
// the last place from TensorFlow's.
TEST(SummaryCases, Text) { ExpectAllPass({"summaries/print_and_py_free"}); }

}  // namespace
}  // namespace weir::tools
