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

TEST(Cases, Variables) { ExpectAllPass({"variables"}); }
TEST(Cases, Random) { ExpectAllPass({"random"}); }
TEST(Cases, Training) {
  ExpectAllPass({"training/lenet_adam", "training/lenet_momentum", "training/mlp_adadelta_1",
                 "training/mlp_adagrad_0", "training/mlp_adam_0", "training/mlp_adam_1",
                 "training/mlp_ftrl_0", "training/mlp_momentum_1", "training/mlp_nesterov_0",
                 "training/mlp_rmsprop_1", "training/mlp_rmspropc_0", "training/mlp_sgd_0",
                 "training/mlp_sgd_1", "training/regression_linear"});
}

}  // namespace
}  // namespace weir::tools
