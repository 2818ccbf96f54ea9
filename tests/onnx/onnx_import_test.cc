#include "weir/onnx/onnx_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/onnx/graph_importer.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"
#include "weir/session/session.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/onnx/model_builder.h"

namespace weir::onnx {
namespace {

using ::testing::HasSubstr;

absl::Status ImportOf(const Model& model, const ImportOptions& options = {}) {
  Graph graph;
  return ImportOnnx(graph, model.Bytes(), options).status();
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(ImportOnnx, SignatureHasTheNamesAndTypesOfTheModel) {
  Graph graph;
  const auto model = ImportOnnx(
      graph,
      Model().In("/a:0", {-1, 2}).Node("Relu", {"/a:0"}, "/relu/out").Out("/relu/out").Bytes());
  ASSERT_TRUE(model.ok()) << model.status();
  const Signature& signature = model->signatures.at("serving_default");
  EXPECT_EQ(signature.inputs.at("/a:0"), "a_0:0");
  const Output y = *graph.FindOutput(signature.outputs.at("/relu/out"));
  EXPECT_EQ(y.shape(), Shape({-1, 2}));
  EXPECT_EQ(model->declared.at("a_0:0").dtype, DT_FLOAT);
}

TEST(ImportOnnx, WeightsBecomeVariablesThatTrain) {
  Graph graph;
  const auto model = ImportOnnx(graph,
                                Model()
                                    .In("x", {-1, 1})
                                    .Weight("fc.weight", {1, 1}, {3})
                                    .Weight("one", {}, {1})
                                    .Node("MatMul", {"x", "fc.weight"}, "xw")
                                    .Node("Mul", {"xw", "one"}, "y")
                                    .Out("y")
                                    .Bytes(),
                                {.as_variables = true});
  ASSERT_TRUE(model.ok()) << model.status();
  const Variables variables = TrainableVariables(graph);
  ASSERT_EQ(variables.size(), 1);
  EXPECT_EQ(variables[0].op_name(), "fc.weight");
  const Signature& signature = model->signatures.at("serving_default");
  const Output x = *graph.FindOutput(signature.inputs.at("x"));
  const Output y = *graph.FindOutput(signature.outputs.at("y"));
  const Operation train = GradientDescent(0.5f).Minimize(ReduceMean(Square(y)));
  Session session = *Session::Create(graph);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(graph)).ok());
  const Tensor one = Tensor::Of<float>({1, 1}, {1});
  ASSERT_TRUE(session.Run({{x, one}}, {}, {train}).ok());
  const auto value = session.Run({variables[0]});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_FLOAT_EQ((*value)[0].data<float>()[0], 0);  // 3 - 0.5 * 2 * 3
}

TEST(ImportOnnx, StatisticsOfBatchNormalizationDoNotTrain) {
  Graph graph;
  Model model;
  model.In("x", {1, 1, 2, 2});
  for (const char* name : {"scale", "bias", "mean", "var"}) model.Weight(name, {1}, {1});
  model.Node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, "y").Out("y");
  ASSERT_TRUE(ImportOnnx(graph, model.Bytes(), {.as_variables = true}).ok());
  EXPECT_EQ(GlobalVariables(graph).size(), 4);
  EXPECT_EQ(TrainableVariables(graph).size(), 2);
}

TEST(ImportOnnx, UnknownOperatorIsNamedWithItsNodeAndVersion) {
  const absl::Status status = ImportOf(Model().In("x", {1}).Node("Frobnicate", {"x"}, "y"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), HasSubstr("node 'y' (Frobnicate)"));
  EXPECT_THAT(MessageOf(status), HasSubstr("version 17"));
}

TEST(ImportOnnx, OperatorOfALaterVersionIsRejected) {
  const absl::Status status = ImportOf(Model(13).In("x", {1}).Node("Gelu", {"x"}, "y"));
  EXPECT_THAT(MessageOf(status), HasSubstr("supported in the versions 20 to"));
}

TEST(ImportOnnx, VersionsOfTheOperatorSetAreBounded) {
  for (const int64_t version : {6, 1000}) {
    const absl::Status status = ImportOf(Model(version).In("x", {1}).Node("Relu", {"x"}, "y"));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << version;
  }
}

TEST(ImportOnnx, GroupsThatBecomeNodesAreBounded) {
  constexpr int64_t kGroups = 100000;
  const absl::Status status = ImportOf(Model()
                                           .In("x", {1, kGroups, 4})
                                           .In("w", {kGroups, 1, 1})
                                           .Node("ConvTranspose", {"x", "w"}, "y")
                                           .Int("group", kGroups));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(MessageOf(status), HasSubstr("100000 groups"));
}

TEST(ImportOnnx, UnreadAttributeIsAnError) {
  const absl::Status status =
      ImportOf(Model().In("x", {1}).Node("Relu", {"x"}, "y").Int("frobs", 1));
  EXPECT_THAT(MessageOf(status), HasSubstr("attribute 'frobs'"));
}

