// Gradients that rows of the sweep do not check: of complex numbers, of float-only ops, of
// variables.

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/numeric_gradient.h"

// Gradients checked to order 1 by tests: ApproxTopK, FakeQuantWithMinMaxArgs,
// FakeQuantWithMinMaxVarsPerChannel, FractionalAvgPool, FractionalMaxPool,
// ImageProjectiveTransformV2, LRN, MaxPool3D, MaxPool3DGrad, MaxPool3DGradGrad,
// QuantizeAndDequantizeV2, QuantizeAndDequantizeV3, QuantizeAndDequantizeV4, ReadVariableOp,
// ResourceGather, ResourceGatherNd, SparseMatMul.

// Gradients checked to order 2 by tests: Angle, BatchMatMulV3, Complex, ComplexAbs, Conj, Imag,
// MatrixSetDiagV2, Polygamma, Print, Real, SoftmaxCrossEntropyWithLogits.

namespace weir {
namespace {

using ::testing::ElementsAre;

TEST(SpecialGradients, OfComplexNumbers) {
  const auto loss = [](const Output& x) {
    const Output z = AddOp("Complex", {StridedSlice(x, {Index(0)}), StridedSlice(x, {Index(1)})},
                           {{"Tout", DT_COMPLEX128}});
    const auto part = [](const char* op, const Output& of) {
      return WeightedSum(AddOp(op, {of}, {{"Tout", DT_DOUBLE}}));
    };
    const Output square = Multiply(AddOp("Conj", {z}), AddOp("Conj", {z}));
    return AddN(
        {part("ComplexAbs", z), part("Angle", z), part("Real", square), part("Imag", square)});
  };
  ExpectGradient(loss, {2, 3}, 2);
}

// Ops whose TensorFlow gradients conjugate their argument.
TEST(SpecialGradients, OfFunctionsOfComplexNumbers) {
  for (const char* op : {"Tanh", "Sigmoid", "Sqrt", "Rsqrt", "Reciprocal", "Inv", "Exp", "Expm1",
                         "Log", "Log1p", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Asinh", "Square"}) {
    SCOPED_TRACE(op);
    const auto loss = [op](const Output& x) {
      const Output z =
          AddOp("Complex",
                {1.5 + StridedSlice(x, {Index(0)}) / 4., 0.5 + StridedSlice(x, {Index(1)}) / 4.},
                {{"Tout", DT_COMPLEX128}});
      const Output y = AddOp(op, {z});
      return WeightedSum(AddOp("Real", {y}, {{"Tout", DT_DOUBLE}})) -
             3. * WeightedSum(AddOp("Imag", {y}, {{"Tout", DT_DOUBLE}}));
    };
    ExpectGradient(loss, {2, 3}, 2);
  }
}

TEST(SpecialGradients, OfRealOnes) {
  ExpectGradient(
      [](const Output& x) {
        return WeightedSum(
            AddOp("BatchMatMulV3", {x, Sin(x)}, {{"Tout", DT_DOUBLE}, {"adj_y", true}}));
      },
      {2, 2, 3}, 2);
  ExpectGradient(
      [](const Output& x) {
        return WeightedSum(
            AddOp("MatrixSetDiagV2", {Square(x), Sin(ReduceSum(x, {2})), Const(x.graph(), 0)}));
      },
      {2, 3, 4}, 2);
  ExpectGradient(
      [](const Output& x) {
        const Output order = Const<double>(x.graph(), {0., 1., 2.});
        return WeightedSum(AddOp("Polygamma", {order, Square(x) + 1.}));
      },
      {3}, 2);
  ExpectGradient(
      [](const Output& x) {
        return WeightedSum(AddOp("Print", {Square(x), Outputs{x}}, {{"first_n", 0}}));
      },
      {3}, 2);
}

TEST(SpecialGradients, OfCrossEntropies) {
  ExpectGradient(
      [](const Output& x) {
        const Output labels = Const<double>(x.graph(), {2, 3}, {0.2, 0.5, 0.3, 1, 0, 0});
        return WeightedSum(AddOp("SoftmaxCrossEntropyWithLogits", {x, labels}));
      },
      {2, 3}, 2);
}

TEST(SpecialGradients, OfPoolsOfRandomSizes) {
  for (const char* op : {"FractionalAvgPool", "FractionalMaxPool"}) {
    ExpectGradient(
        [&](const Output& x) {
          return ReduceSum(Square(AddOp(op, {x},
                                        {{"pooling_ratio", std::vector<float>{1, 1.5f, 1.4f, 1}},
                                         {"deterministic", true},
                                         {"seed", 1},
                                         {"seed2", 2}})));
        },
        {1, 6, 7, 2}, 1);
  }
}

// An image translated by whole pixels.
TEST(SpecialGradients, OfProjections) {
  ExpectGradient(
      [](const Output& x) {
        Graph& g = x.graph();
        const Output shift = Const<float>(g, {1, 8}, {1, 0, 1, 0, 1, 0, 0, 0});
        return ReduceSum(Square(AddOp("ImageProjectiveTransformV2", {x, shift, Const(g, {4, 4})},
                                      {{"interpolation", "NEAREST"}})));
      },
      {1, 4, 4, 1}, 1);
}

// In floats: the difference step is large, and the function is smooth or piecewise linear with
// wider pieces.
void ExpectFloatGradient(const std::function<Output(const Output& x)>& fn, const Shape& shape) {
  constexpr float kStep = 0.01f;
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, shape);
  const Output y = fn(x);
  const Output loss = ReduceSum(Cast(y, DT_DOUBLE) * Cast(Sin(y + 1.f), DT_DOUBLE));
  const Output dx = DenseGradients({loss}, {x})[0];
  ASSERT_TRUE(g.status().ok()) << g.status();
  Tensor at(DT_FLOAT, shape);
  const int64_t count = shape.num_elements();
  for (int64_t i = 0; i < count; ++i)
    at.data<float>()[i] = static_cast<float>((i * 37 + 11) % count) / static_cast<float>(count);
  const auto value = [&](const Output& of) {
    const absl::StatusOr<Tensors> out = Evaluate(g, {{x, at}}, {of});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0].DeepCopy() : Tensor::Zeros(of.dtype(), shape);
  };
  const Tensor got = value(dx);
  for (int64_t i = 0; i < count; ++i) {
    float& element = at.data<float>()[i];
    const float was = element;
    element = was + kStep;
    const double above = value(loss).scalar<double>();
    element = was - kStep;
    const double below = value(loss).scalar<double>();
    element = was;
    EXPECT_NEAR(got.data<float>()[i], (above - below) / (2 * kStep), 2e-3) << "element " << i;
  }
}

TEST(SpecialGradients, OfFloats) {
  ExpectFloatGradient(
      [](const Output& x) {
        return AddOp("LRN", {x}, {{"depth_radius", 1}});
      },
      {1, 1, 2, 5});
  ExpectFloatGradient(
      [](const Output& x) {
        return AddOp("SparseMatMul", {x, Sin(x)}, {{"transpose_b", true}});
      },
      {3, 4});
  ExpectFloatGradient([](const Output& x) { return AddOp("ApproxTopK", {x}, {{"k", 3}}); }, {2, 6});
}

TEST(SpecialGradients, OfPoolsOfVolumes) {
  const std::vector<int64_t> two = {1, 2, 2, 2, 1};
  const Attrs attrs = {{"ksize", two}, {"strides", two}, {"padding", "VALID"}};
  ExpectFloatGradient([&](const Output& x) { return AddOp("MaxPool3D", {x}, attrs); },
                      {1, 2, 4, 2, 2});
  // With respect to the incoming gradient, which the op forwards or gathers.
  ExpectFloatGradient(
      [&](const Output& dy) {
        const Output x = Range(dy.graph(), 0, 32, 1);
        const Output image = Reshape(Cast(x, DT_FLOAT), {1, 2, 4, 2, 2});
        return AddOp("MaxPool3DGrad", {image, AddOp("MaxPool3D", {image}, attrs), dy}, attrs);
      },
      {1, 1, 2, 1, 2});
  ExpectFloatGradient(
      [&](const Output& dx) {
        const Output x = Range(dx.graph(), 0, 32, 1);
        const Output image = Reshape(Cast(x, DT_FLOAT), {1, 2, 4, 2, 2});
        return AddOp("MaxPool3DGradGrad", {image, AddOp("MaxPool3D", {image}, attrs), dx}, attrs);
      },
      {1, 2, 4, 2, 2});
}

// Rounding passes gradients through; some ops only within their range.
TEST(SpecialGradients, OfRoundedNumbers) {
  Graph g;
  const Output x = Const<float>(g, {4, 1}, {-3, -0.4f, 0.3f, 2.5f});
  const Output weights = Const<float>(g, {4, 1}, {1, 2, 3, 4});
  const Output min = Const(g, -1.f), max = Const(g, 1.f);
  const Attrs given = {{"range_given", true}};
  const Output mins = Const(g, {-1.f}), maxs = Const(g, {1.f});
  Outputs grads;
  for (const Output& y : {AddOp("QuantizeAndDequantizeV2", {x, min, max}, given),
                          AddOp("QuantizeAndDequantizeV3", {x, min, max, Const(g, 8)}),
                          AddOp("QuantizeAndDequantizeV4", {x, min, max}, given),
                          AddOp("FakeQuantWithMinMaxArgs", {x}, {{"min", -1.f}, {"max", 1.f}}),
                          AddOp("FakeQuantWithMinMaxVarsPerChannel", {x, mins, maxs})}) {
    grads.push_back(DenseGradients({y * weights}, {x})[0]);
  }
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> out = Evaluate(g, grads);
  ASSERT_TRUE(out.ok()) << out.status();
  for (int i = 0; i < 2; ++i) EXPECT_THAT((*out)[i].flat<float>(), ElementsAre(1, 2, 3, 4));
  for (int i = 2; i < 5; ++i) EXPECT_THAT((*out)[i].flat<float>(), ElementsAre(0, 2, 3, 0));
}

// Sum of squares of the values read: the gradient is twice the value times the number of reads.
TEST(SpecialGradients, OfVariables) {
  Graph g;
  const Variable v = MakeVariable(g, Tensor::Of<double>({3, 2}, {1, 2, 3, 4, 5, 6}),
                                  {.name = "v", .use_resource = true});
  const Output rows = ResourceGather(v.handle(), Const(g, {2, 0, 2}), DT_DOUBLE);
  const Output elements =
      ResourceGatherNd(v.handle(), Const<int32_t>(g, {2, 2}, {1, 0, 2, 1}), DT_DOUBLE);
  const Output all = ReadVariableOp(v.handle(), DT_DOUBLE);
  Outputs grads;
  for (const Output& read : {rows, elements, all})
    grads.push_back(DenseGradients({Square(read)}, {v})[0]);
  const Operation init = GlobalVariablesInitializer(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  const absl::StatusOr<Tensors> out = Evaluate(g, grads, &resources);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<double>(), ElementsAre(2, 4, 0, 0, 20, 24));
  EXPECT_THAT((*out)[1].flat<double>(), ElementsAre(0, 0, 6, 0, 0, 12));
  EXPECT_THAT((*out)[2].flat<double>(), ElementsAre(2, 4, 6, 8, 10, 12));
}

}  // namespace
}  // namespace weir
