// Gradients of a SavedModel of TensorFlow 2 whose functions have gradient functions of their own.
// TensorFlow gives the same values (golden/make_saved_model_gradients.py).

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/gradients.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/saved_model.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr char kModel[] = "tests/session/golden/saved_model_gradients";

// The gradient of a result of the signature at {0.1, 0.2}, by its argument or by the variable.
absl::StatusOr<Tensor> GradientAt(Graph& graph, const MetaGraph& meta, Session& session,
                                  const std::string& result, const std::string& by) {
  const Signature& signature = meta.signatures.at("serving_default");
  WEIR_ASSIGN_OR_RETURN(const Output x, graph.FindOutput(signature.inputs.at("x")));
  WEIR_ASSIGN_OR_RETURN(const Output y, graph.FindOutput(signature.outputs.at(result)));
  WEIR_ASSIGN_OR_RETURN(const Output source, graph.FindOutput(by == "x" ? x.name() : by));
  const Output gradient = DenseGradients({y}, {source})[0];
  WEIR_RETURN_IF_ERROR(graph.status());
  WEIR_ASSIGN_OR_RETURN(const Tensors out,
                        session.Run({{x, Tensor::Vector<float>({0.1f, 0.2f})}}, {gradient}));
  return out[0];
}

// The gradient functions have captured results, arguments, values between them and a variable. One
// has a result for only one of two arguments; one lies in a function that the signature's calls.
TEST(SavedModelGradients, TakeWhatTheirFunctionsHaveCaptured) {
  const absl::StatusOr<LoadedModel> model = LoadSavedModel(kModel, {"serve"});
  ASSERT_TRUE(model.ok()) << model.status();
  struct Case {
    const char *result, *by;
    std::vector<float> gradient;
  };
  for (const Case& c :
       {Case{"exp", "x", {8.999153f, 12.732714f}}, Case{"called", "x", {7.502601f, 7.685247f}},
        Case{"partial", "x", {0.6f, 1.2f}}, Case{"variable", "x", {15, 20}},
        Case{"variable", "w", {10, 20}}}) {
    const absl::StatusOr<Tensor> gradient =
        GradientAt(*model->graph, model->meta, *model->session, c.result, c.by);
    ASSERT_TRUE(gradient.ok()) << c.result << gradient.status();
    EXPECT_THAT(gradient->flat<float>(), Pointwise(FloatNear(1e-5f), c.gradient)) << c.result;
  }
}

// Loads a copy of the model with a changed meta graph, and returns the error of a gradient.
absl::Status ErrorOf(const std::string& result,
                     const std::function<void(proto::MetaGraphDef&)>& change) {
  const std::string folder = testing::MakeTempDirectory("changed");
  for (const char* part : {"variables.index", "variables.data-00000-of-00001"}) {
    const std::string name = absl::StrCat("/variables/", part);
    WEIR_RETURN_IF_ERROR(MakeDirectories(folder + "/variables"));
    testing::WriteBytes(folder + name, *ReadFile(kModel + name));
  }
  proto::SavedModel file;
  if (!file.ParseFromString(*ReadFile(absl::StrCat(kModel, "/saved_model.pb"))))
    return absl::DataLossError("saved_model.pb");
  change(*file.mutable_meta_graphs(0));
  testing::WriteBytes(folder + "/saved_model.pb", file.SerializeAsString());
  WEIR_ASSIGN_OR_RETURN(const LoadedModel model, LoadSavedModel(folder, {"serve"}));
  return GradientAt(*model.graph, model.meta, *model.session, result, "x").status();
}

TEST(SavedModelGradients, NeedTheObjectsOfTheModel) {
  const absl::Status status =
      ErrorOf("exp", [](proto::MetaGraphDef& def) { def.clear_object_graph_def(); });
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("IdentityN"), HasSubstr("'CustomGradient-"),
                                      HasSubstr("'__inference_internal_grad_fn_")));
}

// What a damaged file lacks is not known.
TEST(SavedModelGradients, DoNotReferToObjectsThatAreNotThere) {
  const absl::Status status = ErrorOf("exp", [](proto::MetaGraphDef& def) {
    for (auto& [name, function] : *def.mutable_object_graph_def()->mutable_concrete_functions())
      function.add_bound_inputs(1'000'000);
  });
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
}

TEST(SavedModelGradients, DoNotTakeTensorsOfOtherFunctions) {
  const absl::Status status = ErrorOf("exp", [](proto::MetaGraphDef& def) {
    for (proto::SavedObject& object : *def.mutable_object_graph_def()->mutable_nodes()) {
      if (object.has_captured_tensor())
        object.mutable_captured_tensor()->set_concrete_function("another");
    }
  });
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("of 'another'"));
}

// The numbers of objects mean nothing in another model.
TEST(SavedModelGradients, DoNotTakeObjectsOfAnotherModel) {
  const auto library = std::make_shared<const FunctionLibrary>();
  const FunctionCaptures captures{.values = {{.object = 5}, {.function = "f", .tensor = "x:0"}}};
  const auto both = FunctionLibrary::WithCaptures(
      *FunctionLibrary::WithCaptures(*library, {{"a", captures}}), {{"b", captures}});
  const FunctionCaptures &a = *both->FindCaptures("a"), &b = *both->FindCaptures("b");
  EXPECT_FALSE(a.values[0] == b.values[0]);
  EXPECT_TRUE(a.values[1] == b.values[1]);
}

// Two models that were traced alike use one name for functions of their own.
TEST(SavedModelGradients, AreNotChosenAmongFunctionsOfOneName) {
  const absl::Status status = ErrorOf("exp", [](proto::MetaGraphDef& def) {
    auto& library = *def.mutable_graph_def()->mutable_library();
    const auto known = library.registered_gradients();
    for (proto::RegisteredGradient other : known) {
      other.set_gradient_func("another");
      *library.add_registered_gradients() = other;
    }
  });
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("'another'"));
}

}  // namespace
}  // namespace weir
