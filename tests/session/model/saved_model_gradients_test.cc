// Gradients of a SavedModel of TensorFlow 2 whose functions have gradient functions of their own.
// TensorFlow gives the same values (golden/make_saved_model_gradients.py).

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/gradients.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/saved_model.h"

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

TEST(SavedModelGradients, NeedTheObjectsOfTheModel) {
  proto::SavedModel file;
  ASSERT_TRUE(file.ParseFromString(*ReadFile(absl::StrCat(kModel, "/saved_model.pb"))));
  file.mutable_meta_graphs(0)->clear_object_graph_def();
  Graph graph;
  const absl::StatusOr<MetaGraph> meta = ImportMetaGraph(graph, file.meta_graphs(0));
  ASSERT_TRUE(meta.ok()) << meta.status();
  Session session = *Session::Create(graph);
  const absl::Status status = GradientAt(graph, *meta, session, "exp", "x").status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("IdentityN"), HasSubstr("'CustomGradient-"),
                                      HasSubstr("'__inference_internal_grad_fn_")));
}

// Objects that a damaged file lacks are not known; the model runs.
TEST(SavedModelGradients, OfADamagedObjectGraphAreNotKnown) {
  proto::SavedModel file;
  ASSERT_TRUE(file.ParseFromString(*ReadFile(absl::StrCat(kModel, "/saved_model.pb"))));
  auto& functions =
      *file.mutable_meta_graphs(0)->mutable_object_graph_def()->mutable_concrete_functions();
  for (auto& [name, function] : functions) function.add_bound_inputs(1'000'000);
  Graph graph;
  const absl::StatusOr<MetaGraph> meta = ImportMetaGraph(graph, file.meta_graphs(0));
  ASSERT_TRUE(meta.ok()) << meta.status();
  Session session = *Session::Create(graph);
  EXPECT_TRUE(absl::IsUnimplemented(GradientAt(graph, *meta, session, "exp", "x").status()));
}

// Two models that were traced alike use one name for gradient functions of their own.
TEST(SavedModelGradients, OfTwoModelsWithOneNameAreRejected) {
  proto::SavedModel file;
  ASSERT_TRUE(file.ParseFromString(*ReadFile(absl::StrCat(kModel, "/saved_model.pb"))));
  auto& library = *file.mutable_meta_graphs(0)->mutable_graph_def()->mutable_library();
  proto::RegisteredGradient other = library.registered_gradients(0);
  other.set_gradient_func("another");
  *library.add_registered_gradients() = other;
  Graph graph;
  const absl::StatusOr<MetaGraph> meta = ImportMetaGraph(graph, file.meta_graphs(0));
  ASSERT_TRUE(meta.ok()) << meta.status();
  Session session = *Session::Create(graph);
  int rejected = 0;
  for (const char* result : {"exp", "called", "partial", "variable"}) {
    const absl::Status status = GradientAt(graph, *meta, session, result, "x").status();
    if (absl::StrContains(status.message(), "'another'")) ++rejected;
  }
  EXPECT_GT(rejected, 0);
}

}  // namespace
}  // namespace weir
