#include "weir/serving/servable.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/record.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/prediction_log.pb.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/serving/lib/written_models.h"

namespace weir::serving {
namespace {

using ::testing::ElementsAre;
using testing::FactorOf;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using testing::WriteBytes;
using testing::WriteMultiplier;

std::shared_ptr<const Servable> LoadOrDie(const std::string& directory) {
  const auto servable = Servable::Load("m", 7, directory);
  EXPECT_TRUE(servable.ok()) << servable.status();
  return servable.ok() ? *servable : nullptr;
}

absl::Status Code(const absl::StatusOr<NamedTensors>& result) { return result.status(); }

class ServableTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new std::string(MakeTempDirectory("servable") + "/1");
    WriteMultiplier(*directory_, 3, 1000);
  }
  std::shared_ptr<const Servable> servable_ = LoadOrDie(*directory_);
  static std::string* directory_;
};
std::string* ServableTest::directory_ = nullptr;

TEST_F(ServableTest, CallsASignatureByName) {
  EXPECT_EQ(servable_->name(), "m");
  EXPECT_EQ(servable_->version(), 7);
  const auto result =
      servable_->Run("serving_default", {{"x", Tensor::Vector<float>({1, 2})}}, {"y"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->at("y").flat<float>(), ElementsAre(3, 6));
}

TEST_F(ServableTest, DescribesSignatures) {
  const SignatureInfo& info = servable_->signatures().at("serving_default");
  EXPECT_EQ(info.method_name, "tensorflow/serving/predict");
  EXPECT_EQ(info.inputs.at("x").tensor, "x:0");
  EXPECT_EQ(info.inputs.at("x").dtype, DT_FLOAT);
  EXPECT_EQ(info.inputs.at("x").shape, Shape({-1}));
}

// As of a function whose results have unknown shapes in the graph.
TEST(Servable, TakesShapesThatOnlyTheSignatureDeclares) {
  const std::string directory = MakeTempDirectory("declared") + "/1";
  WriteMultiplier(directory, 1);
  proto::SavedModel saved;
  ASSERT_TRUE(saved.ParseFromString(testing::ReadBytes(directory + "/saved_model.pb")));
  auto& signatures = *saved.mutable_meta_graphs(0)->mutable_signature_def();
  auto* const shape =
      (*signatures["serving_default"].mutable_outputs())["y"].mutable_tensor_shape();
  shape->mutable_dim(0)->set_size(5);
  auto& gone = *signatures["regress"].mutable_outputs();
  gone["outputs"].set_name("gone:0");
  WriteBytes(directory + "/saved_model.pb", saved.SerializeAsString());
  const auto servable = LoadOrDie(directory);
  ASSERT_NE(servable, nullptr);
  EXPECT_EQ(servable->signatures().at("serving_default").outputs.at("y").shape, Shape({5}));
  EXPECT_EQ(FactorOf(*servable), 1) << "which checks nothing";
  const absl::Status status =
      Code(servable->Run("regress", {{"inputs", Tensor::Vector<std::string>({""})}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("signature 'regress': 'outputs'"));
}

TEST_F(ServableTest, CountsTheBytesOfVariables) {
  EXPECT_GE(servable_->memory_bytes(), 4000);
  EXPECT_LT(servable_->memory_bytes(), 12000);  // the constants that initialize them
}

TEST_F(ServableTest, NamesExtraAndMissingInputs) {
  const absl::Status status =
      Code(servable_->Run("", {{"a\n", Tensor::Scalar(1.f)}, {"b", Tensor::Scalar(1.f)}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("input size does not match signature: 2!=1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Sent extra: {a\\n,b}"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Missing but required: {x}"));
}

TEST_F(ServableTest, ShowsALimitedPartOfHostileNames) {
  NamedTensors inputs;
  for (int i = 0; i < 10'000; ++i)
    inputs[absl::StrCat(std::string(1000, 'x'), i)] = Tensor::Scalar(1.f);
  EXPECT_LT(Code(servable_->Run("", inputs)).message().size(), 10'000u);
  EXPECT_LT(Code(servable_->Run(std::string(1 << 20, 'x'), {})).message().size(), 1000u);
}

TEST_F(ServableTest, RejectsWrongValues) {
  const absl::Status dtype = Code(servable_->Run("", {{"x", Tensor::Vector<int32_t>({1})}}));
  EXPECT_EQ(dtype.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(dtype.message()),
              HasSubstr("Expects arg[0] to be float but int32 is provided"));
  const absl::Status shape = Code(servable_->Run("", {{"x", Tensor::Of<float>({1, 1}, {1})}}));
  EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument);
  const absl::Status none = Code(servable_->Run("", {{"x", Tensor()}}));
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ServableTest, RejectsUnknownSignaturesAndOutputs) {
  const NamedTensors x = {{"x", Tensor::Vector<float>({1})}};
  const absl::Status signature = Code(servable_->Run("other", x));
  EXPECT_EQ(signature.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(signature.message()),
              HasSubstr("Serving signature key \"other\" not found."));
  EXPECT_THAT(std::string(signature.message()), HasSubstr("serving_default"));
  const absl::Status output = Code(servable_->Run("", x, {"z"}));
  EXPECT_EQ(output.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(output.message()), HasSubstr("expected to be in the set {y}"));
  const absl::Status twice = Code(servable_->Run("", x, {"y", "y"}));
  EXPECT_EQ(twice.message(), "duplicate output tensor alias: y");
}

TEST(Servable, OfAFrozenGraphTakesItsPlaceholders) {
  const std::string directory = MakeTempDirectory("frozen");
  Graph g;
  const Output a = Placeholder(g, DT_FLOAT, {-1}, "a"), b = Placeholder(g, DT_FLOAT, {}, "b");
  const Output sum = Add(a, b, "sum");
  Multiply(sum, sum, "square");
  Subtract(sum, a, "rest");
  ASSERT_TRUE(WriteGraphFile(g, directory + "/model.pb").ok());
  const auto servable = LoadOrDie(directory);
  ASSERT_NE(servable, nullptr);
  const auto result =
      servable->Run("", {{"a", Tensor::Vector<float>({1, 2})}, {"b", Tensor::Scalar(1.f)}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->size(), 2u);
  EXPECT_THAT(result->at("square").flat<float>(), ElementsAre(4, 9));
  EXPECT_THAT(result->at("rest").flat<float>(), ElementsAre(1, 1));
}

TEST(Servable, NeedsOneModel) {
  const std::string directory = MakeTempDirectory("no_model");
  EXPECT_EQ(Servable::Load("m", 1, directory).status().code(), absl::StatusCode::kNotFound);
  WriteBytes(directory + "/a.pb", "");
  WriteBytes(directory + "/b.pb", "");
  const absl::Status two = Servable::Load("m", 1, directory).status();
  EXPECT_EQ(two.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(two.message()), HasSubstr("a.pb, b.pb"));
}

TEST(Servable, IsNotLoadedWithoutTheValuesOfItsVariables) {
  const std::string directory = MakeTempDirectory("half");
  WriteMultiplier(directory + "/whole", 1);
  ASSERT_TRUE(MakeDirectories(directory + "/copy").ok());
  WriteBytes(directory + "/copy/saved_model.pb",
             testing::ReadBytes(directory + "/whole/saved_model.pb"));
  const absl::Status status = Servable::Load("m", 1, directory + "/copy").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("variables/variables.index"));
}

TEST(Servable, UsesTheDefaultOfAnOmittedInput) {
  const std::string directory = MakeTempDirectory("defaults") + "/1";
  Graph g;
  const Output a = Placeholder(g, DT_FLOAT, {}, "a"), b = Placeholder(g, DT_FLOAT, {}, "b");
  Signature signature = PredictSignature({{"a", a}, {"b", b}}, {{"sum", a + b}});
  signature.defaults["b"] = Tensor::Scalar(10.f);
  Session session = *Session::Create(g);
  ASSERT_TRUE(WriteSavedModel(session, g, directory, {{"serving_default", signature}}).ok());
  const auto servable = LoadOrDie(directory);
  ASSERT_NE(servable, nullptr);
  const auto omitted = servable->Run("", {{"a", Tensor::Scalar(1.f)}});
  ASSERT_TRUE(omitted.ok()) << omitted.status();
  EXPECT_EQ(omitted->at("sum").scalar<float>(), 11);
  const auto given = servable->Run("", {{"a", Tensor::Scalar(1.f)}, {"b", Tensor::Scalar(2.f)}});
  EXPECT_EQ(given->at("sum").scalar<float>(), 3);
  EXPECT_FALSE(servable->Run("", {{"b", Tensor::Scalar(2.f)}}).ok());
}

TEST(Servable, DoesNotGiveHandlesToClients) {
  const std::string directory = MakeTempDirectory("handles") + "/1";
  Graph g;
  const Output handle = Placeholder(g, DT_RESOURCE, {}, "handle");
  Session session = *Session::Create(g);
  ASSERT_TRUE(
      WriteSavedModel(session, g, directory,
                      {{"serving_default", PredictSignature({{"h", handle}}, {{"same", handle}})}})
          .ok());
  const auto servable = LoadOrDie(directory);
  ASSERT_NE(servable, nullptr);
  const absl::Status status = Code(servable->Run("", {{"h", Tensor(DT_RESOURCE, Shape())}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

// ---- warm-up

void WriteWarmUp(const std::string& directory,
                 const std::vector<proto::serving::PredictionLog>& logs) {
  ASSERT_TRUE(MakeDirectories(directory + "/assets.extra").ok());
  const auto writer = RecordWriter::Create(directory + "/assets.extra/tf_serving_warmup_requests");
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const auto& log : logs) ASSERT_TRUE((*writer)->Append(log.SerializeAsString()).ok());
  ASSERT_TRUE((*writer)->Close().ok());
}

proto::serving::PredictionLog PredictLog(const Tensor& x) {
  proto::serving::PredictionLog log;
  auto* const request = log.mutable_predict_log()->mutable_request();
  TensorToProto(x, &(*request->mutable_inputs())["x"]);
  return log;
}

TEST(Servable, RunsTheRequestsOfItsWarmUpFile) {
  const std::string directory = MakeTempDirectory("warm") + "/1";
  WriteMultiplier(directory, 2);
  proto::serving::PredictionLog classify;
  auto* const request = classify.mutable_classify_log()->mutable_request();
  request->mutable_model_spec()->set_signature_name("classify");
  ASSERT_TRUE(request->mutable_input()->mutable_example_list()->add_examples()->ParseFromString(
      testing::ExampleOf(1)));
  WriteWarmUp(directory, {PredictLog(Tensor::Vector<float>({1})), classify});
  EXPECT_TRUE(Servable::Load("m", 1, directory).ok());
}

TEST(Servable, FailsToLoadWithAWarmUpRequestThatFails) {
  const std::string directory = MakeTempDirectory("cold") + "/1";
  WriteMultiplier(directory, 2);
  WriteWarmUp(directory,
              {PredictLog(Tensor::Vector<float>({1})), PredictLog(Tensor::Vector<int32_t>({1}))});
  const absl::Status status = Servable::Load("m", 1, directory).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("record 2"));
  EXPECT_TRUE(Servable::Load("m", 1, directory, {.warm_up = false}).ok());
}

TEST(Servable, FailsToLoadWithADamagedWarmUpFile) {
  const std::string directory = MakeTempDirectory("damaged") + "/1";
  WriteMultiplier(directory, 2);
  ASSERT_TRUE(MakeDirectories(directory + "/assets.extra").ok());
  WriteBytes(directory + "/assets.extra/tf_serving_warmup_requests", "no record");
  EXPECT_EQ(Servable::Load("m", 1, directory).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace weir::serving
