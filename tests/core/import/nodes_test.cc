#include "weir/core/import/nodes.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

proto::GraphDef Def(const std::string& text) {
  proto::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  return def;
}

proto::GraphDef TwoNodes() {
  return Def(
      "node { name: 'x' op: 'Placeholder' device: '/cpu:0' attr { key: 'k' value { i: 7 } } }"
      "node { name: 'y' op: 'Strange' input: ['x', 'x:0', '^x'] }"
      "versions { producer: 9 }");
}

TEST(SplitGraph, SeparatesNodesFromOtherFields) {
  const proto::GraphDef def = TwoNodes();
  const std::string bytes = def.SerializeAsString();
  proto::GraphDef rest;
  const auto nodes = SplitGraph(bytes, &rest);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_THAT(*nodes,
              ElementsAre(def.node(0).SerializeAsString(), def.node(1).SerializeAsString()));
  EXPECT_GE(nodes->front().data(), bytes.data()) << "a view, not a copy";
  EXPECT_EQ(rest.node_size(), 0);
  EXPECT_EQ(rest.versions().producer(), 9);
}

TEST(SplitGraph, NamesTheDamagedField) {
  proto::GraphDef rest;
  const std::string node = Def("node { name: 'x' }").SerializeAsString();
  const absl::Status status = SplitGraph(node + node.substr(0, 3), &rest).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("the field at byte ", node.size())));
}

TEST(ImportNodes, HeadersOfMessagesAndBytesAreEqual) {
  const proto::GraphDef def = TwoNodes();
  const std::string bytes = def.SerializeAsString();
  proto::GraphDef rest;
  ImportNodes messages(def), serialized(*SplitGraph(bytes, &rest));
  for (ImportNodes* nodes : {&messages, &serialized}) {
    ASSERT_TRUE(nodes->ReadHeaders(TestOps()).ok());
    ASSERT_EQ(nodes->headers().size(), 2u);
    const NodeHeader &x = nodes->headers()[0], &y = nodes->headers()[1];
    EXPECT_EQ(x.name, "x");
    EXPECT_EQ(x.spec, TestOps().Find("Placeholder"));
    EXPECT_THAT(x.inputs, IsEmpty());
    EXPECT_EQ(y.op, "Strange");
    EXPECT_EQ(y.spec, nullptr);
    EXPECT_THAT(y.inputs, ElementsAre("x", "x:0", "^x"));
  }
}

TEST(ImportNodes, ParsesOneNodeAtATime) {
  const proto::GraphDef def = TwoNodes();
  const std::string bytes = def.SerializeAsString();
  proto::GraphDef rest;
  ImportNodes messages(def), serialized(*SplitGraph(bytes, &rest));
  for (ImportNodes* nodes : {&messages, &serialized}) {
    for (int i = 1; i >= 0; --i) {
      const auto node = nodes->Parse(i);
      ASSERT_TRUE(node.ok()) << node.status();
      EXPECT_EQ((*node)->SerializeAsString(), def.node(i).SerializeAsString());
    }
  }
}

TEST(ImportNodes, NamesTheMalformedNode) {
  const std::string good = Def("node { name: 'x' }").node(0).SerializeAsString();
  for (const std::string& bad :
       {std::string("\x0a\x05x"), std::string("\x07"), std::string(1, 0)}) {
    ImportNodes nodes(std::vector<absl::string_view>{good, bad});
    const absl::Status status = nodes.ReadHeaders(TestOps());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("Wire format was corrupt (in node 1)"));
  }
}

// A header has no attributes, so damage in them shows when the node is parsed.
TEST(ImportNodes, ParsingFindsDamageThatTheHeaderDoesNotShow) {
  const std::string bad_attr = "\x2a\x02\x0a\x05";
  ImportNodes nodes(std::vector<absl::string_view>{bad_attr});
  EXPECT_TRUE(nodes.ReadHeaders(TestOps()).ok());
  EXPECT_THAT(nodes.Parse(0).status().message(), HasSubstr("(in node 0)"));
}

TEST(ImportNodes, ReleaseClearsOnlyAMessageGivenForThat) {
  proto::GraphDef def = TwoNodes();
  ImportNodes(def).Release(0);
  EXPECT_EQ(def.node(0).attr_size(), 1);
  ImportNodes::Clearing(&def).Release(0);
  EXPECT_EQ(def.node(0).attr_size(), 0);
  EXPECT_EQ(def.node(0).name(), "x");
}

}  // namespace
}  // namespace weir
