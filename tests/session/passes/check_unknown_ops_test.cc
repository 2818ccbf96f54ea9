// Graphs with unregistered ops: a step that does not need them runs; a step that needs one returns
// NOT_FOUND. TensorFlow rejects such a graph, except for Python functions, for which it reports the
// same error as asserted here when the node runs on a server.

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/freeze.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

proto::GraphDef Def(const std::string& text) {
  proto::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  def.mutable_versions()->set_producer(2474);
  return def;
}

std::string Type(const std::string& attr, const std::string& type = "DT_FLOAT") {
  return absl::StrCat(" attr { key: '", attr, "' value { type: ", type, " } }");
}

// x -> y -> my_op (ZeroOut) -> after; y -> feeder (NoSuchInfeed), which has no output.
const std::string kLine = absl::StrCat(
    "node { name: 'x' op: 'Placeholder' ", Type("dtype"), "} node { name: 'y' op: 'Neg' input: 'x'",
    Type("T"),
    "} node { name: 'my_op' op: 'ZeroOut' input: 'y' attr { key: 'depth' value { i: 3 } }",
    "} node { name: 'after' op: 'Identity' input: 'my_op:1'", Type("T"),
    "} node { name: 'feeder' op: 'NoSuchInfeed' input: 'y' input: '^x' }");

struct LoadedGraph {
  explicit LoadedGraph(const std::string& text) {
    const absl::Status status = ImportGraphDef(graph, Def(text)).status();
    EXPECT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<Tensors> Run(const std::vector<std::string>& fetches,
                              const std::vector<std::string>& targets = {}) {
    if (!session) session.emplace(*Session::Create(graph));
    std::vector<std::pair<std::string, Tensor>> feeds;
    if (graph.FindNode("x") != nullptr) feeds = {{"x:0", Tensor::Scalar(2.f)}};
    return session->Run(feeds, fetches, targets);
  }
  Graph graph;
  std::optional<Session> session;
};

void ExpectNotFound(const absl::Status& status, const std::string& op, const std::string& node) {
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("Op type not registered '" + op + "' in binary running on "),
                    HasSubstr(node + "'")));
}

TEST(UnknownOps, StepsWithoutUnknownOpsRun) {
  LoadedGraph line(kLine);
  const auto y = line.Run({"y:0"});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ((*y)[0].scalar<float>(), -2);
}

TEST(UnknownOps, ErrorNamesNodeAndOp) {
  LoadedGraph line(kLine);
  ExpectNotFound(line.Run({"after:0"}).status(), "ZeroOut", "my_op");
  ExpectNotFound(line.Run({"y:0", "my_op:0"}).status(), "ZeroOut", "my_op");
  ExpectNotFound(line.Run({"my_op:7"}).status(), "ZeroOut", "my_op");
  ExpectNotFound(line.Run({}, {"my_op"}).status(), "ZeroOut", "my_op");
  ExpectNotFound(line.Run({"y:0"}, {"feeder"}).status(), "NoSuchInfeed", "feeder");
  EXPECT_EQ(FailedNode(line.Run({"after:0"}).status()), "my_op");
}

TEST(UnknownOps, AMisspelledOneIsSuggested) {
  LoadedGraph line("node { name: 'c' op: 'NoOpp' }");
  EXPECT_THAT(line.Run({}, {"c"}).status().message(), HasSubstr("Did you mean 'NoOp'"));
}

TEST(UnknownOps, AnOutputThatIsFedIsNotComputed) {
  LoadedGraph line(kLine);
  Session session = *Session::Create(line.graph);
  const std::vector<std::pair<std::string, Tensor>> feeds = {{"my_op:1", Tensor::Scalar(8.f)}};
  const auto after = session.Run(feeds, {"after:0"}, {});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*after)[0].scalar<float>(), 8);
}

TEST(UnknownOps, AControlEdgeFromOneNeedsIt) {
  LoadedGraph line(kLine + "node { name: 'z' op: 'Neg' input: 'y' input: '^my_op'" + Type("T") +
                   "}");
  ExpectNotFound(line.Run({"z:0"}).status(), "ZeroOut", "my_op");
}

TEST(UnknownOps, AStepFailsBeforeItHasAnyEffect) {
  LoadedGraph line(kLine);
  const Variable v = MakeVariable(line.graph, 1.f, {.name = "v"});
  const Operation add = v.AssignAdd(1.f);
  Session session = *Session::Create(line.graph);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(line.graph)).ok());
  const Feeds feeds = {{*line.graph.FindOutput("x"), Tensor::Scalar(2.f)}};
  const auto step = session.Run(feeds, {*line.graph.FindOutput("after")}, {add});
  ExpectNotFound(step.status(), "ZeroOut", "my_op");
  EXPECT_EQ((*session.Run({v}))[0].scalar<float>(), 1);
}

