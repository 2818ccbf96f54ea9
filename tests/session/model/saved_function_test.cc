// Functions of a SavedModel of TensorFlow 2, which has no signatures for them. golden/
// make_saved_model_functions.py writes the model and prints what TensorFlow answers.

#include "weir/session/model/saved_function.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/saved_object_graph.pb.h"
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
  SavedFunction untyped = Find("affine");
  untyped.inputs[0].dtype = DT_INVALID;
  EXPECT_EQ(Call(untyped).status().code(), absl::StatusCode::kInvalidArgument);
  affine.captures.clear();
  EXPECT_EQ(Call(affine).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Run("scale.times", Tensor::Vector<float>({2})).ok()) << "the graph is unharmed";
}

// Objects in a chain, each with the name of all before it; of 20 GB in total.
TEST(SavedFunctionsOf, TheListOfAMalformedModelEnds) {
  constexpr int kObjects = 20000;
  proto::MetaGraphDef def;
  def.mutable_graph_def()->mutable_library()->add_function()->mutable_signature()->set_name("f");
  proto::SavedObjectGraph& objects = *def.mutable_object_graph_def();
  (*objects.mutable_concrete_functions())["f"];
  for (int i = 0; i < kObjects; ++i) {
    proto::SavedObject& object = *objects.add_nodes();
    object.mutable_user_object();
    auto& next = *object.add_children();
    next.set_local_name(std::string(100, 'a'));
    next.set_node_id(2 * i + 2);
    auto& function = *object.add_children();
    function.set_local_name("f");
    function.set_node_id(2 * i + 1);
    objects.add_nodes()->mutable_function()->add_concrete_functions("f");
  }
  const std::vector<SavedFunction> functions = SavedFunctionsOf(def);
  ASSERT_FALSE(functions.empty());
  EXPECT_EQ(functions[0].name, "f");
  size_t bytes = 0;
  for (const SavedFunction& function : functions) bytes += function.name.size();
  EXPECT_LT(bytes, size_t{1} << 28);
}

TEST(SavedFunctionsOf, ArgumentsHaveDifferentNames) {
  proto::MetaGraphDef def;
  proto::FunctionDef& f = *def.mutable_graph_def()->mutable_library()->add_function();
  f.mutable_signature()->set_name("f");
  for (const int i : {0, 1}) {
    f.mutable_signature()->add_input_arg()->set_name(absl::StrCat("x_", i));
    (*(*f.mutable_arg_attr())[i].mutable_attr())["_user_specified_name"].set_s("x");
  }
  proto::SavedObjectGraph& objects = *def.mutable_object_graph_def();
  (*objects.mutable_concrete_functions())["f"];
  objects.add_nodes()->mutable_function()->add_concrete_functions("f");
  const std::vector<SavedFunction> functions = SavedFunctionsOf(def);
  ASSERT_EQ(functions.size(), 1u);
  ASSERT_EQ(functions[0].inputs.size(), 2u);
  EXPECT_EQ(functions[0].inputs[0].name, "x");
  EXPECT_EQ(functions[0].inputs[1].name, "x_1");
}

TEST(SavedFunctionsOf, OtherModelsHaveNone) {
  const auto model = LoadSavedModel("tests/session/golden/saved_model", {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->functions.empty());
}

}  // namespace
}  // namespace weir
