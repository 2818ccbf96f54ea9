// Functions of a SavedModel of TensorFlow 2, which has no signatures for them. golden/
// make_saved_model_functions.py writes the model and prints what TensorFlow answers.

#include "weir/session/model/saved_function.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/session/model/saved_model.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModel[] = "tests/session/golden/saved_model_functions";

class SavedFunctions : public ::testing::Test {
 protected:
  SavedFunctions() : model_(*LoadSavedModel(testing::CopyOfFolder(kModel), {"serve"})) {}

  // Returns the first trace of the function.
  SavedFunction Find(const std::string& name) const {
    for (const SavedFunction& function : model_.functions) {
      if (function.name == name) return function;
    }
    ADD_FAILURE() << "no function " << name;
    return {};
  }

  absl::StatusOr<Signature> Call(const SavedFunction& function) {
    Signature signature;
    const absl::Status added = model_.session->Extend([&]() -> absl::Status {
      WEIR_ASSIGN_OR_RETURN(signature, CallSavedFunction(*model_.graph, function));
      return absl::OkStatus();
    });
    if (!added.ok()) return added;
    return signature;
  }

  // Calls the function with one input, and returns the result of this name.
  absl::StatusOr<Tensor> Run(const std::string& name, const Tensor& input,
                             const std::string& result = "output_0") {
    WEIR_ASSIGN_OR_RETURN(const Signature signature, Call(Find(name)));
    WEIR_ASSIGN_OR_RETURN(Tensors results,
                          model_.session->Run({{signature.inputs.begin()->second, input}},
                                              {signature.outputs.at(result)}, {}));
    return results[0];
  }

  LoadedModel model_;
};

TEST_F(SavedFunctions, AreNamedByTheObjectsThatHaveThem) {
  std::vector<std::string> names;
  for (const SavedFunction& function : model_.functions) names.push_back(function.name);
  EXPECT_THAT(names, ElementsAre("affine", "bump", "look", "poly", "poly", "power", "scale.times"));
}

TEST_F(SavedFunctions, HaveArgumentsAndResultsWithTypes) {
  const SavedFunction affine = Find("affine");
  ASSERT_EQ(affine.inputs.size(), 1u);
  EXPECT_EQ(affine.inputs[0].name, "x");
  EXPECT_EQ(affine.inputs[0].dtype, DT_FLOAT);
  EXPECT_EQ(affine.inputs[0].shape, Shape({-1, 2}));
  ASSERT_EQ(affine.results.size(), 2u);
  EXPECT_EQ(affine.results[0].name, "part");  // sorted by key
  EXPECT_EQ(affine.results[1].name, "y");
  const SavedFunction poly = Find("poly");
  ASSERT_EQ(poly.results.size(), 2u);
  EXPECT_EQ(poly.results[0].name, "output_0");
  EXPECT_EQ(poly.results[1].name, "output_1/0");
  const SavedFunction power = Find("power");
  ASSERT_EQ(power.inputs.size(), 2u);
  EXPECT_FALSE(power.inputs[0].default_value);
  ASSERT_TRUE(power.inputs[1].default_value);
  EXPECT_EQ(power.inputs[1].default_value->scalar<float>(), 2);
}

TEST_F(SavedFunctions, ReadVariablesOfOneNameAndConstants) {
  const Tensor x = Tensor::Of<float>({1, 2}, {1, 1});
  const auto y = Run("affine", x, "y"), part = Run("affine", x, "part");
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), ElementsAre(14, 26));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_THAT(part->flat<float>(), ElementsAre(0.5, 0.25));
}

TEST_F(SavedFunctions, ReadTablesAndVariablesOfOtherObjects) {
  const auto found = Run("look", Tensor::Vector<std::string>({"bird", "fish"}));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->flat<int64_t>(), ElementsAre(2, -1));
  const auto product = Run("scale.times", Tensor::Vector<float>({2}));
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_THAT(product->flat<float>(), ElementsAre(6));
}

TEST_F(SavedFunctions, ChangeTheModelsOwnVariables) {
  for (const float sum : {11.f, 12.f}) {
    const auto b = Run("bump", Tensor::Scalar(1.f));
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_THAT(b->flat<float>(), ElementsAre(sum, sum + 10));
  }
  const auto y = Run("affine", Tensor::Of<float>({1, 2}, {1, 1}), "y");
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), ElementsAre(16, 28));
}

TEST_F(SavedFunctions, WithoutATensorForWhatTheyHaveCapturedAreRejected) {
  SavedFunction affine = Find("affine");
  std::fill(affine.captures.begin(), affine.captures.end(), "");
  const absl::Status unknown = Call(affine).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnimplemented) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("'affine' has captured an object"));
  affine.captures[0] = "nowhere:0";
  EXPECT_EQ(Call(affine).status().code(), absl::StatusCode::kNotFound);
  affine.captures.clear();
  EXPECT_EQ(Call(affine).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Run("scale.times", Tensor::Vector<float>({2})).ok()) << "the graph is unharmed";
}

TEST(SavedFunctionsOf, OtherModelsHaveNone) {
  const auto model = LoadSavedModel("tests/session/golden/saved_model", {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->functions.empty());
}

}  // namespace
}  // namespace weir