TEST(ImportOnnx, AttributeOfTheWrongTypeIsAnError) {
  const absl::Status status =
      ImportOf(Model().In("x", {1}).Node("LeakyRelu", {"x"}, "y").Int("alpha", 1));
  EXPECT_THAT(MessageOf(status), HasSubstr("has the type INT; expected FLOAT"));
}

TEST(ImportOnnx, NodesMustBeInOrder) {
  const absl::Status status =
      ImportOf(Model().In("x", {1}).Node("Relu", {"z"}, "y").Node("Relu", {"x"}, "z"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("topological order"));
}

TEST(ImportOnnx, FunctionsOfTheModelAreExpanded) {
  Model model;
  model.In("x", {2}).Node("Twice", {"x"}, "y").Out("y");
  model.def.add_opset_import()->set_domain("mine");
  model.def.mutable_graph()->mutable_node(0)->set_domain("mine");
  auto* const function = model.def.add_functions();
  function->set_name("Twice");
  function->set_domain("mine");
  function->add_input("a");
  function->add_output("b");
  function->add_opset_import()->set_version(17);
  auto* const node = function->add_node();
  node->set_op_type("Add");
  node->add_input("a");
  node->add_input("a");
  node->add_output("b");
  Graph graph;
  const auto imported = ImportOnnx(graph, model.Bytes());
  ASSERT_TRUE(imported.ok()) << imported.status();
  Session session = *Session::Create(graph);
  const Tensor x = Tensor::Vector<float>({1, 2});
  const auto& outputs = imported->signatures.at("serving_default").outputs;
  const auto named = session.Run({{"x:0", x}}, {outputs.at("y")}, {});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ((*named)[0].data<float>()[1], 4);
}

TEST(ImportOnnx, FunctionThatCallsItselfIsRejected) {
  Model model;
  model.In("x", {2}).Node("F", {"x"}, "y");
  model.def.mutable_graph()->mutable_node(0)->set_domain("mine");
  auto* const function = model.def.add_functions();
  function->set_name("F");
  function->set_domain("mine");
  function->add_input("a");
  function->add_output("b");
  auto* const node = function->add_node();
  node->set_op_type("F");
  node->set_domain("mine");
  node->add_input("a");
  node->add_output("b");
  EXPECT_EQ(ImportOf(model).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ImportOnnx, InitializerWithTooLittleDataIsRejected) {
  const absl::Status status = ImportOf(Model().Weight("w", {1 << 30, 1 << 30}, {1}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("tensor 'w'"));
}

TEST(ImportOnnx, BytesThatAreNoModelAreRejected) {
  Graph graph;
  EXPECT_EQ(ImportOnnx(graph, "garbage").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(LooksLikeOnnx("garbage"));
  EXPECT_FALSE(LooksLikeOnnx(""));
  EXPECT_TRUE(LooksLikeOnnx(Model().Bytes()));
}

// ---- data in other files

Model WithExternalData(const std::string& location, const std::string& offset) {
  Model model;
  model.Weight("w", {2}, {}).Node("Identity", {"w"}, "y").Out("y");
  auto* const tensor = model.def.mutable_graph()->mutable_initializer(0);
  tensor->set_data_location(proto::onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair("location", location), std::pair("offset", offset)}) {
    auto* const entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model;
}

TEST(ExternalData, IsReadFromTheFolderOfTheModel) {
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  ASSERT_TRUE(files.MakeDirectory("/m").ok());
  const float values[] = {0, 5, 7};
  ASSERT_TRUE((*files.Create("/m/w.bin"))
                  ->Append({reinterpret_cast<const char*>(values), sizeof(values)})
                  .ok());
  ASSERT_TRUE((*files.Create("/m/m.onnx"))->Append(WithExternalData("w.bin", "4").Bytes()).ok());
  Graph graph;
  const auto model = ImportOnnxFile(graph, "/m/m.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  Session session = *Session::Create(graph);
  const auto& outputs = model->signatures.at("serving_default").outputs;
  const auto w = session.Run({}, {outputs.at("y")}, {});
  ASSERT_TRUE(w.ok()) << w.status();
  EXPECT_EQ((*w)[0].data<float>()[1], 7);
  Graph short_graph;
  ASSERT_TRUE((*files.Create("/m/s.onnx"))->Append(WithExternalData("w.bin", "8").Bytes()).ok());
  EXPECT_EQ(ImportOnnxFile(short_graph, "/m/s.onnx").status().code(), absl::StatusCode::kDataLoss);
}

TEST(ExternalData, OutsideOfTheFolderIsRejected) {
  for (const char* location : {"../w.bin", "/etc/passwd", "a/../../w.bin", ""}) {
    const absl::Status status = ImportOf(WithExternalData(location, "0"), {.data_folder = "/m"});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << location;
    EXPECT_THAT(MessageOf(status), HasSubstr("in the folder of the model")) << location;
  }
}

TEST(ExternalData, IsNotReadForAModelInMemory) {
  EXPECT_EQ(ImportOf(WithExternalData("w.bin", "0")).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace weir::onnx
