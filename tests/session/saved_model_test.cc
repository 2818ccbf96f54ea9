// SavedModels that TensorFlow 2 has written.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/session/meta_graph.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

constexpr char kModel[] = "tests/session/golden/saved_model_tf2";

absl::StatusOr<Tensors> Serve(const LoadedModel& model, const Tensor& x) {
  const Signature& signature = model.meta.signatures.at("serving_default");
  return model.session->Run({{signature.inputs.at("x"), x}},
                            {signature.outputs.at("out"), signature.outputs.at("calls")}, {});
}

TEST(SavedModel, OfTensorFlow2IsRestoredByItsFunctionAndKeepsItsState) {
  const auto model = LoadSavedModel(kModel, {"serve"});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto first = Serve(*model, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT((*first)[0].flat<float>(), ElementsAre(82, 152));
  EXPECT_EQ((*first)[1].scalar<int64_t>(), 1);
  const auto second = Serve(*model, Tensor::Of<float>({1, 2}, {-1, -2}));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT((*second)[0].flat<float>(), ElementsAre(21));
  EXPECT_EQ((*second)[1].scalar<int64_t>(), 2);
}

TEST(SavedModel, OfTensorFlow2TellsWhereAnErrorComesFrom) {
  const auto model = LoadSavedModel(kModel, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::Status status = Serve(*model, Tensor::Of<float>({1, 3}, {1, 2, 3})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(Serve(*model, Tensor::Of<float>({1, 2}, {1, 2})).ok()) << "and goes on";
}

}  // namespace
}  // namespace weir
