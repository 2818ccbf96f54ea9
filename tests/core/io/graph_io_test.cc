#include "weir/core/io/graph_io.h"

#include <chrono>
#include <fstream>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

proto::GraphDef Def(const std::string& text) {
  proto::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  if (!def.has_versions()) def.mutable_versions()->set_producer(2474);
  return def;
}

// Returns the text of one node. Types are written with their attribute: "T=DT_FLOAT".
std::string NodeText(const std::string& name, const std::string& op,
                     const std::vector<std::string>& inputs, const std::string& type_attr = "") {
  std::string text = absl::StrCat("node { name: '", name, "' op: '", op, "'");
  for (const std::string& input : inputs) absl::StrAppend(&text, " input: '", input, "'");
  if (!type_attr.empty()) {
    const size_t equals = type_attr.find('=');
    absl::StrAppend(&text, " attr { key: '", type_attr.substr(0, equals),
                    "' value { type: ", type_attr.substr(equals + 1), " } }");
  }
  return text + " }\n";
}
std::string X(const std::string& name = "x") {
  return NodeText(name, "Placeholder", {}, "dtype=DT_FLOAT");
}
std::string Id(const std::string& name, const std::vector<std::string>& inputs) {
  return NodeText(name, "Identity", inputs, "T=DT_FLOAT");
}

std::vector<std::string> Names(const Graph& g) {
  std::vector<std::string> names;
  for (const auto& node : g.nodes()) names.push_back(node->name());
  return names;
}

TEST(ImportGraphDef, AcceptsNodesInAnyOrderAndFillsInDefaults) {
  Graph g(TestOps());
  const proto::GraphDef def = Def(NodeText("y", "MatMul", {"x", "x:0", "^c"}, "T=DT_FLOAT") + X() +
                                  NodeText("c", "NoOp", {}));
  const auto result = ImportGraphDef(g, def);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Names(g), ElementsAre("x", "c", "y"));
  const Node* y = g.FindNode("y");
  EXPECT_EQ(y->attr<bool>("transpose_a"), false);
  EXPECT_EQ(y->input(1).node->name(), "x");
  EXPECT_EQ(y->control_inputs()[0]->name(), "c");
  EXPECT_EQ(g.UniqueName("Y"), "Y_1") << "imported names are taken";
}

TEST(ImportGraphDef, KeepsATopologicalOrder) {
  Graph g(TestOps());
  ASSERT_TRUE(
      ImportGraphDef(g, Def(X("b") + X("a") + Id("d", {"a"}) + Id("c", {"b"}) + X("e"))).ok());
  EXPECT_THAT(Names(g), ElementsAre("b", "a", "d", "c", "e"));
}

TEST(ImportGraphDef, InfersShapesAndMergesRecordedOnes) {
  Graph g(TestOps());
  const proto::GraphDef def =
      Def("node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }"
          "  attr { key: 'shape' value { shape { dim { size: 2 } dim { size: -1 } } } }"
          "  attr { key: '_output_shapes' value { list { shape { dim { size: -1 } dim { size: 3 } "
          "} } } } }" +
          Id("y", {"x"}));
  ASSERT_TRUE(ImportGraphDef(g, def).ok());
  EXPECT_EQ(g.FindNode("y")->output_shape(0), Shape({2, 3}));
  EXPECT_EQ(g.FindNode("x")->FindAttr("_output_shapes"), nullptr);
}

TEST(ImportGraphDef, LoopsCloseThroughNextIteration) {
  Graph g(TestOps());
  const proto::GraphDef def =
      Def(X() +
          "node { name: 'enter' op: 'Enter' input: 'x' attr { key: 'T' value { type: DT_FLOAT } }"
          " attr { key: 'frame_name' value { s: 'f' } } }"
          "node { name: 'merge' op: 'Merge' input: 'enter' input: 'next' attr { key: 'T' value { "
          "type: DT_FLOAT } }"
          " attr { key: 'N' value { i: 2 } } }" +
          Id("body", {"merge"}) + NodeText("next", "NextIteration", {"body"}, "T=DT_FLOAT"));
  const auto result = ImportGraphDef(g, def);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(g.FindNode("merge")->input(1).node, g.FindNode("next"));
  proto::GraphDef back;
  ExportGraphDef(g, &back);
  Graph again(TestOps());
  EXPECT_TRUE(ImportGraphDef(again, back).ok());
  EXPECT_EQ(SerializeGraph(again), SerializeGraph(g));
}

