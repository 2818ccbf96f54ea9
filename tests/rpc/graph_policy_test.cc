#include "weir/rpc/lib/graph_policy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/proto/graph.pb.h"

namespace weir::rpc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

proto::NodeDef* AddNode(proto::GraphDef& graph, const std::string& name, const std::string& op) {
  proto::NodeDef* node = graph.add_node();
  node->set_name(name);
  node->set_op(op);
  return node;
}

// Adds a function with one node of each of these ops.
void AddFunction(proto::GraphDef& graph, const std::string& name,
                 const std::vector<std::string>& ops) {
  proto::FunctionDef* function = graph.mutable_library()->add_function();
  function->mutable_signature()->set_name(name);
  for (const std::string& op : ops) {
    proto::NodeDef* node = function->add_node_def();
    node->set_name(absl::StrCat("call_", op));
    node->set_op(op);
  }
}

absl::Status Check(const proto::GraphDef& graph, const GraphLimits& limits) {
  return GraphPolicy(limits).Add(graph);
}

TEST(GraphPolicy, NamesTheNodeAndTheOpThatAccessFiles) {
  proto::GraphDef graph;
  AddNode(graph, "a", "Neg");
  AddNode(graph, "reads", "ReadFile");
  EXPECT_TRUE(Check(graph, {}).ok());
  const absl::Status status = Check(graph, {.allow_external_access = false});
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("Node 'reads' (op ReadFile)"), HasSubstr("files")));
}

TEST(GraphPolicy, FindsOpsInFunctionsAndInAttributes) {
  proto::GraphDef graph;
  AddFunction(graph, "f", {"Neg", "PrintV2"});
  absl::Status status = Check(graph, {.allow_external_access = false});
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("call_PrintV2"), HasSubstr("In function f")));

  // A function's own attribute names the op.
  graph.Clear();
  proto::NameAttrList* function =
      (*AddNode(graph, "map", "MapDataset")->mutable_attr())["f"].mutable_func();
  function->set_name("harmless");
  (*function->mutable_attr())["g"].mutable_list()->add_func()->set_name("WriteFile");
  status = Check(graph, {.allow_external_access = false});
  EXPECT_THAT(std::string(status.message()), HasSubstr("Node 'map' (op WriteFile)"));
}

TEST(GraphPolicy, CountsNodesAndBytesOfAllAdditions) {
  proto::GraphDef graph;
  AddNode(graph, "a", "Neg");
  AddFunction(graph, "f", {"Neg", "Neg"});
  GraphPolicy policy({.max_nodes = 5});
  EXPECT_TRUE(policy.Add(graph).ok());
  const absl::Status status = policy.Add(graph);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("6 nodes, but the server allows 5"));

  const auto bytes = static_cast<int64_t>(graph.ByteSizeLong());
  EXPECT_TRUE(Check(graph, {.max_bytes = bytes}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Check(graph, {.max_bytes = bytes - 1})));
}

TEST(GraphPolicy, LimitsTheDepthOfCalls) {
  proto::GraphDef graph;
  AddFunction(graph, "f0", {"Neg"});
  for (int i = 1; i < 4; ++i) {
    const std::string last = absl::StrCat("f", i - 1);
    AddFunction(graph, absl::StrCat("f", i), {last, last, "f0"});
  }
  EXPECT_TRUE(Check(graph, {.max_call_depth = 4}).ok());
  const absl::Status status = Check(graph, {.max_call_depth = 3});
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 3 levels"));
}

TEST(GraphPolicy, LimitsNodesThatStartThreads) {
  proto::GraphDef graph;
  AddNode(graph, "a", "Batch");
  AddNode(graph, "b", "Unbatch");
  AddNode(graph, "c", "Neg");
  EXPECT_TRUE(Check(graph, {}).ok());
  GraphPolicy policy({.max_thread_nodes = 3});
  EXPECT_TRUE(policy.Add(graph).ok());
  const absl::Status status = policy.Add(graph);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("have 4 nodes of Batch"));

  graph.Clear();
  AddFunction(graph, "f", {"Neg", "BatchFunction"});
  const absl::Status inside = Check(graph, {.max_thread_nodes = 3});
  EXPECT_TRUE(absl::IsPermissionDenied(inside)) << inside;
  EXPECT_THAT(std::string(inside.message()),
              HasSubstr("Node 'call_BatchFunction' (op BatchFunction) in function f"));
}

TEST(GraphPolicy, RefusesRecursionThatALaterAdditionCloses) {
  proto::GraphDef first, second;
  AddFunction(first, "f", {"g"});
  AddFunction(second, "g", {"f"});
  GraphPolicy policy({.max_call_depth = 10});
  EXPECT_TRUE(policy.Add(first).ok());
  const absl::Status status = policy.Add(second);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("calls itself"));
}

// Ten thousand functions that each call the next: no recursion on input.
TEST(GraphPolicy, ChainsOfAnyLengthAreRefused) {
  proto::GraphDef graph;
  for (int i = 0; i < 10'000; ++i)
    AddFunction(graph, absl::StrCat("f", i), {absl::StrCat("f", i + 1)});
  EXPECT_TRUE(absl::IsResourceExhausted(Check(graph, {.max_call_depth = 100})));
}

}  // namespace
}  // namespace weir::rpc