// As in a graph with a tf.py_func for debugging.
TEST(UnknownOps, OneInABranchIsNeededIfTheBranchIsTaken) {
  const std::string node =
      absl::StrCat("node { name: 'p' op: 'Placeholder' ", Type("dtype", "DT_BOOL"),
                   "} node { name: 's' op: 'Switch' input: 'x' input: 'p'", Type("T"),
                   "} node { name: 'my_op' op: 'ZeroOut' input: 's:1'",
                   "} node { name: 'n' op: 'Neg' input: 's:0'", Type("T"),
                   "} node { name: 'm' op: 'Merge' input: 'my_op' input: 'n' ", Type("T"),
                   " attr { key: 'N' value { i: 2 } } } node { name: 'x' op: 'Placeholder' ",
                   Type("dtype"), "}");
  LoadedGraph cond(node);
  Session session = *Session::Create(cond.graph);
  const auto run = [&](bool p) {
    const std::vector<std::pair<std::string, Tensor>> feeds = {{"x:0", Tensor::Scalar(2.f)},
                                                               {"p:0", Tensor::Scalar(p)}};
    return session.Run(feeds, {"m:0"}, {});
  };
  const auto n = run(false);
  ASSERT_TRUE(n.ok()) << n.status();
  EXPECT_EQ((*n)[0].scalar<float>(), -2);
  ExpectNotFound(run(true).status(), "ZeroOut", "my_op");
}

// f(a) = ZeroOut(a), g(a) = -a beside an unused ZeroOut.
const std::string kFunctions = absl::StrCat(
    kLine,
    "library { function { signature { name: 'f' input_arg { name: 'a' type: DT_FLOAT }"
    " output_arg { name: 'r' type: DT_FLOAT } }"
    " node_def { name: 'inner' op: 'ZeroOut' input: 'a' } ret { key: 'r' value: 'inner:zeroed:0' } "
    "}"
    " function { signature { name: 'g' input_arg { name: 'a' type: DT_FLOAT }"
    " output_arg { name: 'r' type: DT_FLOAT } }"
    " node_def { name: 'inner' op: 'ZeroOut' input: 'a' }"
    " node_def { name: 'sum' op: 'ZeroOut' input: 'inner:zeroed:0' input: 'inner:rest:1' }"
    " node_def { name: 'neg' op: 'Neg' input: 'a'",
    Type("T"), " } ret { key: 'r' value: 'neg:y:0' } } }",
    "node { name: 'calls_f' op: 'f' input: 'x' } node { name: 'calls_g' op: 'g' input: 'x' }");

TEST(UnknownOps, InAFunctionTheyAreNeededIfItsResultIsComputedFromThem) {
  for (const char* disabled : {"remove_no_ops", "inline_functions"}) {
    LoadedGraph line(kFunctions);
    line.session.emplace(*Session::Create(line.graph, {.disable = {disabled}}));
    EXPECT_TRUE(line.Run({"y:0"}).ok());
    const auto g = line.Run({"calls_g:0"});
    ASSERT_TRUE(g.ok()) << g.status();
    EXPECT_EQ((*g)[0].scalar<float>(), -2);
    const absl::Status f = line.Run({"calls_f:0"}).status();
    ExpectNotFound(f, "ZeroOut", "inner");
    EXPECT_THAT(f.message(), HasSubstr("calls_f"));
  }
}

TEST(UnknownOps, PythonFunctionsLiveInTheClientsProcess) {
  for (const char* op : {"PyFunc", "PyFuncStateless", "EagerPyFunc"}) {
    LoadedGraph line(absl::StrCat(
        "node { name: 'x' op: 'Placeholder' ", Type("dtype"),
        "} node { name: 'y' op: 'Neg' input: 'x'", Type("T"), "} node { name: 'p' op: '", op,
        "' input: 'y' attr { key: 'token' value { s: 'pyfunc_3' } }",
        " attr { key: 'Tin' value { list { type: DT_FLOAT } } }",
        " attr { key: 'Tout' value { list { type: [ DT_FLOAT, DT_INT64 ] } } } }"));
    const Node& p = *line.graph.FindNode("p");
    ASSERT_EQ(p.num_outputs(), 2);
    EXPECT_EQ(p.output(1).dtype(), DT_INT64);
    EXPECT_TRUE(line.Run({"y:0"}).ok());
    const absl::Status status = line.Run({"p:1"}).status();
    ExpectNotFound(status, op, "p");
    EXPECT_THAT(status.message(), AllOf(HasSubstr("Python functions live in the client's process"),
                                        HasSubstr("'pyfunc_3'")));
  }
}

