#include <cmath>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

// Fusion of a softmax, or its logarithm, that is decomposed into small ops.
namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

Output DecomposedSoftmax(const Output& x, int64_t axis = -1) {
  const Output e = Exp(x - ReduceMax(x, {axis}, true));
  return e / ReduceSum(e, {axis}, true);
}

Output DecomposedLogSoftmax(const Output& x, int64_t axis = -1) {
  const Output d = x - ReduceMax(x, {axis}, true);
  return d - Log(ReduceSum(Exp(d), {axis}, true));
}

class FuseSoftmax : public testing::Test {
 protected:
  Output Input(const Shape& shape) { return Fed(UniformFloats(shape, random_, -9, 9)); }
  Output Fed(const Tensor& t) {
    const Output x = Placeholder(g_, DT_FLOAT, t.shape());
    feeds_.emplace_back(x, t);
    return x;
  }
  Tensors Run(const Outputs& ys, SessionOptions options, std::vector<NodeTrace>* trace = nullptr) {
    Session session = *Session::Create(g_, std::move(options));
    auto out = session.Run(feeds_, ys, {}, {.trace = trace});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : Tensors(ys.size());
  }
  // Returns how often each op runs. Checks that the values equal those without fusion.
  std::map<std::string, int> OpsFor(const Outputs& ys, double rounding = 2e-6) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensors want = Run(ys, {.num_threads = 2, .disable = {"fusion"}});
    std::vector<NodeTrace> trace;
    const Tensors got = Run(ys, {.num_threads = 2}, &trace);
    for (size_t k = 0; k < ys.size(); ++k) {
      EXPECT_EQ(got[k].shape(), want[k].shape());
      for (int64_t i = 0; i < want[k].num_elements(); ++i) {
        const float g = got[k].data<float>()[i], w = want[k].data<float>()[i];
        if (std::isnan(w)) {
          EXPECT_TRUE(std::isnan(g)) << g << " at " << i;
        } else if (std::isinf(w)) {
          EXPECT_EQ(g, w) << "at " << i;
        } else {
          EXPECT_NEAR(g, w, rounding * (1 + std::abs(w))) << "at " << i;
        }
      }
    }
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }

  Graph g_;
  Feeds feeds_;
  std::mt19937 random_{31};
};

TEST_F(FuseSoftmax, RowsOfAnyLengthAreOneNode) {
  for (const int64_t n : {1, 2, 7, 31, 1000, 1025}) {
    for (const Shape& shape : {Shape({5, n}), Shape({2, 3, n}), Shape({1, n}), Shape({n})}) {
      SCOPED_TRACE(shape.ToString());
      feeds_.clear();
      EXPECT_THAT(OpsFor({DecomposedSoftmax(Input(shape))}), ElementsAre(Pair("Softmax", 1)));
      feeds_.clear();
      EXPECT_THAT(OpsFor({DecomposedLogSoftmax(Input(shape))}), ElementsAre(Pair("LogSoftmax", 1)));
    }
  }
}

TEST_F(FuseSoftmax, ReshapesAndStopGradientAreAllowed) {
  const Output x = Input({5, 40});
  const Output e = Exp(x - StopGradient(ExpandDims(ReduceMax(x, {1}), {-1})));
  EXPECT_THAT(OpsFor({e / ExpandDims(ReduceSum(e, {1}), {1})}), ElementsAre(Pair("Softmax", 1)));
  const Output d = x - ExpandDims(ReduceMax(x, {1}), {1}), sum = ReduceSum(Exp(d), {1});
  EXPECT_THAT(OpsFor({d - ExpandDims(Log(sum), {1})}), ElementsAre(Pair("LogSoftmax", 1)));
  EXPECT_THAT(OpsFor({d - Log(ExpandDims(sum, {1}))}), ElementsAre(Pair("LogSoftmax", 1)));
}

TEST_F(FuseSoftmax, ACrossEntropyIsTwoNodes) {
  const Output labels = Input({60, 40}), x = Input({60, 40});
  EXPECT_THAT(OpsFor({-ReduceSum(labels * DecomposedLogSoftmax(x), {1})}),
              AllOf(Contains(Pair("LogSoftmax", 1)), Contains(Pair("_FusedReduction", 1)),
                    Not(Contains(Key("Exp")))));
}

