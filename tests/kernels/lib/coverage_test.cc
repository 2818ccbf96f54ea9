#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weir/core/graph/op.h"
#include "weir/core/runtime/kernel.h"
#include "weir/ops/train/training.h"
#include "weir/tools/ops/gradient_tests.h"

namespace weir {

namespace {

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

// Adds the names that a line of source contains in quotes ("Sqrt") or calls (Sqrt(x)).
void AddNames(const std::string& line, std::set<std::string>* names) {
  const auto is_part = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  for (size_t i = 0; i < line.size();) {
    size_t end = i;
    while (end < line.size() && is_part(line[end])) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    const char before = i == 0 ? ' ' : line[i - 1], after = end < line.size() ? line[end] : ' ';
    const bool is_member = before == '.' || before == ':' || before == '>';
    if ((before == '"' && after == '"') || (after == '(' && !is_member))
      names->insert(line.substr(i, end - i));
    i = end;
  }
}

// Returns the names in the sources of tests, except those that only check which arguments an op
// rejects.
std::set<std::string> NamesInTests() {
  std::set<std::string> names;
  for (const char* folder : {"tests/kernels", "tests/ops", "tests/session"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string file = entry.path().filename();
      if (entry.path().extension() != ".cc" || file == "coverage_test.cc" ||
          file == "invalid_arguments_test.cc")
        continue;
      std::ifstream source(entry.path());
      std::string line;
      while (std::getline(source, line)) {
        if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "//"))
          AddNames(line, &names);
      }
    }
  }
  return names;
}

// Returns the ops that tests construct under another name, and these tests.
std::map<std::string, std::string> TestedUnderOtherNames() {
  std::map<std::string, std::string> ops = ReadWords("tests/kernels/tested_elsewhere.txt");
  for (const UpdateRule& rule : UpdateRules()) {
    for (const char* kind : {"Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"}) {
      const std::string op = kind + std::string(rule.name);
      if (BuiltinOps().Find(op) != nullptr) ops.try_emplace(op, "training_test");
    }
  }
  return ops;
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

TEST(CoverageTest, EveryOpIsTested) {
  const std::map<std::string, int> with_cases = OpsWithTestCases();
  const std::set<std::string> named = NamesInTests();
  const std::map<std::string, std::string> other = TestedUnderOtherNames();
  for (const OpSpec* op : BuiltinOps().All()) {
    const std::string& name = op->name();
    EXPECT_TRUE(with_cases.contains(name) || named.contains(name) || other.contains(name))
        << name << " has no row in tests/kernels/*/*_cases.cc, and no test names it";
  }
}

// The lines of tested_elsewhere.txt are for ops that need one.
TEST(CoverageTest, OtherNamesAreOfOpsThatNoTestNames) {
  const std::map<std::string, int> with_cases = OpsWithTestCases();
  const std::set<std::string> named = NamesInTests();
  for (const auto& [op, test] : ReadWords("tests/kernels/tested_elsewhere.txt")) {
    EXPECT_NE(BuiltinOps().Find(op), nullptr) << op;
    EXPECT_FALSE(with_cases.contains(op)) << op << " has a row now";
    EXPECT_FALSE(named.contains(op)) << op << " is named by a test now";
  }
}

// Comments state the tests of gradients (tools/ops/gradient_tests.h). RefSwitch and its kind have
// the gradients of the ops without Ref; QuantizeAndDequantize and TopK are for graphs from before
// 2017 and share the gradients of the ops that replaced them.
//
// Gradients checked to order 0 by nothing: QuantizeAndDequantize, RefEnter, RefExit, RefIdentity,
// RefMerge, RefNextIteration, RefSwitch, TopK.
TEST(CoverageTest, EveryGradientIsCheckedAsStated) {
  const std::map<std::string, int> with_cases = OpsWithTestCases();
  int untested = 0;
  const std::map<std::string, tools::GradientTest> tests = tools::GradientTests();
  for (const auto& [op, test] : tests) {
    const OpSpec* const spec = BuiltinOps().Find(op);
    ASSERT_NE(spec, nullptr) << op;
    EXPECT_TRUE(spec->gradient_fn()) << op << " has no gradient";
    const auto row = with_cases.find(op);
    const int checked = row == with_cases.end() ? 0 : row->second;
    EXPECT_EQ(checked, test.test == "sweep" ? test.order : 0)
        << op << ": the order to which rows check the gradient, and what a comment states, or 2";
    EXPECT_EQ(test.order > 0, test.test != "untested") << op;
    untested += test.order > 0 ? 0 : 1;
  }
  EXPECT_LE(100 * untested, 3 * tests.size()) << "more than 3% of the gradients are not tested";
}

TEST(CoverageTest, OpsThatTensorFlowDifferentiatesHaveAGradient) {
  for (const auto& [name, kind] : ReadWords("tests/kernels/tensorflow_gradients.txt")) {
    const OpSpec* const op = BuiltinOps().Find(name);
    if (op == nullptr || kind == "refused") continue;
    EXPECT_TRUE(kind == "zero" ? op->not_differentiable() : static_cast<bool>(op->gradient_fn()))
        << name;
  }
}

TEST(CoverageTest, EveryOpIsDocumented) {
  for (const OpSpec* op : BuiltinOps().All()) EXPECT_FALSE(op->doc().empty()) << op->name();
}

}  // namespace weir