// A loop is one only for a registry that has its ops.
TEST(ImportGraphDef, ALoopOfUnknownOpsIsACycle) {
  const OpRegistry no_ops;
  Graph g(no_ops);
  const absl::Status status = ImportGraphDef(g, Def(NodeText("merge", "Merge", {"next"}) +
                                                    NodeText("next", "NextIteration", {"merge"})))
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("2 nodes in a cycle"));
}

TEST(ImportGraphDef, BackEdgesAreCheckedToo) {
  Graph g(TestOps());
  const proto::GraphDef def = Def(X() + NodeText("i", "Placeholder", {}, "dtype=DT_INT32") +
                                  "node { name: 'merge' op: 'Merge' input: 'x' input: 'next' attr "
                                  "{ key: 'T' value { type: DT_FLOAT } }"
                                  " attr { key: 'N' value { i: 2 } } }" +
                                  NodeText("next", "NextIteration", {"i"}, "T=DT_INT32"));
  const absl::Status status = ImportGraphDef(g, def).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("was passed int32 from next:0 incompatible with expected float"));
  EXPECT_EQ(g.num_nodes(), 0);
}

TEST(ImportGraphDef, ErrorsHaveTensorFlowsCodesAndNameTheNode) {
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  const struct {
    std::string def;
    absl::StatusCode code;
    const char* message;
  } kCases[] = {
      {X("bad name!"), kInvalid, "Node 'bad name!': Node name contains invalid characters"},
      {X(""), kInvalid, "Node name contains invalid characters"},
      {X() + X(), kInvalid, "Node 'x' is not unique"},
      {Id("z", {"nothing_here"}), kInvalid, "Node 'z': Unknown input node 'nothing_here'"},
      {Id("z", {"^nothing_here"}), kInvalid, "Unknown input node 'nothing_here'"},
      {X() + Id("z", {"x:1"}), kInvalid,
       "Connecting to invalid output 1 of source node x which has 1 outputs."},
      {X() + Id("z", {"x:-1"}), kInvalid, "Unknown input node 'x:-1'"},
      {X() + Id("z", {"x:99999999999"}), kInvalid, "Unknown input node"},
      {X() + Id("z", {"^x", "x"}), kInvalid,
       "Control dependencies must come after regular dependencies"},
      {Id("a", {"b"}) + Id("b", {"a"}), kInvalid, "2 nodes in a cycle: "},
      {Id("a", {"a"}), kInvalid, "1 node in a cycle: a -> a"},
      {NodeText("a", "NoOp", {"^b"}) + NodeText("b", "NoOp", {"^a"}), kInvalid,
       "2 nodes in a cycle"},
      {X() + NodeText("y", "MatMul", {"x"}, "T=DT_FLOAT"), kInvalid,
       "NodeDef expected inputs 'float, float' do not match 1 inputs specified; Op<MatMul("},
      {X() + Id("y", {"x", "x"}), kInvalid, "do not match 2 inputs specified"},
      {NodeText("w", "Const", {}), kInvalid, "missing attr 'value' from Op<Const("},
      {NodeText("w", "Identity", {}, "T=DT_INVALID"), kInvalid, "has type invalid"},
      {X() + NodeText("y", "MatMul", {"x", "x"}, "transpose_a=DT_FLOAT"), kInvalid,
       "for attr 'transpose_a'"},
      {X() + NodeText("y", "Identity", {"x"}, "T=DT_INT32"), kInvalid,
       "Input 0 of node y was passed float from x:0 incompatible with expected int32."},
      {X() + NodeText("y", "Assign", {"x", "x"}, "T=DT_FLOAT"), kInvalid,
       "incompatible with expected float_ref"},
      {X() + NodeText("y", "OldAdd", {"x", "x"}, "T=DT_FLOAT"), absl::StatusCode::kUnimplemented,
       "It has been removed in version 9"},
      {"node { name: 'c' op: 'NoOp' attr { key: '_class' value { list { s: 'loc:@gone' } } } }",
       kInvalid, "expects to be colocated with unknown node 'gone'"},
      {"node { name: 'c' op: 'Split' input: ['i', 'x'] attr { key: 'T' value { type: DT_FLOAT } }"
       " attr { key: 'num_split' value { i: 1000000000000 } } }" +
           X() + NodeText("i", "Placeholder", {}, "dtype=DT_INT32"),
       kInvalid, "num_split"},
      {"versions { producer: 2474 min_consumer: 1000000 }", kInvalid,
       "min consumer version 1000000 above current"},
      {"versions { producer: 2474 bad_consumers: 2474 }", kInvalid,
       "disallows consumer version 2474"},
      {"versions { producer: -1 }", kInvalid, "below min producer"},
  };
  for (const auto& c : kCases) {
    Graph g(TestOps());
    ASSERT_TRUE(Placeholder(g, DT_FLOAT, Shape(), "kept").valid());
    const absl::Status status = ImportGraphDef(g, Def(c.def)).status();
    EXPECT_EQ(status.code(), c.code) << c.def << status;
    EXPECT_THAT(status.message(), HasSubstr(c.message));
    EXPECT_EQ(g.num_nodes(), 1) << "nothing is partly imported";
    EXPECT_EQ(g.FindNode("x"), nullptr);
    EXPECT_EQ(g.UniqueName("x"), "x") << "no name is reserved";
    EXPECT_TRUE(g.status().ok()) << "the error is the caller's";
  }
}