TEST_F(FuseSoftmax, NonFiniteRowsDoNotChange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Tensor t = Tensor::Zeros(DT_FLOAT, Shape({5, 37}));
  const float values[] = {std::nanf(""), kInf, -kInf, 3e38f, 0};
  for (int64_t row = 0; row < 5; ++row) t.data<float>()[row * 37 + 36] = values[row];
  for (int64_t i = 0; i < 37; ++i) t.data<float>()[2 * 37 + i] = -kInf;
  EXPECT_THAT(OpsFor({DecomposedSoftmax(Fed(t))}), ElementsAre(Pair("Softmax", 1)));
  feeds_.clear();
  EXPECT_THAT(OpsFor({DecomposedLogSoftmax(Fed(t))}), ElementsAre(Pair("LogSoftmax", 1)));
}

// Gradients use the intermediate values: these become results of one node.
TEST_F(FuseSoftmax, GradientsUseTheParts) {
  for (const Shape& shape : {Shape({60, 40}), Shape({3, 7, 45}), Shape({50, 1})}) {
    SCOPED_TRACE(shape.ToString());
    for (const auto& softmax : {DecomposedSoftmax, DecomposedLogSoftmax}) {
      feeds_.clear();
      const Output x = Input(shape), labels = Input(shape);
      const Output loss = -ReduceSum(labels * softmax(x, -1), {-1});
      const auto ops = OpsFor({loss, DenseGradients({loss}, {x})[0]}, /*rounding=*/2e-5);
      EXPECT_THAT(ops, Contains(Pair("_SoftmaxParts", 1)));
      EXPECT_THAT(ops, Not(Contains(Key(AnyOf("Exp", "Max", "Sub", "Tile")))));
    }
  }
}

TEST_F(FuseSoftmax, TheLogarithmOfASumOfExponentials) {
  const auto log_sum = [&](const Output& x, bool keep) {
    const Output max = ReduceMax(x, {1}, true);
    const Output shift = StopGradient(SelectV2(IsFinite(max), max, ZerosLike(max)));
    const Output sum = ReduceSum(Exp(x - shift), {1}, keep);
    return Log(sum) + Reshape(shift, keep ? Ints{-1, 1} : Ints{-1});
  };
  Tensor t = UniformFloats({7, 53}, random_, -9, 9);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float values[] = {std::nanf(""), kInf, -kInf, 3e38f};
  for (int64_t row = 0; row < 4; ++row) t.data<float>()[row * 53 + 50] = values[row];
  for (int64_t i = 0; i < 53; ++i) t.data<float>()[4 * 53 + i] = -kInf;
  for (const bool keep : {false, true}) {
    feeds_.clear();
    const Output x = Fed(t), y = log_sum(x, keep);
    EXPECT_THAT(OpsFor({y}), AllOf(Contains(Pair("_SoftmaxParts", 1)),
                                   Not(Contains(Key(AnyOf("Exp", "Max", "IsFinite", "Sub"))))));
    EXPECT_THAT(OpsFor({y, DenseGradients({y}, {x})[0]}),
                AllOf(Contains(Pair("_SoftmaxParts", 1)), Not(Contains(Key("Exp")))));
  }
}

// Infinities and NaNs in the parts themselves.
TEST_F(FuseSoftmax, PartsOfNonFiniteRows) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Tensor t = Tensor::Zeros(DT_FLOAT, Shape({5, 37}));
  const float values[] = {std::nanf(""), kInf, -kInf, 3e38f, 0};
  for (int64_t row = 0; row < 5; ++row) t.data<float>()[row * 37 + 36] = values[row];
  for (int64_t i = 0; i < 37; ++i) t.data<float>()[2 * 37 + i] = -kInf;
  const Output x = Fed(t), max = ReduceMax(x, {1}, true), d = x - max, e = Exp(d);
  const Output sum = ReduceSum(e, {1}, true);
  EXPECT_THAT(OpsFor({max * 1.5f, -e, -d, -sum}), Contains(Pair("_SoftmaxParts", 1)));
}

