#include "weir/tests/serving/lib/written_models.h"

#include <utility>

#include "gtest/gtest.h"
#include "weir/ops/data/parsing.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/example.pb.h"

namespace weir::testing {
namespace {

Signature WithMethod(const char* method, Signature signature) {
  signature.method_name = std::string("tensorflow/serving/") + method;
  return signature;
}

}  // namespace

void WriteMultiplier(const std::string& directory, float factor, int64_t size) {
  Graph g;
  const Variable w = MakeVariable(g, Tensor::Scalar(factor), {.name = "w"});
  const Variable large = MakeVariable(g, Tensor::Zeros(DT_FLOAT, Shape({size})), {.name = "large"});
  const Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
  const Output y = Add(Multiply(x, w), Gather(large, Const(g, 0)), "y");

  const Output examples = Placeholder(g, DT_STRING, {-1}, "examples");
  const Output parsed = ParseExample(examples, {{"x", DT_FLOAT, {}, {}}}, {}).dense[0];
  const Output value = Multiply(parsed, w, "value");
  const Output scores = Stack({value, OnesLike(value)}, 1, "scores");
  const Output names = Fill(ShapeTensor(value), Const(g, Tensor::Scalar("small")));
  const Output others = Fill(ShapeTensor(value), Const(g, Tensor::Scalar("large")));
  const Output classes = Stack({names, others}, 1, "classes");

  std::map<std::string, Signature> signatures = {
      {"serving_default", PredictSignature({{"x", x}}, {{"y", y}})},
      {"classify",
       WithMethod("classify", PredictSignature({{"inputs", examples}},
                                               {{"classes", classes}, {"scores", scores}}))},
      {"scores",
       WithMethod("classify", PredictSignature({{"inputs", examples}}, {{"scores", scores}}))},
      {"regress",
       WithMethod("regress", PredictSignature({{"inputs", examples}}, {{"outputs", value}}))},
      {"one_row", WithMethod("regress", PredictSignature({{"inputs", examples}},
                                                         {{"outputs", Slice(value, {0}, {1})}}))}};
  Session session = *Session::Create(g);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
  const absl::Status written =
      WriteSavedModel(session, g, directory, signatures, {.durability = Durability::kUnsynced});
  ASSERT_TRUE(written.ok()) << written;
}

std::string ExampleOf(float x) {
  proto::Example example;
  (*example.mutable_features()->mutable_feature())["x"].mutable_float_list()->add_value(x);
  return example.SerializeAsString();
}

float FactorOf(const serving::Servable& servable) {
  const auto result = servable.Run("", {{"x", Tensor::Vector<float>({1})}});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->at("y").flat<float>()[0] : -1;
}

}  // namespace weir::testing