// As TensorFlow does, also for the nodes of functions, which are imported when they are called.
TEST(ImportGraphDef, UnknownPartsAreRejectedIfAsked) {
  const auto strict = [](const std::string& def) {
    Graph g(TestOps());
    const absl::Status status =
        ImportGraphDef(g, Def(def), {.unknown = UnknownParts::kReject}).status();
    EXPECT_TRUE(status.ok() || g.num_nodes() == 0) << "nothing is partly imported";
    return status;
  };
  const std::string function = "library { function { signature { name: 'f' } node_def { name: 'n' ";
  const absl::Status op = strict("node { name: 'c' op: 'NoSuchOp' }");
  EXPECT_EQ(op.code(), absl::StatusCode::kNotFound) << op;
  EXPECT_THAT(std::string(op.message()),
              AllOf(HasSubstr("Node 'c'"), HasSubstr("Op type not registered 'NoSuchOp'")));
  const absl::Status attr =
      strict("node { name: 'c' op: 'NoOp' attr { key: 'axis' value { i: 1 } } }");
  EXPECT_EQ(attr.code(), absl::StatusCode::kInvalidArgument) << attr;
  EXPECT_THAT(std::string(attr.message()), HasSubstr("attr 'axis' not in Op<NoOp"));
  const absl::Status inside = strict(function + "op: 'NoSuchOp' } } }");
  EXPECT_EQ(inside.code(), absl::StatusCode::kNotFound) << inside;
  EXPECT_THAT(std::string(inside.message()), HasSubstr("Function 'f', node 'n' (NoSuchOp)"));
  EXPECT_EQ(strict(function + "op: 'NoOp' attr { key: 'axis' value { i: 1 } } } } }").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(strict(function + "op: 'f' } } }").ok()) << "a call of a function";
  EXPECT_TRUE(strict("node { name: 'p' op: 'PyFunc' }").ok()) << "an op of TensorFlow's clients";
  EXPECT_TRUE(strict("node { name: 'c' op: 'NoOp' attr { key: '_mark' value { i: 1 } } }").ok());
}

TEST(ImportGraphDef, UnknownAttributesAreKeptWithOneLine) {
  const std::string def =
      "node { name: 'c' op: 'NoOp' attr { key: 'axis' value { i: 1 } } }"
      "node { name: 'd' op: 'NoOp' attr { key: 'other' value { i: 1 } } }";
  Graph g(TestOps());
  ::testing::internal::CaptureStderr();
  const absl::Status status = ImportGraphDef(g, Def(def)).status();
  const std::string line = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(line,
            "weir: kept 2 attributes that this program does not know, which have no effect; the "
            "first is 'axis' of NoOp\n");
  proto::GraphDef exported;
  ExportGraphDef(g, &exported);
  EXPECT_EQ(exported.node(0).attr().at("axis").i(), 1);
  Graph quiet(TestOps());
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(ImportGraphDef(quiet, Def(def), {.unknown = UnknownParts::kKeepQuietly}).ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(ImportGraphDef, ADamagedConstantFailsTheStepsThatNeedIt) {
  Graph g(TestOps());
  const auto imported = ImportGraphDef(
      g, Def("node { name: 'w' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }"
             " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { "
             "dim { size: 3 } } tensor_content: 'abc' } } } }" +
             Id("y", {"w"})));
  ASSERT_TRUE(imported.ok()) << imported.status();
  Node* const w = g.FindNode("w");
  EXPECT_FALSE(w->output_shape(0).has_rank());
  const absl::Status status = g.InferShapes(w);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("w (Const)"), HasSubstr("Cannot parse tensor from proto"),
                    HasSubstr("has 3 bytes, not 12")));
}

// ---- unknown ops

// Two outputs are used; their consumers determine their types.
TEST(ImportGraphDef, AnUnknownOpHasTheOutputsThatAreUsed) {
  Graph g(TestOps());
  const proto::GraphDef def =
      Def(X() + NodeText("r", "Relu9000", {"x", "^x"}) + Id("y", {"r:2"}) +
          NodeText("i", "Identity", {"r"}, "T=DT_INT32") + NodeText("q", "Queer", {"r:1", "y"}));
  const auto result = ImportGraphDef(g, def, {.return_elements = {"q:1"}});
  ASSERT_TRUE(result.ok()) << result.status();
  const Node& r = *g.FindNode("r");
  ASSERT_EQ(r.num_outputs(), 3);
  EXPECT_EQ(r.output(0).dtype(), DT_INT32);
  EXPECT_EQ(r.output(1).dtype(), DT_INVALID) << "nothing determines the type";
  EXPECT_EQ(r.output(2).dtype(), DT_FLOAT);
  EXPECT_FALSE(r.output(0).shape().has_rank());
  EXPECT_EQ(g.FindNode("q")->num_outputs(), 2);
  EXPECT_EQ(g.FindNode("q")->input_type(1), DT_FLOAT);
}

TEST(ImportGraphDef, AttributesDetermineTypesOfUnusedOutputs) {
  Graph g(TestOps());
  const proto::GraphDef def =
      Def("node { name: 'a' op: 'Relu9000' attr { key: 'Tout' value { list { type: [ DT_INT32, "
          "DT_BOOL ] } } } attr { key: '_output_shapes' value { list { shape { dim { size: 3 } } "
          "shape { } } } } }" +
          NodeText("b", "Relu9000", {"a:1"}, "T=DT_DOUBLE"));
  ASSERT_TRUE(ImportGraphDef(g, def, {.return_elements = {"b:0"}}).ok());
  const Node& a = *g.FindNode("a");
  ASSERT_EQ(a.num_outputs(), 2);
  EXPECT_EQ(a.output(0).dtype(), DT_INT32);
  EXPECT_EQ(a.output(0).shape(), Shape({3}));
  EXPECT_EQ(a.output(1).dtype(), DT_BOOL);
  EXPECT_EQ(g.FindNode("b")->output(0).dtype(), DT_DOUBLE);
  EXPECT_EQ(g.FindNode("b")->input_type(0), DT_BOOL);
}

// Attributes that would be normalized or rejected for a known op are kept unchanged here.
TEST(ImportGraphDef, AnUnknownOpIsExportedUnchanged) {
  Graph g(TestOps());
  const proto::GraphDef def =
      Def(X() +
          "node { name: 'r' op: 'Relu9000' input: ['x', 'x', '^x'] device: '/cpu:0'"
          " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } "
          "float_val: 1 } } }"
          " attr { key: 'broken' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } "
          "tensor_content: 'abc' } } }"
          " attr { key: 'nothing' value { } } attr { key: 'T' value { type: 9999 } }"
          " attr { key: 'f' value { placeholder: 'T' } }"
          " attr { key: '_output_shapes' value { list { shape { unknown_rank: true } } } }"
          " experimental_debug_info { original_node_names: 'was' } }");
  ASSERT_TRUE(ImportGraphDef(g, def).ok());
  proto::GraphDef out;
  ExportGraphDef(g, &out);
  EXPECT_EQ(DeterministicBytes(out.node(1)), DeterministicBytes(def.node(1)));
  Graph again(TestOps());
  ASSERT_TRUE(ImportGraph(again, SerializeGraph(g)).ok());
  EXPECT_EQ(SerializeGraph(again), SerializeGraph(g));
}

TEST(ImportGraphDef, AnUnknownOpCanBeRenamedAndChanged) {
  Graph g(TestOps());
  const proto::GraphDef def =
      Def(X() +
          "node { name: 'r' op: 'Relu9000' input: 'x' attr { key: '_class' value { list { s: "
          "'loc:@x' } } } attr { key: 'k' value { i: 1 } } }");
  ASSERT_TRUE(ImportGraphDef(g, def, {.prefix = "in"}).ok());
  Node* const r = g.FindNode("in/r");
  EXPECT_THAT(r->colocations(), ElementsAre("in/x"));
  g.SetAttr(r, "k", AttrValue(int64_t{2}));
  proto::GraphDef out;
  ExportGraphDef(g, &out);
  EXPECT_EQ(out.node(1).input(0), "in/x");
  EXPECT_EQ(out.node(1).attr().at("_class").list().s(0), "loc:@in/x");
  EXPECT_EQ(out.node(1).attr().at("k").i(), 2);
}

TEST(ImportGraphDef, AnUnknownOpHasNoMoreOutputsThanBytesJustify) {
  Graph g(TestOps());
  const absl::Status status =
      ImportGraphDef(g, Def(NodeText("r", "Relu9000", {}) + Id("y", {"r:2000000"}))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("Connecting to invalid output 2000000"));
}

TEST(ImportGraphDef, ConsumersOfAnUnknownOpAgreeOnItsTypes) {
  Graph g(TestOps());
  const absl::Status status = ImportGraphDef(g, Def(NodeText("r", "Relu9000", {}) + Id("y", {"r"}) +
                                                    NodeText("i", "Identity", {"r"}, "T=DT_INT32")))
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("was passed float from r:0"));
}

