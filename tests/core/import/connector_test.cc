#include "weir/core/import/connector.h"

#include <limits>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/core/graph/signature.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImportConnectorTest : public ::testing::Test {
 protected:
  ImportConnectorTest() {
    proto::GraphDef def;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "node { name: 'open' op: 'Relu9000' attr { key: 'T' value { type: DT_INT32 } } }", &def));
    EXPECT_TRUE(ImportGraphDef(graph_, def).ok());
    open_ = graph_.FindNode("open");
    connector_.SetNode(0, x_.node);
    connector_.SetNode(1, ref_.node);
    connector_.SetNode(2, open_);
  }

  // Connects the inputs of a node with these types.
  absl::Status Connect(const std::vector<ImportEdge>& edges, const NodeTypes& types) {
    inputs_.clear();
    return connector_.Connect(edges, *user_, types, &inputs_);
  }

  Graph graph_{TestOps()};
  const Output x_ = Placeholder(graph_, DT_FLOAT, Shape(), "x");
  const Output ref_ = NodeBuilder(graph_, "VariableV2")
                          .Name("ref")
                          .Attr("shape", Shape())
                          .Attr("dtype", DT_FLOAT)
                          .BuildOutput();
  Node* const user_ = NodeBuilder(graph_, "NoOp").Name("user").Build();
  Node* open_ = nullptr;  // has an unknown op, and no outputs yet
  ImportConnector connector_{4, 100};
  ImportConnector::Inputs inputs_;
};

TEST_F(ImportConnectorTest, AppendsInputsInOrder) {
  ASSERT_TRUE(Connect({{.def = 1}, {.def = 0}, {.mapped = x_.node}, {.def = 0, .control = true}},
                      {DT_FLOAT, DT_FLOAT, DT_FLOAT})
                  .ok());
  EXPECT_THAT(inputs_, ElementsAre(ref_, x_, x_));
}

TEST_F(ImportConnectorTest, BackEdgesStayOpenUntilTheLoopIsClosed) {
  const std::vector<ImportEdge> edges = {{.def = 0}, {.def = 3, .back = true}};
  ASSERT_TRUE(Connect(edges, {DT_FLOAT, DT_FLOAT}).ok());
  EXPECT_EQ(inputs_[0], x_);
  EXPECT_FALSE(inputs_[1].valid());

  Node* const merge = NodeBuilder(graph_, "Merge").InputList({x_, x_}).Build();
  Node* const next = NodeBuilder(graph_, "NextIteration").Input(x_).Build();
  connector_.SetNode(3, next);
  ASSERT_TRUE(connector_.CloseLoops(edges, merge).ok());
  EXPECT_THAT(merge->inputs(), ElementsAre(x_, Output(next)));
}

TEST_F(ImportConnectorTest, ChecksTypes) {
  EXPECT_EQ(Connect({{.def = 0}, {.def = 0}}, {DT_FLOAT, DT_INT32}).message(),
            "Input 1 of node user was passed float from x:0 incompatible with expected int32.");
  EXPECT_TRUE(Connect({{.def = 1}}, {MakeRef(DT_FLOAT)}).ok());
  EXPECT_TRUE(Connect({{.def = 1}}, {DT_FLOAT}).ok()) << "the value of a variable";
  EXPECT_EQ(Connect({{.def = 0}}, {MakeRef(DT_FLOAT)}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ImportConnectorTest, ChecksTheNumberOfInputs) {
  EXPECT_EQ(Connect({{.def = 0}}, {DT_FLOAT, DT_INT32}).message(),
            absl::StrCat("NodeDef expected inputs 'float, int32' do not match 1 inputs specified; "
                         "Op<",
                         user_->op().Signature(), ">"));
  EXPECT_THAT(Connect({{.def = 0}, {.def = 0}}, {DT_FLOAT}).message(),
              HasSubstr("'float' do not match 2 inputs"));
}

TEST_F(ImportConnectorTest, OutputsMustExist) {
  EXPECT_EQ(Connect({{.def = 0, .index = 1}}, {DT_FLOAT}).message(),
            "Connecting to invalid output 1 of source node x which has 1 outputs.");
  inputs_.clear();
  EXPECT_FALSE(
      connector_.ConnectAny(std::vector<ImportEdge>{{.def = 0, .index = 1}}, &inputs_).ok());
}

TEST_F(ImportConnectorTest, ConsumersDetermineOpenOutputs) {
  ASSERT_TRUE(Connect({{.def = 2, .index = 1}}, {DT_BOOL}).ok());
  EXPECT_EQ(open_->num_outputs(), 2);
  EXPECT_EQ(open_->output_type(0), DT_INVALID);
  EXPECT_EQ(open_->output_type(1), DT_BOOL);
  EXPECT_THAT(Connect({{.def = 2, .index = 1}}, {DT_FLOAT}).message(),
              HasSubstr("was passed bool from open:1"));
  inputs_.clear();
  ASSERT_TRUE(connector_.ConnectAny(std::vector<ImportEdge>{{.def = 2}}, &inputs_).ok());
  EXPECT_EQ(open_->output_type(0), DT_INVALID) << "a consumer that accepts any type";
}

TEST_F(ImportConnectorTest, AttributesDetermineTheOtherOpenOutputs) {
  ASSERT_TRUE(connector_.HasOutput(open_, 0));
  EXPECT_EQ(open_->output_type(0), DT_INVALID);
  ImportConnector::ResolveOpenTypes(graph_.nodes());
  EXPECT_EQ(open_->output_type(0), DT_INT32);
}

TEST_F(ImportConnectorTest, OutputsAreBoundedBySize) {
  EXPECT_EQ(connector_.max_outputs(), kMaxNodeArity);
  EXPECT_FALSE(connector_.HasOutput(open_, kMaxNodeArity)) << "more than a node may have";
  for (Node* node : {x_.node, open_})
    EXPECT_FALSE(connector_.HasOutput(node, std::numeric_limits<int>::max()));
  ASSERT_TRUE(connector_.HasOutput(open_, kMaxNodeArity - 1));
  EXPECT_EQ(connector_.max_outputs(), 100) << "one per byte is left";
  EXPECT_TRUE(connector_.HasOutput(x_.node, 0));
  connector_.SetOutputs(NodeTypes(60, DT_FLOAT), user_);
  EXPECT_EQ(user_->num_outputs(), 60);
  EXPECT_EQ(connector_.max_outputs(), 40);
}

TEST_F(ImportConnectorTest, EachControlInputIsListedOnce) {
  absl::InlinedVector<Node*, 2> controls;
  connector_.ConnectControls(std::vector<ImportEdge>{{.def = 2},
                                                     {.def = 1, .control = true},
                                                     {.def = 0, .control = true},
                                                     {.mapped = x_.node, .control = true},
                                                     {.def = 1, .control = true}},
                             &controls);
  EXPECT_THAT(controls, ElementsAre(ref_.node, x_.node));
}

}  // namespace
}  // namespace weir
