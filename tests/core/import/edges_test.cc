#include "weir/core/import/edges.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

NodeHeader Header(absl::string_view name, absl::string_view op,
                  absl::Span<const absl::string_view> inputs = {}) {
  return {.name = name, .op = op, .inputs = inputs, .spec = TestOps().Find(op)};
}

TEST(ParseInputName, SplitsNameAndOutput) {
  const struct {
    const char *text, *node;
    int index;
    bool control;
  } kCases[] = {
      {"x", "x", 0, false},
      {"a/x:12", "a/x", 12, false},
      {"x:00", "x", 0, false},
      {"^x", "x", 0, true},
      {"^x:1", "x:1", 0, true},
      {"a:1:2", "a:1", 2, false},
      {"", "", 0, false},
      {":3", "", 3, false},
      // No number, so part of the name.
      {"x:", "x:", 0, false},
      {"x:out", "x:out", 0, false},
      {"x:-1", "x:-1", 0, false},
      {"x:+1", "x:+1", 0, false},
      {"x: 1", "x: 1", 0, false},
  };
  for (const auto& c : kCases) {
    const InputName input = ParseInputName(c.text);
    EXPECT_EQ(input.node, c.node) << c.text;
    EXPECT_EQ(input.index, c.index) << c.text;
    EXPECT_EQ(input.control, c.control) << c.text;
  }
  EXPECT_EQ(ParseInputName("x:99999999999").node, "x:99999999999") << "exceeds an int";
}

TEST(IndexNames, MapsNamesWithoutThePrefix) {
  Graph g(TestOps());
  const NodeHeader nodes[] = {Header("b", "NoOp"), Header("a/c", "NoOp")};
  const auto positions = IndexNames(nodes, "in/", g);
  ASSERT_TRUE(positions.ok()) << positions.status();
  EXPECT_EQ(positions->size(), 2u);
  EXPECT_EQ(positions->at("b"), 0);
  EXPECT_EQ(positions->at("a/c"), 1);
}