TEST(UnknownOps, AreNotBuilt) {
  Graph g;
  EXPECT_FALSE(NodeBuilder(g, "ZeroOut").BuildOutput().valid());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(g.status().message(), HasSubstr("Op type not registered 'ZeroOut'"));
}

TEST(UnknownOps, AGradientThroughOneNamesIt) {
  LoadedGraph line(kLine);
  const auto grads = Gradients({*line.graph.FindOutput("after")}, {*line.graph.FindOutput("x")});
  EXPECT_FALSE(line.graph.status().ok());
  EXPECT_THAT(line.graph.status().message(), AllOf(HasSubstr("my_op"), HasSubstr("ZeroOut")));
}

TEST(UnknownOps, GradientsBesideThemAreTaken) {
  LoadedGraph line(kLine);
  const Output x = *line.graph.FindOutput("x");
  const Outputs dx = DenseGradients({*line.graph.FindOutput("y")}, {x});
  ASSERT_TRUE(line.graph.status().ok()) << line.graph.status();
  Session session = *Session::Create(line.graph);
  EXPECT_EQ((*session.Run({{x, Tensor::Scalar(2.f)}}, {dx[0]}))[0].scalar<float>(), -1);
}

TEST(UnknownOps, AFrozenGraphHasTheOnesItNeeds) {
  LoadedGraph line(kLine);
  const Variable v = MakeVariable(line.graph, 3.f, {.name = "v"});
  const Output product = Multiply(v.value(), *line.graph.FindOutput("y"), "product");
  const Output behind = Multiply(v.value(), *line.graph.FindOutput("after"), "behind");
  Session session = *Session::Create(line.graph);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(line.graph)).ok());
  const auto frozen = FreezeGraph(session, {product});
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_EQ((*frozen)->FindNode("my_op"), nullptr);
  const auto with = FreezeGraph(session, {behind});
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ((*with)->FindNode("my_op")->attr<int64_t>("depth"), 3);
}

// ---- meta graphs, which include definitions of their ops

constexpr char kDefinition[] =
    "op { name: 'ZeroOut' input_arg { name: 'to_zero' type_attr: 'T' }"
    " output_arg { name: 'zeroed' type_attr: 'T' } output_arg { name: 'counts' type: DT_INT64 }"
    " attr { name: 'T' type: 'type' default_value { type: DT_FLOAT } }"
    " attr { name: 'depth' type: 'int' } is_stateful: true }";

proto::MetaGraphDef Meta(const std::string& taker) {
  proto::MetaGraphDef meta;
  *meta.mutable_graph_def() = Def(kLine + taker);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      kDefinition, meta.mutable_meta_info_def()->mutable_stripped_op_list()));
  return meta;
}

TEST(UnknownOps, UsesOutputsOfADefinition) {
  // `after` uses output 1, which is int64, as a float: the definition is of another op.
  proto::MetaGraphDef meta = Meta("");
  for (proto::NodeDef& node : *meta.mutable_graph_def()->mutable_node()) {
    if (node.name() == "after") node.set_input(0, "my_op");
  }
  Graph g;
  const auto imported = ImportMetaGraph(g, meta, {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Node& my_op = *g.FindNode("my_op");
  ASSERT_EQ(my_op.num_outputs(), 2);
  EXPECT_EQ(my_op.output(0).dtype(), DT_FLOAT);
  EXPECT_EQ(my_op.output(1).dtype(), DT_INT64);
  EXPECT_EQ(my_op.FindAttr("T"), nullptr) << "the node is as it was";
}

TEST(UnknownOps, DefinitionsComeAlongToOtherMetaGraphs) {
  proto::MetaGraphDef meta = Meta("");
  meta.mutable_graph_def()->mutable_node(3)->set_input(0, "my_op");
  Graph g;
  ASSERT_TRUE(ImportMetaGraph(g, meta, {}).ok());
  proto::MetaGraphDef again;
  ExportMetaGraph(g, {}, &again);
  std::string ops;
  for (const auto& op : again.meta_info_def().stripped_op_list().op()) {
    absl::StrAppend(&ops, " ", op.name());
    if (op.name() == "ZeroOut") {
      EXPECT_EQ(op.output_arg_size(), 2);
    }
  }
  EXPECT_THAT(ops, AllOf(HasSubstr("ZeroOut"), Not(HasSubstr("NoSuchInfeed"))));
}

}  // namespace
}  // namespace weir
