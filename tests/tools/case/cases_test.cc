#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tools/case/case_runner.h"
#include "weir/tools/lib/cli.h"

// Recorded cases are outside the project, in the folder given by the variable WEIR_CASES
// (tools/test.sh sets it if the cases exist). Without them these tests are skipped.
namespace weir::tools {
namespace {

class CaseFolders : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("WEIR_CASES");
    if (root == nullptr || access(root, R_OK) != 0) {
      GTEST_SKIP() << "WEIR_CASES does not say where the recorded cases are";
    }
    root_ = root;
  }

  // Returns the folders of the cases of a category.
  std::vector<std::string> In(const std::string& category) {
    const auto folders = FindCases({root_ + "/" + category});
    EXPECT_TRUE(folders.ok()) << folders.status();
    return folders.ok() ? *folders : std::vector<std::string>();
  }

  void ExpectAllPass(const std::string& category) {
    for (const std::string& folder : In(category)) {
      const CaseResult result = RunCase(folder);
      EXPECT_EQ(result.outcome, CaseResult::kPassed) << folder << ": " << result.why;
      for (const std::string& more : result.more) ADD_FAILURE() << folder << ": " << more;
    }
  }

 private:
  std::string root_;
};

class Cases : public CaseFolders, public testing::WithParamInterface<const char*> {};

TEST_P(Cases, AllPass) { ExpectAllPass(GetParam()); }

TEST_P(Cases, HaveTheSameBitsOnAnyNumberOfThreads) {
  for (const std::string& folder : In(GetParam())) {
    const uint32_t bits = RunCase(folder, {.num_threads = 1}).bits;
    for (const int threads : {2, 3, 4, 7})
      EXPECT_EQ(RunCase(folder, {.num_threads = threads}).bits, bits)
          << folder << ", " << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Categories, Cases,
                         testing::Values("bad_input", "checkpoints", "control", "functions",
                                         "later", "math", "nn", "queues", "random", "real",
                                         "session", "tables", "training", "variables"),
                         [](const auto& category) { return std::string(category.param); });

// Not "merged": Weir adds up its mean of twenty floats in double, three units in the last place
// from TensorFlow's result.
TEST_F(CaseFolders, TextSummariesPass) { ExpectAllPass("summaries/print_and_py_free"); }

}  // namespace
}  // namespace weir::tools
