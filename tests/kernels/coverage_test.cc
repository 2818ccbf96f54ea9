#include <map>
#include <set>
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
  static const Reasons* const reasons = WithVariableOps({
      {"AccumulatorApplyGradient", "control_flow_test"},
      {"AccumulatorNumAccumulated", "control_flow_test"},
      {"AccumulatorSetGlobalStep", "control_flow_test"},
      {"AccumulatorTakeGradient", "control_flow_test"},
      {"Assert", "control_flow_test"},
      {"AudioSummaryV2", "summary_test"},
      {"ConditionalAccumulator", "control_flow_test"},
      {"Const", "array_test"},
      {"ControlTrigger", "control_flow_test"},
      {"DestroyTemporaryVariable", "control_flow_test"},
      {"Enter", "control_flow_test"},
      {"Exit", "control_flow_test"},
      {"FusedBatchNorm", "batch_norm_test"},
      {"FusedBatchNormGrad", "batch_norm_test"},
      {"FusedBatchNormGradV2", "batch_norm_test"},
      {"FusedBatchNormGradV3", "batch_norm_test"},
      {"FusedBatchNormV2", "batch_norm_test"},
      {"FusedBatchNormV3", "batch_norm_test"},
      {"HistogramSummary", "summary_test"},
      {"ImageSummary", "summary_test"},
      {"LoopCond", "control_flow_test"},
      {"MatchingFiles", "tests/session/io_ops_test"},
      {"Merge", "control_flow_test"},
      {"MergeSummary", "summary_test"},
      {"MergeV2Checkpoints", "tests/session/io_ops_test"},
      {"Multinomial", "tests/ops/random_test"},
      {"NextIteration", "control_flow_test"},
      {"NoOp", "control_flow_test"},
      {"Placeholder", "array_test"},
      {"PlaceholderV2", "array_test"},
      {"Print", "control_flow_test"},
      {"PrintV2", "control_flow_test"},
      {"Qr", "qr_test"},
      {"RandomShuffle", "tests/ops/random_test"},
      {"RandomStandardNormal", "tests/ops/random_test"},
      {"RandomUniform", "tests/ops/random_test"},
      {"RandomUniformInt", "tests/ops/random_test"},
      {"ReadFile", "tests/session/io_ops_test"},
      {"RefEnter", "control_flow_test"},
      {"RefExit", "control_flow_test"},
      {"RefIdentity", "control_flow_test"},
      {"RefMerge", "control_flow_test"},
      {"RefNextIteration", "control_flow_test"},
      {"RefSelect", "control_flow_test"},
      {"RefSwitch", "control_flow_test"},
      {"ResourceAccumulatorApplyGradient", "control_flow_test"},
      {"ResourceAccumulatorNumAccumulated", "control_flow_test"},
      {"ResourceAccumulatorSetGlobalStep", "control_flow_test"},
      {"ResourceAccumulatorTakeGradient", "control_flow_test"},
      {"ResourceConditionalAccumulator", "control_flow_test"},
      {"ResourceStridedSliceAssign", "array_test"},
      {"Restore", "tests/session/io_ops_test"},
      {"RestoreSlice", "tests/session/io_ops_test"},
      {"RestoreV2", "tests/session/io_ops_test"},
      {"SaveV2", "tests/session/io_ops_test"},
      {"ScalarSummary", "summary_test"},
      {"ShardedFilename", "tests/session/io_ops_test"},
      {"ShardedFilespec", "tests/session/io_ops_test"},
      {"StackCloseV2", "tests/session/loops_test"},
      {"StackPopV2", "tests/session/loops_test"},
      {"StackPushV2", "tests/session/loops_test"},
      {"StackV2", "tests/session/loops_test"},
      {"StatelessMultinomial", "tests/ops/random_test"},
      {"StatelessRandomGetAlg", "tests/ops/random_test"},
      {"StatelessRandomNormal", "tests/ops/random_test"},
      {"StatelessRandomNormalV2", "tests/ops/random_test"},
      {"StatelessRandomUniform", "tests/ops/random_test"},
      {"StatelessRandomUniformFullInt", "tests/ops/random_test"},
      {"StatelessRandomUniformFullIntV2", "tests/ops/random_test"},
      {"StatelessRandomUniformInt", "tests/ops/random_test"},
      {"StatelessRandomUniformIntV2", "tests/ops/random_test"},
      {"StatelessRandomUniformV2", "tests/ops/random_test"},
      {"StatelessTruncatedNormal", "tests/ops/random_test"},
      {"StatelessTruncatedNormalV2", "tests/ops/random_test"},
      {"StaticRegexFullMatch", "tests/session/io_ops_test"},
      {"StridedSliceAssign", "array_test"},
      {"StringJoin", "tests/session/io_ops_test"},
      {"Switch", "control_flow_test"},
      {"TemporaryVariable", "control_flow_test"},
      {"TensorSummary", "summary_test"},
      {"TensorSummaryV2", "summary_test"},
      {"TileGrad", "array_test"},
      {"TopK", "array_test"},
      {"TruncatedNormal", "tests/ops/random_test"},
      {"UniqueV2", "array_test"},
      {"UniqueWithCountsV2", "array_test"},
      {"WriteFile", "tests/session/io_ops_test"},
  });
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