TEST(ImportGraphDef, PrefixNamesNodesAndColocations) {
  Graph g(TestOps());
  const proto::GraphDef def = Def(
      X() + "node { name: 'c' op: 'NoOp' attr { key: '_class' value { list { s: 'loc:@x' } } } }");
  ASSERT_TRUE(ImportGraphDef(g, def, {.prefix = "import"}).ok());
  EXPECT_THAT(Names(g), ElementsAre("import/x", "import/c"));
  EXPECT_THAT(g.FindNode("import/c")->colocations(), ElementsAre("import/x"));
  EXPECT_EQ(g.UniqueName("import"), "import_1");
  const absl::Status again = ImportGraphDef(g, def, {.prefix = "import/"}).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(again.message(), HasSubstr("'import/x' already exists"));
}

TEST(ImportGraphDef, InputMapReplacesTensors) {
  Graph g(TestOps());
  const Output mine = Placeholder(g, DT_FLOAT, Shape({7}), "mine");
  ImportOptions options;
  options.prefix = "in";
  options.input_map = {{"x:0", mine}, {"ghost", mine}};
  options.return_elements = {"y:0", "z", "x:0"};
  const auto result = ImportGraphDef(g, Def(X() + Id("y", {"x"}) + Id("z", {"ghost:0"})), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(g.FindNode("in/y")->input(0), mine);
  EXPECT_EQ(g.FindNode("in/z")->output_shape(0), Shape({7}));
  EXPECT_THAT(*result, ElementsAre(Output(g.FindNode("in/y")), Output(g.FindNode("in/z")), mine));
}

TEST(ImportGraphDef, UnknownNamesAreErrors) {
  Graph g(TestOps());
  const Output mine = Placeholder(g, DT_FLOAT, Shape(), "mine");
  const auto message = [&g](const ImportOptions& options) {
    const absl::Status status = ImportGraphDef(g, Def(X()), options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(g.num_nodes(), 1);
    return std::string(status.message());
  };
  EXPECT_THAT(message({.input_map = {{"nope:0", mine}}}),
              HasSubstr("inputs that were not found in graph_def: [nope:0]"));
  EXPECT_THAT(message({.return_elements = {"x:1"}}), HasSubstr("'x:1' not found"));
  EXPECT_THAT(message({.return_elements = {"nope"}}), HasSubstr("'nope' not found"));
  EXPECT_THAT(message({.input_map = {{"x", Output()}}}), HasSubstr("input_map['x']"));
}

TEST(ImportGraphDef, FinalizedGraphIsUnchanged) {
  Graph g(TestOps());
  g.Finalize();
  EXPECT_EQ(ImportGraphDef(g, Def(X())).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ImportGraphDef, LibraryFunctionsMayBeCalledAsOps) {
  Graph g(TestOps());
  const proto::GraphDef def =
      Def("library { function { signature { name: 'Twice' input_arg { name: 'x' type: DT_FLOAT }"
          " output_arg { name: 'y' type: DT_FLOAT } } ret { key: 'y' value: 'x' } } }" +
          X() + NodeText("call", "Twice", {"x"}));
  const auto result = ImportGraphDef(g, def);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(g.FindNode("call")->output_type(0), DT_FLOAT);
  proto::GraphDef back;
  ExportGraphDef(g, &back);
  EXPECT_EQ(back.library().DebugString(), def.library().DebugString());
}

TEST(ImportGraphDef, AFailedImportLeavesNoFunctionsBehind) {
  const auto library = [](const std::string& type) {
    return "library { function { signature { name: 'F' input_arg { name: 'x' type: " + type +
           " } output_arg { name: 'y' type: " + type + " } } ret { key: 'y' value: 'x' } } }";
  };
  Graph g(TestOps());
  const std::string call = NodeText("call", "F", {"x"});
  EXPECT_FALSE(ImportGraphDef(
                   g, Def(library("DT_INT32") + NodeText("x", "Placeholder", {}, "dtype=DT_INT32") +
                          call + Id("bad", {"call:1"})))
                   .ok());
  EXPECT_EQ(g.num_nodes(), 0);
  EXPECT_EQ(g.functions(), nullptr);
  const auto result = ImportGraphDef(g, Def(library("DT_FLOAT") + X() + call));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(g.FindNode("call")->output_type(0), DT_FLOAT);
}

TEST(ImportGraphDef, VersionsOfTwoGraphsAreMerged) {
  Graph g(TestOps());
  ASSERT_TRUE(ImportGraphDef(g, Def(X("a") + "versions { producer: 1000 min_consumer: 5 }")).ok());
  EXPECT_EQ(g.versions().producer, 1000);
  ASSERT_TRUE(
      ImportGraphDef(g, Def(X("b") + "versions { producer: 24 min_consumer: 3 bad_consumers: 7 }"))
          .ok());
  EXPECT_EQ(g.versions().producer, 24);
  EXPECT_EQ(g.versions().min_consumer, 5);
  EXPECT_THAT(g.versions().bad_consumers, ElementsAre(7));
}

TEST(ImportGraphDef, LongChainsAndWideNodesNeedNoRecursion) {
  std::string text;
  constexpr int kNodes = 3000;
  for (int i = kNodes - 1; i > 0; --i) text += Id(absl::StrCat("n", i), {absl::StrCat("n", i - 1)});
  text += X("n0");
  std::vector<std::string> controls;
  for (int i = 0; i < kNodes; ++i) controls.push_back(absl::StrCat("^n", i));
  text += NodeText("all", "NoOp", controls);
  Graph g(TestOps());
  ASSERT_TRUE(ImportGraphDef(g, Def(text)).ok());
  EXPECT_EQ(g.FindNode("all")->control_inputs().size(), static_cast<size_t>(kNodes));
  EXPECT_EQ(g.nodes()[1]->name(), "n1");
}

TEST(ImportGraphDef, ImportsAHundredThousandNodesInLinearTime) {
  constexpr int kNodes = 120000;
  proto::GraphDef def = Def(X("n0"));
  for (int i = 1; i < kNodes; ++i) {
    proto::NodeDef* node = def.add_node();
    node->set_name(absl::StrCat("n", i));
    node->set_op("Add");
    node->add_input(absl::StrCat("n", i - 1));
    node->add_input(absl::StrCat("n", i / 2));
    (*node->mutable_attr())["T"].set_type(proto::DT_FLOAT);
  }
  Graph g(TestOps());
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(ImportGraphDef(g, def).ok());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 20) << "something is quadratic";
  RecordProperty("seconds", absl::StrCat(seconds.count()));
  EXPECT_EQ(g.num_nodes(), kNodes);
  def.mutable_node(0)->clear_op();
  def.mutable_node(0)->set_op("Identity");
  def.mutable_node(0)->add_input(absl::StrCat("n", kNodes - 1));
  Graph cyclic(TestOps());
  const absl::Status status = ImportGraphDef(cyclic, def).status();
  EXPECT_THAT(status.message(), HasSubstr("120000 nodes in a cycle"));
  EXPECT_LT(status.message().size(), 1000u);
}

TEST(ExportGraphDef, WritesInputsAndEveryAttribute) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape({2, 2}), "x");
  Node* b = AddNode(g, "NoOp", {}, {}, "b");
  Node* a = AddNode(g, "NoOp", {}, {}, "a");
  Node* both = AddNode("IdentityN", {Outputs{x, x}}, {}, "both");
  NodeBuilder(g, "MatMul")
      .Name("y")
      .Input(x)
      .Input(both->output(1))
      .Control(b)
      .Control(a)
      .Device("/cpu:0")
      .Build();
  proto::GraphDef def;
  ExportGraphDef(g, &def);
  ASSERT_EQ(def.node_size(), 5);
  const proto::NodeDef& y = def.node(4);
  EXPECT_THAT(y.input(), ElementsAre("x", "both:1", "^a", "^b"));
  EXPECT_EQ(y.device(), "/cpu:0");
  EXPECT_EQ(y.attr().size(), 3u);
  EXPECT_EQ(y.attr().at("T").type(), proto::DT_FLOAT);
  EXPECT_FALSE(y.attr().at("transpose_a").b());
  EXPECT_EQ(def.versions().producer(), 2474);
}