TEST(IndexNames, RejectsMalformedRepeatedAndTakenNames) {
  Graph g(TestOps());
  Placeholder(g, DT_FLOAT, Shape(), "x");
  const auto error = [&](std::vector<NodeHeader> nodes, absl::string_view prefix) {
    return IndexNames(nodes, prefix, g).status();
  };
  EXPECT_EQ(error({Header("x", "NoOp")}, "").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(error({Header("x", "NoOp")}, "in/").code(), absl::StatusCode::kOk);
  EXPECT_THAT(error({Header("y", "NoOp"), Header("y", "NoOp")}, "").message(),
              HasSubstr("Node 'y' is not unique"));
  for (const char* bad : {"", "_y", "y z"}) {
    EXPECT_EQ(error({Header(bad, "NoOp")}, "").message(),
              absl::StrCat("Node '", bad, "': Node name contains invalid characters"));
  }
  EXPECT_EQ(error({Header("_y", "NoOp")}, "in/").code(), absl::StatusCode::kOk)
      << "the name in the graph is in/_y";
  EXPECT_FALSE(error({Header("", "NoOp")}, "in/").ok());
}

TEST(ParseInputMap, KeysAreTensors) {
  Graph g(TestOps()), other(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  const std::map<std::string, Output> outputs = {{"a", x}, {"b:2", x}, {"^c", x}};
  const auto map = ParseInputMap(outputs, g);
  ASSERT_TRUE(map.ok()) << map.status();
  for (const char* name : {"a", "a:0", "b:2", "^c"})
    EXPECT_NE(FindMapped(*map, ParseInputName(name)), nullptr) << name;
  for (const char* name : {"^a", "a:1", "b", "c"})
    EXPECT_EQ(FindMapped(*map, ParseInputName(name)), nullptr) << name;
  const Output foreign = Placeholder(other, DT_FLOAT, Shape());
  for (const Output& bad : {foreign, Output()}) {
    EXPECT_EQ(ParseInputMap({{"a", bad}}, g).status().message(),
              "input_map['a'] is not an output of the graph");
  }
}

TEST(ResolveInputs, EdgesFollowTheInputs) {
  Graph g(TestOps());
  const Output mine = Placeholder(g, DT_FLOAT, Shape(), "mine");
  const absl::string_view inputs[] = {"b:3", "m:1", "^b", "^m"};
  const NodeHeader nodes[] = {Header("a", "Relu9000", inputs), Header("b", "NoOp"),
                              Header("m", "NoOp")};
  const std::map<std::string, Output> outputs = {{"m:1", mine}};
  const auto edges = ResolveInputs(nodes, *IndexNames(nodes, "", g), *ParseInputMap(outputs, g));
  ASSERT_TRUE(edges.ok()) << edges.status();
  EXPECT_EQ(edges->num_nodes(), 3);
  EXPECT_EQ(edges->all().size(), 4u);
  EXPECT_TRUE(edges->Into(1).empty());
  const absl::Span<const ImportEdge> into = edges->Into(0);
  ASSERT_EQ(into.size(), 4u);
  EXPECT_EQ(into[0].def, 1);
  EXPECT_EQ(into[0].index, 3);
  EXPECT_TRUE(into[0].orders());
  EXPECT_EQ(into[1].mapped, mine.node);
  EXPECT_EQ(into[1].index, 0);
  EXPECT_FALSE(into[1].orders()) << "its source is in the graph already";
  EXPECT_TRUE(into[2].control);
  EXPECT_EQ(into[3].def, 2) << "only output 1 is mapped";
}

// By their traits: these are not the names of TensorFlow's ops.
TEST(ResolveInputs, EdgesFromNextIterationToMergeAreBackEdges) {
  OpRegistry ops;
  ops.Add(OpSpec("Join").Flow(ControlFlow::kMerge));
  ops.Add(OpSpec("Again").Flow(ControlFlow::kNextIteration));
  ops.Add(OpSpec("Merge"));
  const absl::string_view from_again[] = {"again", "^again"};
  const NodeHeader nodes[] = {
      {.name = "join", .op = "Join", .inputs = from_again, .spec = ops.Find("Join")},
      {.name = "merge", .op = "Merge", .inputs = from_again, .spec = ops.Find("Merge")},
      {.name = "again", .op = "Again", .spec = ops.Find("Again")},
      {.name = "unknown", .op = "Gone", .inputs = from_again}};
  const auto edges = ResolveInputs(nodes, *IndexNames(nodes, "", Graph(ops)), {});
  ASSERT_TRUE(edges.ok()) << edges.status();
  EXPECT_TRUE(edges->Into(0)[0].back);
  EXPECT_FALSE(edges->Into(0)[0].orders());
  EXPECT_FALSE(edges->Into(0)[1].back) << "a control edge";
  EXPECT_FALSE(edges->Into(1)[0].back);
  EXPECT_FALSE(edges->Into(3)[0].back);
}

TEST(ResolveInputs, NamesTheNodeWithTheWrongInput) {
  Graph g(TestOps());
  const Output mine = Placeholder(g, DT_FLOAT, Shape(), "mine");
  const auto error = [&](std::vector<absl::string_view> inputs,
                         const std::map<std::string, Output>& map = {}) {
    const NodeHeader nodes[] = {Header("a", "NoOp", inputs), Header("b", "NoOp")};
    const absl::Status status =
        ResolveInputs(nodes, *IndexNames(nodes, "in/", g), *ParseInputMap(map, g)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(error({"gone:1"}), "Node 'a': Unknown input node 'gone'");
  EXPECT_EQ(error({"mine"}), "Node 'a': Unknown input node 'mine'") << "not of the GraphDef";
  EXPECT_EQ(error({"^b", "b"}),
            "Node 'a': Control dependencies must come after regular dependencies");
  EXPECT_EQ(error({"b"}, {{"c:1", mine}}),
            "Attempted to map inputs that were not found in graph_def: [c:1]");
}

}  // namespace
}  // namespace weir
