#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "weir/core/kernel.h"
#include "weir/core/op.h"
#include "weir/ops/training.h"

namespace weir {

namespace {

using Reasons = std::map<std::string, std::string>;

// Variables are no inputs that a row could give.
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

// Ops that no row of the sweep can show, and where they are tested instead.
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

// The ops of all rows, from the names of the sweep's tests:
// "Math/OpSweepTest.MatchesReference/Concat_axis1".
std::set<std::string> OpsWithRows() {
  std::set<std::string> ops;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    if (std::string(suite.name()).find("OpSweepTest") == std::string::npos) continue;
    for (int k = 0; k < suite.total_test_count(); ++k) {
      std::string name = suite.GetTestInfo(k)->name();
      name = name.substr(name.find('/') + 1);
      ops.insert(name.substr(0, name.find('_', 1)));
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

TEST(CoverageTest, EveryOpHasARowOrAReason) {
  const std::set<std::string> with_rows = OpsWithRows();
  for (const OpSpec* op : BuiltinOps().All()) {
    EXPECT_TRUE(with_rows.contains(op->name()) || TestedElsewhere().contains(op->name()))
        << op->name() << " has no row in tests/kernels/*_cases.cc and no reason in " << __FILE__;
  }
}

TEST(CoverageTest, ReasonsAreForOpsThatExistAndHaveNoRow) {
  const std::set<std::string> with_rows = OpsWithRows();
  for (const auto& [op, reason] : TestedElsewhere()) {
    EXPECT_NE(BuiltinOps().Find(op), nullptr) << op;
    EXPECT_FALSE(with_rows.contains(op)) << op << " has a row now";
  }
}

TEST(CoverageTest, EveryOpIsDocumented) {
  for (const OpSpec* op : BuiltinOps().All()) EXPECT_FALSE(op->doc().empty()) << op->name();
}

}  // namespace weir
