#include "weir/serving/inference.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/serving/lib/written_models.h"

namespace weir::serving {
namespace {

using ::testing::ElementsAre;
using testing::ExampleOf;
using ::testing::HasSubstr;

// A server of "m", version 3, which multiplies by 2.
class InferenceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string base = testing::MakeTempDirectory("inference");
    testing::WriteMultiplier(base + "/3", 2);
    models_ = ModelManager::Create({{.name = "m", .base_path = base}},
                                   {.poll = std::chrono::milliseconds(20)})
                  ->release();
    const absl::Status loaded = models_->WaitUntilLoaded(std::chrono::seconds(60));
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  static void TearDownTestSuite() { delete models_; }
  static ModelSpec Spec(const std::string& signature) {
    return {.name = "m", .signature = signature};
  }
  static ModelManager* models_;
};
ModelManager* InferenceTest::models_ = nullptr;

TEST_F(InferenceTest, PredictSaysWhichVersionAnswered) {
  const auto result = Predict(*models_, Spec(""), {{"x", Tensor::Vector<float>({1, 2})}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->by.model, "m");
  EXPECT_EQ(result->by.version, 3);
  EXPECT_EQ(result->by.signature, "serving_default");
  EXPECT_THAT(result->outputs.at("y").flat<float>(), ElementsAre(2, 4));
}

TEST_F(InferenceTest, ClassifyReturnsLabelsAndScoresOfEachExample) {
  const auto result =
      Classify(*models_, Spec("classify"), {.examples = {ExampleOf(1), ExampleOf(5)}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->by.signature, "classify");
  ASSERT_EQ(result->classes.size(), 2u);
  ASSERT_EQ(result->classes[1].size(), 2u);
  EXPECT_EQ(result->classes[1][0].label, "small");
  EXPECT_EQ(result->classes[1][0].score, 10);
  EXPECT_EQ(result->classes[0][1].label, "large");
  EXPECT_EQ(result->classes[0][1].score, 1);
}

TEST_F(InferenceTest, ClassifyWorksWithoutLabels) {
  const auto result = Classify(*models_, Spec("scores"), {.examples = {ExampleOf(1)}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->classes[0][0].label, "");
  EXPECT_EQ(result->classes[0][0].score, 2);
}

TEST_F(InferenceTest, RegressAddsTheContextToEachExample) {
  const auto result =
      Regress(*models_, Spec("regress"), {.examples = {"", ExampleOf(5)}, .context = ExampleOf(4)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->values, ElementsAre(8, 10));
}

TEST_F(InferenceTest, ReturnsServingsErrors) {
  const Examples one = {.examples = {ExampleOf(1)}};
  const auto expect = [](const absl::Status& status, absl::StatusCode code, const char* text) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  using enum absl::StatusCode;
  expect(Classify(*models_, Spec("classify"), {}).status(), kInvalidArgument, "Input is empty");
  expect(Regress(*models_, Spec("regress"), {.context = "x"}).status(), kInvalidArgument,
         "Input is empty");
  expect(Classify(*models_, Spec("none"), one).status(), kInvalidArgument,
         "No signature was found with the name: none");
  expect(Classify(*models_, Spec("regress"), one).status(), kInvalidArgument,
         "Expected classification signature method_name to be tensorflow/serving/classify. Was: "
         "tensorflow/serving/regress");
  expect(Regress(*models_, Spec(""), one).status(), kInvalidArgument,
         "Expected regression signature method_name to be tensorflow/serving/regress");
  expect(Regress(*models_, Spec("one_row"), {.examples = {ExampleOf(1), ExampleOf(2)}}).status(),
         kInvalidArgument, "Input batch size did not match output batch size: 2 vs. 1");
  expect(Regress(*models_, Spec("regress"), {.examples = {"no example"}}).status(),
         kInvalidArgument, "Could not parse example");
  expect(Predict(*models_, Spec("none"), {}).status(), kFailedPrecondition,
         "Serving signature key \"none\" not found.");
  expect(Predict(*models_, {}, {}).status(), kInvalidArgument, "ModelSpec has no name specified.");
  expect(Predict(*models_, {.name = "n"}, {}).status(), kNotFound,
         "Servable not found for request: Latest(n)");
}

TEST_F(InferenceTest, AHeldVersionAnswersAfterItsEnd) {
  const std::string base = testing::MakeTempDirectory("held");
  testing::WriteMultiplier(base + "/1", 2);
  const auto models = ModelManager::Create({{.name = "m", .base_path = base}},
                                           {.poll = std::chrono::milliseconds(20)});
  ASSERT_TRUE(models.ok() && (*models)->WaitUntilLoaded(std::chrono::seconds(60)).ok());
  const auto held = (*models)->Find(Spec(""));
  ASSERT_TRUE(held.ok()) << held.status();
  testing::WriteMultiplier(base + "/2", 3);
  while ((*models)->Find({.name = "m", .version = 1}).ok())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto classes = Classify(**models, *held, "classify", {.examples = {ExampleOf(1)}});
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_EQ(classes->by.version, 1);
  EXPECT_EQ(classes->classes[0][0].score, 2);
  const auto value = Regress(**models, *held, "regress", {.examples = {ExampleOf(1)}});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_THAT(value->values, ElementsAre(2));
}

TEST_F(InferenceTest, EndsWhenCancelled) {
  Cancellation cancelled;
  cancelled.Cancel(absl::CancelledError("gone"));
  EXPECT_EQ(Predict(*models_, Spec(""), {{"x", Tensor::Vector<float>({1})}}, {},
                    {.cancellation = &cancelled})
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace weir::serving
