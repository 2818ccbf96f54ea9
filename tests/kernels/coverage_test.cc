#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "weir/core/kernel.h"
#include "weir/core/op.h"
#include "weir/ops/training.h"
#include "weir/tools/gradient_tests.h"

namespace weir {

namespace {

using Reasons = std::map<std::string, std::string>;

// Variables are inputs that a test case cannot provide.
const Reasons* WithVariableOps(Reasons reasons) {
  for (const char* op :
       {"Assign", "AssignAdd", "AssignAddVariableOp", "AssignSub", "AssignSubVariableOp",
        "AssignVariableOp", "CountUpTo", "DestroyResourceOp", "IsVariableInitialized",
        "ReadVariableOp", "ResourceCountUpTo", "ResourceGather", "ResourceGatherNd", "VarHandleOp",
        "VarIsInitializedOp", "Variable", "VariableShape", "VariableV2"}) {
    reasons.try_emplace(op, "state_test");
  }
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max", "Update", "NdAdd", "NdSub",
                         "NdMin", "NdMax", "NdUpdate"}) {
    reasons.try_emplace(std::string("Scatter") + op, "state_test");
    reasons.try_emplace(std::string("ResourceScatter") + op, "state_test");
  }
  for (const UpdateRule& rule : UpdateRules()) {
    for (const char* kind : {"Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"}) {
      const std::string op = kind + std::string(rule.name);
      if (BuiltinOps().Find(op) != nullptr) reasons.try_emplace(op, "training_test");
    }
  }
  return new Reasons(std::move(reasons));
}

// Ops that no test case of the sweep can cover, and where they are tested instead.
const Reasons& TestedElsewhere() {
  static const Reasons* const reasons = [] {
    Reasons listed;
    std::ifstream file("tests/kernels/tested_elsewhere.txt");
    std::string line, op, test;
    while (std::getline(file, line)) {
      if (line.rfind("#", 0) == 0) continue;
      if (std::istringstream(line) >> op >> test) listed.emplace(op, test);
    }
    return WithVariableOps(std::move(listed));
  }();
  return *reasons;
}

// Returns the ops of all test cases, and the order up to which a test case checks their gradients,
// from the names and the values of the sweep's tests:
// "Math/OpSweepTest.MatchesReference/Concat_axis1", with a value that is printed as "Concat_axis1,
// gradients to order 2".
std::map<std::string, int> OpsWithTestCases() {
  std::map<std::string, int> ops;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    if (std::string(suite.name()).find("OpSweepTest") == std::string::npos) continue;
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      std::string name = test.name();
      name = name.substr(name.find('/') + 1);
      int& order = ops[name.substr(0, name.find('_', 1))];
      order = std::max(order, std::string(test.value_param()).back() - '0');
    }
  }
  return ops;
}

// Reads the lines of a file that are not comments: an op and a word, which may be missing.
std::map<std::string, std::string> ReadWords(const std::string& path) {
  std::map<std::string, std::string> words;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::string line, op;
  while (std::getline(file, line)) {
    std::string word;
    std::istringstream text(line);
    if (line.rfind("#", 0) == 0 || !(text >> op)) continue;
    text >> word;
    words[op] = word;
  }
  return words;
}

}  // namespace

TEST(CoverageTest, EveryKernelHasAnOp) {
  for (const std::string& op : BuiltinKernels().Ops(kCpu)) {
    EXPECT_NE(BuiltinOps().Find(op), nullptr) << op << " has a kernel for the CPU but no record";
  }
}

TEST(CoverageTest, EveryOpHasAKernel) {
  const std::vector<std::string> with_kernel = BuiltinKernels().Ops(kCpu);
  const std::set<std::string> known(with_kernel.begin(), with_kernel.end());
  for (const OpSpec* op : BuiltinOps().All()) {
    EXPECT_TRUE(known.contains(op->name())) << op->name() << " has no kernel for the CPU";
  }
}

TEST(CoverageTest, EveryOpHasATestCaseOrAReason) {
  const std::map<std::string, int> with_cases = OpsWithTestCases();
  for (const OpSpec* op : BuiltinOps().All()) {
    EXPECT_TRUE(with_cases.contains(op->name()) || TestedElsewhere().contains(op->name()))
        << op->name() << " has no test case in tests/kernels/*_cases.cc and no reason in "
        << __FILE__;
  }
}

// Every op with a gradient has a line in tools/gradient_tests.txt, which `weir ops --coverage`
// prints. The line names the sweep if the sweep checks the gradient, with the order up to which it
// does.
TEST(CoverageTest, EveryGradientIsTested) {
  const std::map<std::string, int> with_cases = OpsWithTestCases();
  const std::map<std::string, tools::GradientTest> tests = tools::GradientTests();
  int gradients = 0, untested = 0;
  for (const OpSpec* op : BuiltinOps().All()) {
    const auto row = with_cases.find(op->name());
    const int order = row == with_cases.end() ? 0 : row->second;
    const auto test = tests.find(op->name());
    if (!op->gradient_fn()) {
      EXPECT_TRUE(test == tests.end()) << op->name() << " has no gradient";
      continue;
    }
    if (test == tests.end()) {
      ADD_FAILURE() << op->name() << " " << order << (order > 0 ? " sweep" : " (no test)");
      continue;
    }
    EXPECT_EQ(test->second.test == "sweep", order > 0) << op->name();
    if (order > 0) {
      EXPECT_EQ(test->second.order, order) << op->name();
    }
    const bool tested = test->second.test != "untested";
    EXPECT_EQ(test->second.order > 0, tested) << op->name();
    ++gradients;
    untested += tested ? 0 : 1;
  }
  EXPECT_LE(100 * untested, 3 * gradients) << "more than 3% of the gradients are not tested";
  for (const auto& [op, test] : tests) EXPECT_NE(BuiltinOps().Find(op), nullptr) << op;
}

TEST(CoverageTest, OpsThatTensorFlowDifferentiatesHaveAGradient) {
  for (const auto& [name, kind] : ReadWords("tests/kernels/tensorflow_gradients.txt")) {
    const OpSpec* const op = BuiltinOps().Find(name);
    if (op == nullptr || kind == "refused") continue;
    EXPECT_TRUE(kind == "zero" ? op->not_differentiable() : static_cast<bool>(op->gradient_fn()))
        << name;
  }
}

TEST(CoverageTest, ReasonsAreForExistingOpsWithoutATestCase) {
  const std::map<std::string, int> with_cases = OpsWithTestCases();
  for (const auto& [op, reason] : TestedElsewhere()) {
    EXPECT_NE(BuiltinOps().Find(op), nullptr) << op;
    EXPECT_FALSE(with_cases.contains(op)) << op << " now has a test case";
  }
}

TEST(CoverageTest, EveryOpIsDocumented) {
  for (const OpSpec* op : BuiltinOps().All()) EXPECT_FALSE(op->doc().empty()) << op->name();
}

}  // namespace weir
