#include "weir/ops/framework/initializers.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/evaluate.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class InitializersTest : public testing::Test {
 protected:
  Tensor Value(const Initializer& initializer, const Shape& shape, DataType dtype = DT_FLOAT) {
    const Output value = initializer.shaped()({g, shape, dtype});
    EXPECT_TRUE(g.status().ok()) << g.status();
    if (!g.status().ok()) return Tensor::Zeros(dtype, shape);
    absl::StatusOr<Tensors> out = Evaluate(g, {value});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Tensor::Zeros(dtype, shape);
  }
  void ExpectInvalid(const Initializer& initializer, const Shape& shape, DataType dtype,
                     absl::string_view part) {
    EXPECT_FALSE(initializer.shaped()({g, shape, dtype}).valid());
    const absl::Status status = g.TakeStatus();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(part)));
  }
  Graph g;
};

TEST_F(InitializersTest, GlorotLimitsMatchTheSpecification) {
  const std::pair<Shape, float> rows[] = {
      {{}, 1.7320508f}, {{4}, 0.8660254f}, {{4, 6}, 0.7745967f}, {{3, 3, 4, 8}, 0.2357023f}};
  for (const auto& [shape, limit] : rows) {
    const Output value = GlorotUniform().shaped()({g, shape, DT_FLOAT});
    const Node* max = g.FindNode(value.node->name() + "/max");
    ASSERT_NE(max, nullptr);
    EXPECT_FLOAT_EQ(max->attr<Tensor>("value").scalar<float>(), limit) << shape.ToString();
  }
}

TEST_F(InitializersTest, ScalesByTheFullShapeOfAPartitionedVariable) {
  const PartitionInfo whole = {.full_shape = {40, 10}, .offset = {0, 0}};
  const Output value = LecunUniform().shaped()({g, {4, 10}, DT_FLOAT, &whole});
  const Node* max = g.FindNode(value.node->name() + "/max");
  EXPECT_FLOAT_EQ(max->attr<Tensor>("value").scalar<float>(), std::sqrt(3.f / 40));
  EXPECT_EQ(value.shape(), Shape({4, 10}));
}

TEST_F(InitializersTest, ConstantsRepeatTheirLastValue) {
  EXPECT_THAT(Value(Constant({1.0, 2.0}), {2, 2}).flat<float>(), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(Value(Constant(3), {2}, DT_INT64).flat<int64_t>(), ElementsAre(3, 3));
  EXPECT_THAT(Value(Constant("x"), {2}, DT_STRING).flat<std::string>(), ElementsAre("x", "x"));
  ExpectInvalid(Constant({1, 2, 3}), {2}, DT_INT32, "Takes at most 2, but got 3");
  ExpectInvalid(Constant({1, 2}, true), {2, 2}, DT_INT32, "[2,2], but got [2]");
  ExpectInvalid(Constant(1.5), {2}, DT_INT32, "int32");
}

TEST_F(InitializersTest, ZerosAndOnesHaveEveryType) {
  EXPECT_THAT(Value(Zeros(), {2}, DT_STRING).flat<std::string>(), ElementsAre("", ""));
  EXPECT_THAT(Value(Ones(), {2}, DT_BOOL).flat<bool>(), ElementsAre(true, true));
  EXPECT_EQ(Value(Ones(), {40, 40}, DT_DOUBLE).data<double>()[1599], 1);
}

TEST_F(InitializersTest, RandomInitializersNeedFloatingTypes) {
  for (const Initializer& i : {RandomNormalInitializer(), TruncatedNormalInitializer(),
                               UniformUnitScaling(), VarianceScaling(), Orthogonal(), Identity()}) {
    ExpectInvalid(i, {2, 2}, DT_INT32, "Expected floating point type, got int32");
  }
  ExpectInvalid(VarianceScaling({.scale = -1}), {2}, DT_FLOAT, "positive");
  ExpectInvalid(RandomUniformInitializer(), {2}, DT_INT64, "Must specify maxval for integer dtype");
}

TEST_F(InitializersTest, TruncatedNormalScalingKeepsTheVariance) {
  const Tensor value = Value(HeNormal(3), {200, 300});
  double squares = 0;
  for (const float x : value.flat<float>()) squares += x * x;
  EXPECT_NEAR(squares / 60000, 2.0 / 200, 2e-4);
}

TEST_F(InitializersTest, IdentityHasItsGainOnTheDiagonal) {
  EXPECT_THAT(Value(Identity(2.0f), {2, 2}).flat<float>(), ElementsAre(2, 0, 0, 2));
  EXPECT_THAT(Value(Identity(), {2, 3}).flat<float>(), ElementsAre(1, 0, 0, 0, 1, 0));
  ExpectInvalid(Identity(), {2}, DT_FLOAT, "2D");
}

TEST_F(InitializersTest, OrthogonalMatricesAreOrthogonal) {
  for (const Shape& shape : {Shape{4, 4}, Shape{5, 3}, Shape{3, 5}, Shape{2, 2, 6}}) {
    const Tensor value = Value(Orthogonal(2, 1), shape, DT_DOUBLE);
    const int64_t columns = shape.dim(-1), rows = value.num_elements() / columns;
    const double* v = value.data<double>();
    const bool by_rows = rows < columns;
    const int64_t n = std::min(rows, columns), length = std::max(rows, columns);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double dot = 0;
        for (int64_t k = 0; k < length; ++k) {
          dot += by_rows ? v[i * columns + k] * v[j * columns + k]
                         : v[k * columns + i] * v[k * columns + j];
        }
        EXPECT_NEAR(dot, i == j ? 4 : 0, 1e-12) << shape.ToString();
      }
    }
  }
  ExpectInvalid(Orthogonal(), {3}, DT_FLOAT, "at least two-dimensional");
}

TEST_F(InitializersTest, AnyCallableIsAnInitializer) {
  const auto ramp = [](const InitializerArgs& a) {
    return Const(a.graph, Shape({2, 2}), {0.f, 1.f, 2.f, 3.f}, "ramp");
  };
  const Variable v = GetVariable(g, "v", {2, 2}, ramp);
  EXPECT_EQ(v.initial_value().name(), "v/Initializer/ramp:0");
  const Variable w = GetVariable(g, "w", {.initializer = [&] { return Const(g, 4, "four"); }});
  EXPECT_EQ(w.initial_value().name(), "w/Initializer/four:0");
  EXPECT_EQ(w.dtype(), DT_INT32);
  EXPECT_TRUE(g.status().ok()) << g.status();
}

}  // namespace
}  // namespace weir
