#include <ctime>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"

// Ops about the process, and those that TensorFlow's debugger inserts.
//
// Gradients checked to order 1 by tests: DebugGradientIdentity.
// Gradients checked to order 0 by nothing: DebugGradientRefIdentity.
namespace weir {
namespace {

TEST(Process, AbortIsAnErrorOfTheStep) {
  for (const bool silent : {false, true}) {
    Graph g;
    Node* const node =
        AddNode(g, "Abort", {}, {{"error_msg", "no more"}, {"exit_without_error", silent}});
    ResourceMap resources;
    const absl::Status status = EvaluateTargets(g, {Operation(node)}, &resources);
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("no more"));
  }
}

TEST(Process, TimestampIsTheTimeOfTheRun) {
  Graph g;
  Node* const node = AddNode(g, "Timestamp", {});
  const auto out = Evaluate(g, {node->output(0)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_NEAR((*out)[0].scalar<double>(), static_cast<double>(std::time(nullptr)), 60);
}

TEST(Process, FactIsTensorFlows) {
  Graph g;
  const auto out = Evaluate(g, {AddNode(g, "Fact", {})->output(0)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<std::string>(), "0! == 1");
}

TEST(Debugger, ItsCopiesReturnTheirInput) {
  Graph g;
  const Tensor value = Tensor::Vector<float>({1, 2});
  const Output constant =
      Output(AddNode(g, "HostConst", {}, {{"value", value}, {"dtype", DT_FLOAT}}));
  EXPECT_EQ(constant.shape(), Shape({2}));
  Outputs all;
  for (const char* op : {"Copy", "CopyHost", "DebugGradientIdentity"})
    all.push_back(AddOp(op, {constant}));
  ASSERT_TRUE(g.status().ok()) << g.status();
  const auto out = Evaluate(g, all);
  ASSERT_TRUE(out.ok()) << out.status();
  for (const Tensor& t : *out) EXPECT_THAT(t.flat<float>(), testing::ElementsAre(1, 2));
}

TEST(Debugger, ItsReferenceIsThatOfTheVariable) {
  Graph g;
  Node* const variable = AddNode(g, "VariableV2", {}, {{"dtype", DT_FLOAT}, {"shape", Shape({1})}});
  ASSERT_NE(variable, nullptr) << g.status();
  const Output same = AddOp("DebugGradientRefIdentity", {variable->output(0)});
  Node* const assign = AddNode("Assign", {same, Const<float>(g, {1}, {7})});
  ASSERT_TRUE(g.status().ok()) << g.status();
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {Operation(assign)}, &resources).ok());
  const auto out = Evaluate(g, {variable->output(0)}, &resources);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<float>(), testing::ElementsAre(7));
}

TEST(Debugger, GradientsPassThroughItsIdentities) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2});
  const Output y = AddOp("DebugGradientIdentity", {x});
  const Outputs dx = DenseGradients({y}, {x});
  ASSERT_TRUE(g.status().ok()) << g.status();
  const auto out = Evaluate(g, {{x, Tensor::Vector<float>({3, 4})}}, dx);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<float>(), testing::ElementsAre(1, 1));
}

}  // namespace
}  // namespace weir