TEST(ExportGraphDef, RoundTrips) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape({2, -1}), "x");
  const Output c = Constant(g, Tensor::Of<float>(Shape({2, 2}), {1, 2, 3, 4}));
  const Output v = NodeBuilder(g, "VariableV2")
                       .Attr("dtype", DT_FLOAT)
                       .Attr("shape", Shape({2, 2}))
                       .BuildOutput();
  AddOp("Assign", {v, c});
  AddOp("AddN", {Outputs{x, x, v}});
  NodeBuilder(g, "NoOp").Control(c.node).ColocateWith(v.node).Build();
  ASSERT_TRUE(g.status().ok()) << g.status();
  proto::GraphDef def;
  ASSERT_TRUE(def.ParseFromString(SerializeGraph(g)));
  Graph back(TestOps());
  ASSERT_TRUE(ImportGraphDef(back, def).ok());
  EXPECT_EQ(SerializeGraph(back), SerializeGraph(g));
  EXPECT_EQ(GraphToText(back), GraphToText(g));
}

class GraphFile : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = testing::TempDir() + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
};

TEST_F(GraphFile, BinaryAndTextGiveTheSameGraph) {
  const proto::GraphDef def = Def(X() + Id("y", {"x"}));
  Graph binary(TestOps()), text(TestOps());
  ASSERT_TRUE(ImportGraphFile(binary, Write("graph.pb", def.SerializeAsString())).ok());
  ASSERT_TRUE(ImportGraphFile(text, Write("graph.pbtxt", GraphToText(binary))).ok());
  EXPECT_EQ(SerializeGraph(binary), SerializeGraph(text));
}

