#include "weir/tools/graph/graph_diff.h"

#include <google/protobuf/text_format.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/proto/graph.pb.h"
#include "weir/tools/graph/graph_dot.h"

namespace weir::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

proto::GraphDef Parse(const std::string& text) {
  proto::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def));
  return def;
}
constexpr char kConst[] = R"(
  node { name: "c" op: "Const"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } })";

std::vector<std::string> Details(const std::string& a, const std::string& b,
                                 const std::set<std::string>& ignore = {}) {
  const GraphDifference difference = DiffGraphs(Parse(a), Parse(b), ignore);
  std::vector<std::string> out;
  for (const NodeDifference& node : difference.nodes) {
    for (const std::string& detail : node.details) out.push_back(node.node + ": " + detail);
  }
  return out;
}

TEST(GraphDiff, OrderOfNodesAndFormOfNamesDoNotMatter) {
  EXPECT_THAT(
      Details("node { name: 'a' op: 'A' } node { name: 'b' op: 'B' input: ['a', '^c', '^d'] }",
              "node { name: 'b' op: 'B' input: ['a:0', '^d', '^c'] } node { name: 'a' op: 'A' }"),
      ElementsAre());
}

TEST(GraphDiff, EveryKindOfChangeIsNamed) {
  EXPECT_THAT(Details("node { name: 'n' op: 'A' input: ['x', 'y', '^c'] device: '/cpu:0' }",
                      "node { name: 'n' op: 'B' input: ['x:1'] attr { key: '_class' value { list { "
                      "s: 'loc:@m' } } } }"),
              ElementsAre("n: op: A -> B", "n: input 0: x -> x:1", "n: input 1: y -> (none)",
                          "n: controls: ^c -> (none)", "n: device: /cpu:0 -> (none)",
                          "n: colocation: (none) -> [\"loc:@m\"]"));
}

TEST(GraphDiff, NodesOfOneGraphAreListed) {
  const GraphDifference difference =
      DiffGraphs(Parse("node { name: 'old' op: 'A' }"), Parse("node { name: 'new' op: 'B' }"));
  ASSERT_EQ(difference.nodes.size(), 2u);
  EXPECT_EQ(difference.nodes[0].kind, NodeDifference::kOnlyInFirst);
  EXPECT_EQ(difference.nodes[0].node, "old");
  EXPECT_EQ(difference.nodes[1].kind, NodeDifference::kOnlyInSecond);
  EXPECT_EQ(difference.nodes[1].node, "new");
}

TEST(GraphDiff, TensorsAreComparedByValue) {
  EXPECT_THAT(Details(kConst, R"(
    node { name: "c" op: "Const"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {}
                                           tensor_content: "\000\000\000@" } } } })"),
              ElementsAre());
  EXPECT_THAT(Details(kConst, R"(
    node { name: "c" op: "Const"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } })"),
              ElementsAre(HasSubstr("c: attribute value: ")));
}

TEST(GraphDiff, DefaultsCountAsGivenAndIgnoredAttributesNotAtAll) {
  constexpr char kPlain[] =
      "node { name: 'm' op: 'MatMul' input: ['a', 'b'] attr { key: 'T' value { type: DT_FLOAT } } "
      "}";
  constexpr char kExplicit[] =
      "node { name: 'm' op: 'MatMul' input: ['a', 'b'] attr { key: 'T' value { type: DT_FLOAT } }"
      " attr { key: 'transpose_a' value { b: false } } attr { key: '_x' value { i: 1 } } }";
  EXPECT_THAT(Details(kPlain, kExplicit), ElementsAre("m: attribute _x: (none) -> 1"));
  EXPECT_THAT(Details(kPlain, kExplicit, {"_x"}), ElementsAre());
}

TEST(GraphDiff, FunctionsAreComparedToo) {
  constexpr char kF[] = "library { function { signature { name: 'f' } } }";
  constexpr char kG[] =
      "library { function { signature { name: 'f' is_stateful: true } } function { signature { "
      "name: 'g' } } }";
  EXPECT_THAT(DiffGraphs(Parse(kF), Parse(kG)).functions,
              ElementsAre("differs: f", "only in the second: g"));
  EXPECT_TRUE(DiffGraphs(Parse(kF), Parse(kF)).empty());
}

TEST(GraphDot, ScopesAreBoxesAndControlEdgesDashed) {
  const std::string dot = GraphToDot(
      Parse("node { name: 'x' op: 'Placeholder' } node { name: 'net/w' op: 'VarHandleOp' }"
            " node { name: 'net/\"q\"' op: 'B' input: ['x:1', '^net/w', 'elsewhere'] }"),
      [](const proto::NodeDef&) { return true; });
  EXPECT_THAT(dot, HasSubstr("subgraph \"cluster_net/\" {"));
  EXPECT_THAT(dot, HasSubstr("\"net/w\" [label=\"w : VarHandleOp\", shape=cylinder];"));
  EXPECT_THAT(dot, HasSubstr("\"x\" -> \"net/\\\"q\\\"\" [taillabel=\"1\"];"));
  EXPECT_THAT(dot, HasSubstr("\"net/w\" -> \"net/\\\"q\\\"\" [style=dashed];"));
  EXPECT_THAT(dot, Not(HasSubstr("elsewhere")));
}

TEST(GraphDot, SupportsNamesOfAnyDepth) {
  std::string name = "a";
  for (int i = 0; i < 5000; ++i) name += "/a";
  EXPECT_FALSE(
      GraphToDot(Parse("node { name: '" + name + "' op: 'A' }"), [](const proto::NodeDef&) {
        return true;
      }).empty());
}

}  // namespace
}  // namespace weir::tools