TEST_F(FuseSoftmax, FetchedPartsAreKept) {
  const Output x = Input({6, 6}), max = ReduceMax(x, {1}, true), e = Exp(x - max);
  const Output sum = ReduceSum(e, {1}, true);
  const auto parts = [&](const Outputs& ys) { return OpsFor(ys).count("_SoftmaxParts"); };
  EXPECT_EQ(parts({-sum, -e, -max}), 1u);
  EXPECT_EQ(parts({sum, -e}), 1u);
  EXPECT_EQ(parts({-sum, e}), 0u);
  EXPECT_EQ(parts({-sum, max}), 0u);
  EXPECT_EQ(parts({-ReduceSum(e, {0}, true), -e}), 0u) << "another axis";
  EXPECT_EQ(parts({-ReduceSum(Exp(x - ReduceMax(x, {0}, true)), {1})}), 0u) << "another axis";
}

// As in attention in both directions: the shift of the one is the argument of the other.
TEST_F(FuseSoftmax, AMaximumOfAMaximum) {
  const Output x = Input({60, 40}), max = ReduceMax(x, {1}), e = Exp(x - ExpandDims(max, {1}));
  const Output sum = ReduceSum(e, {1}, true);
  OpsFor({DecomposedSoftmax(max), -e, e * (Const(g_, 1.f) / sum)});
  OpsFor({DecomposedLogSoftmax(e), -e, e * (Const(g_, 1.f) / sum)});
  OpsFor({-DecomposedSoftmax(e) * Exp(e - ReduceMax(e, {1}, true)), -sum});
}

TEST_F(FuseSoftmax, NodesWithControlInputsAreNotFused) {
  const Output x = Input({6, 8}), checked = CheckNumerics(Log(x - 10.f), "a logarithm");
  Output d;
  {
    const ControlDependencies after(g_, {checked});
    d = x - ReduceMax(x, {1}, true);
  }
  const Output y = -Log(ReduceSum(Exp(d), {1}));
  Session session = *Session::Create(g_, {.num_threads = 1});
  EXPECT_THAT(std::string(session.Run(feeds_, {y}).status().message()),
              testing::HasSubstr("a logarithm"));
}

TEST_F(FuseSoftmax, EmptyTensorsStayEmpty) {
  OpsFor({DecomposedSoftmax(Input({0, 5}))});
  OpsFor({DecomposedSoftmax(Input({4, 0}))});
  OpsFor({DecomposedLogSoftmax(Input({0, 5}))});
}

TEST_F(FuseSoftmax, OtherFormulasAreNotFused) {
  const Output x = Input({6, 6}), other = Input({6, 6});
  const auto expect_not_fused = [&](const Outputs& ys, const char* why) {
    EXPECT_THAT(OpsFor(ys), Not(Contains(Key(AnyOf("Softmax", "LogSoftmax"))))) << why;
  };
  expect_not_fused({DecomposedSoftmax(x, 0)}, "another axis");
  const Output e = Exp(x - ReduceMax(x, {1}, true)), sum = ReduceSum(e, {1}, true);
  expect_not_fused({e / sum, e}, "the exponentials are fetched");
  expect_not_fused({e / sum, Log(sum)}, "the sum has another user");
  expect_not_fused({e / ReduceSum(e, {1})}, "the sum has the wrong axis");
  expect_not_fused({e / ReduceSum(Exp(x), {1}, true)}, "the sum of other exponentials");
  expect_not_fused({Exp(x) / ReduceSum(Exp(x), {1}, true)}, "no maximum");
  expect_not_fused({DenseGradients({ReduceSum(DecomposedSoftmax(x) * other)}, {x})[0]},
                   "gradients use intermediate values");
  const Output shifted = Exp(x - ReduceMax(other, {1}, true));
  expect_not_fused({shifted / ReduceSum(shifted, {1}, true)}, "the maximum of another tensor");
  expect_not_fused({DecomposedLogSoftmax(x, 0)}, "another axis");
  const Output d = x - ReduceMax(x, {1}, true);
  expect_not_fused({d - Log(ReduceSum(Exp(x), {1}, true))}, "the sum of other exponentials");
  expect_not_fused({d - Log(ReduceSum(d, {1}, true))}, "no exponentials");
  expect_not_fused({x - Log(ReduceSum(Exp(d), {1}, true))}, "not the argument of the exponentials");
  expect_not_fused({d - Log(ReduceSum(Exp(d), {1}))}, "the logarithms have the wrong axis");
  expect_not_fused({DenseGradients({ReduceSum(DecomposedLogSoftmax(x) * other)}, {x})[0]},
                   "gradients use intermediate values");
}

}  // namespace
}  // namespace weir