// WriteGraphFile writes one node at a time, yet the result equals the serialized message; functions
// and versions come last.
TEST_F(GraphFile, EqualsTheSerializedMessage) {
  proto::GraphDef def = Def(X() + Id("y", {"x"}));
  def.mutable_versions()->set_producer(27);
  proto::FunctionDef* f = def.mutable_library()->add_function();
  f->mutable_signature()->set_name("f");
  Graph g(TestOps());
  ASSERT_TRUE(ImportGraphDef(g, def).ok());
  for (const char* name : {"written.pb", "written.pbtxt"}) {
    const std::string path =
        Write(name, "what was there before, which is longer than a graph of two nodes");
    ASSERT_TRUE(WriteGraphFile(g, path).ok());
    Graph back(TestOps());
    ASSERT_TRUE(ImportGraphFile(back, path).ok());
    EXPECT_EQ(SerializeGraph(back), SerializeGraph(g));
  }
  std::ifstream file(testing::TempDir() + "written.pb", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), SerializeGraph(g));
  EXPECT_TRUE(absl::IsNotFound(WriteGraphFile(g, testing::TempDir() + "no/such/folder/g.pb")));
}

TEST_F(GraphFile, DamagedFilesAreInvalidAndNamed) {
  Graph g(TestOps());
  const std::string bytes = Def(X() + Id("y", {"x"})).SerializeAsString();
  const auto import = [&g, this](const std::string& name, const std::string& content) {
    const absl::Status status = ImportGraphFile(g, Write(name, content)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(name));
    return std::string(status.message());
  };
  import("cut.pb", bytes.substr(0, bytes.size() - 1));
  import("garbage.pb", "\x01\x02not a protobuf");
  EXPECT_THAT(import("bad.pbtxt", "node {\n  nome: 'x'\n}"), HasSubstr("line 2"));
  EXPECT_THAT(import("bytes.pbtxt", "library { function { signature { name: '\\377' } } }"),
              HasSubstr("UTF-8"));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "node { attr { value { func { ";
  import("deep.pbtxt", deep);
  EXPECT_EQ(ImportGraphFile(g, testing::TempDir() + "absent.pb").status().code(),
            absl::StatusCode::kNotFound);
}

// Same semantics as protobuf: fields in any order, the last value of a field wins, unknown fields
// are dropped.
TEST(ImportGraph, AcceptsFieldsInAnyOrder) {
  proto::GraphDef def = Def(X() + Id("y", {"x"}));
  def.mutable_versions()->set_producer(21);
  const std::string unknown("\xfa\x07\x02hi", 5), old_name("\x0a\x01z", 3);
  std::string bytes = unknown;
  for (const proto::NodeDef& node : def.node()) {
    const std::string body = old_name + unknown + node.SerializeAsString();
    bytes += std::string("\x0a") + static_cast<char>(body.size()) + body;
  }
  def.clear_node();
  bytes += def.SerializeAsString();
  Graph g(TestOps());
  const absl::StatusOr<Outputs> y = ImportGraph(g, bytes, {.return_elements = {"y"}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ((*y)[0].node->input(0).node->name(), "x");
  EXPECT_EQ(g.versions().producer, 21);
  EXPECT_EQ(ImportGraph(g, bytes).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(ImportGraph(g, bytes, {.prefix = "again"}).ok());
  EXPECT_NE(g.FindNode("again/y"), nullptr);
}

TEST(ImportGraph, ReportsTheLocationOfMalformedBytes) {
  const auto fails = [](const std::string& bytes, const char* where) {
    Graph g(TestOps());
    const absl::Status status = ImportGraph(g, bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(where));
    EXPECT_EQ(g.num_nodes(), 0);
  };
  const std::string good = Def(X()).SerializeAsString();
  fails(good + "\x0a\x7f", "the field at byte");  // a node longer than the remaining bytes
  fails(good + "\x0a", "the field at byte");      // a node without a length
  fails(good + "\x0a\x02\x0a\x05", "node 1");     // a name longer than its node
  fails(good + std::string("\x0a\x02\x0a\x00\x07", 5), "the field at byte");
  fails("\x22\x01\x08", "a field other than node");  // truncated versions
  fails(std::string("\x0a\x05\x0a\x01\xff\x12\x00", 7), "invalid characters");
}

// Any change of one byte yields a graph or an error, and an error leaves the graph empty.
TEST(ImportGraphDef, SurvivesEveryFlippedByte) {
  const std::string bytes =
      Def(X() + Id("y", {"x"}) + NodeText("m", "MatMul", {"x", "y", "^c"}, "T=DT_FLOAT") +
          NodeText("c", "NoOp", {}))
          .SerializeAsString();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const unsigned char flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      proto::GraphDef def;
      Graph g(TestOps()), from_bytes(TestOps());
      const bool imported = def.ParseFromString(damaged) && ImportGraphDef(g, def).ok();
      EXPECT_TRUE(imported || g.num_nodes() == 0);
      EXPECT_EQ(ImportGraph(from_bytes, damaged).ok(), imported) << "byte " << i;
      EXPECT_EQ(SerializeGraph(from_bytes), SerializeGraph(g)) << "byte " << i;
    }
  }
}

}  // namespace
}  // namespace weir
