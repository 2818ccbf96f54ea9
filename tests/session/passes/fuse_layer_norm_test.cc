#include <cmath>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

// Fusion of layer norms that are decomposed into small ops: the ops that a traced step runs, and
// that values equal, except for rounding, those of the small ops and those of the formula in
// double.
namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr float kEpsilon = 1e-3f;

// All forms of a layer norm; scale and offset may be absent.
struct Form {
  const char* name;
  Output (*make)(Output x, Output scale, Output offset);
};

Output Scaled(Output y, Output scale, Output offset) {
  if (scale.valid()) y = y * scale;
  return offset.valid() ? y + offset : y;
}
Output Plain(Output x, Output scale, Output offset) {
  const MomentsResult m = Moments(x, {-1}, /*keep_dims=*/true);
  return Scaled((x - m.mean) * Rsqrt(m.variance + kEpsilon), scale, offset);
}
Output AsBatchNorm(Output x, Output scale, Output offset) {
  const MomentsResult m = Moments(x, {-1}, /*keep_dims=*/true);
  return BatchNormalization(x, m.mean, m.variance, offset, scale, kEpsilon);
}
Output ScaleFirst(Output x, Output scale, Output offset) {
  const MomentsResult m = Moments(x, {-1}, /*keep_dims=*/true);
  Output factor = Rsqrt(kEpsilon + m.variance);
  if (scale.valid()) factor = scale * factor;
  const Output y = factor * (x - m.mean);
  return offset.valid() ? offset + y : y;
}
Output OfDifferences(Output x, Output scale, Output offset) {
  const Output d = x - ReduceMean(x, {-1}, true);
  const Output variance = ReduceMean(Square(d), {-1}, true);
  return Scaled(d * Rsqrt(variance + kEpsilon), scale, offset);
}
Output OfProducts(Output x, Output scale, Output offset) {
  const Output d = x - ReduceMean(x, {-1}, true);
  const Output variance = ReduceMean(d * d, {-1}, true);
  return Scaled(d * Rsqrt(variance + kEpsilon), scale, offset);
}
Output Squeezed(Output x, Output scale, Output offset) {
  const MomentsResult m = Moments(x, {-1});
  const Output factor = ExpandDims(Rsqrt(m.variance + kEpsilon), {-1});
  return Scaled((x - ExpandDims(m.mean, {-1})) * factor, scale, offset);
}
constexpr Form kForms[] = {{"plain", Plain},
                           {"batch norm", AsBatchNorm},
                           {"scale first", ScaleFirst},
                           {"differences", OfDifferences},
                           {"products", OfProducts},
                           {"squeezed", Squeezed}};

class FuseLayerNorm : public testing::Test {
 protected:
  Output Input(const Shape& shape, float mean = 0, float spread = 2) {
    return Fed(UniformFloats(shape, random_, mean - spread, mean + spread));
  }
  Output Fed(const Tensor& t) {
    const Output x = Placeholder(g_, t.dtype(), t.shape());
    feeds_.emplace_back(x, t);
    return x;
  }
  const Tensor& ValueOf(const Output& fed) const {
    for (const auto& [x, value] : feeds_) {
      if (x == fed) return value;
    }
    return feeds_.front().second;
  }

  Tensors Run(const Outputs& ys, SessionOptions options, std::vector<NodeTrace>* trace = nullptr) {
    Session session = *Session::Create(g_, std::move(options));
    auto out = session.Run(feeds_, ys, {}, {.trace = trace});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : Tensors(ys.size());
  }
  static double At(const Tensor& t, int64_t i) {
    return t.dtype() == DT_DOUBLE ? t.data<double>()[i] : t.data<float>()[i];
  }
  static void ExpectClose(const Tensor& got, const Tensor& want, double tolerance) {
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      const double g = At(got, i), w = At(want, i);
      if (std::isnan(w)) {
        ASSERT_TRUE(std::isnan(g)) << g << " at " << i;
      } else if (std::isinf(w)) {
        ASSERT_EQ(g, w) << "at " << i;
      } else if (g != w) {
        ASSERT_NEAR(g, w, tolerance * (1 + std::abs(w))) << "at " << i;
      }
    }
  }
  // Returns how often each op runs. Checks that the values equal those without fusion, with any
  // number of threads.
  std::map<std::string, int> OpsFor(const Outputs& ys, double tolerance = 2e-5) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensors want = Run(ys, {.num_threads = 2, .disable = {"fusion"}});
    std::vector<NodeTrace> trace;
    for (const int threads : {1, 3}) {
      trace.clear();
      const Tensors got = Run(ys, {.num_threads = threads}, &trace);
      for (size_t i = 0; i < ys.size(); ++i) ExpectClose(got[i], want[i], tolerance);
    }
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }

  // The formula in double, for rows of n elements.
  static Tensor Reference(const Tensor& x, int64_t n, const Tensor* scale, const Tensor* offset) {
    Tensor y(DT_FLOAT, x.shape());
    for (int64_t row = 0; row < x.num_elements(); row += n) {
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < n; ++i) sum += At(x, row + i);
      const double mean = sum / static_cast<double>(n);
      for (int64_t i = 0; i < n; ++i) squares += std::pow(At(x, row + i) - mean, 2);
      const double deviation = std::sqrt(squares / static_cast<double>(n) + kEpsilon);
      for (int64_t i = 0; i < n; ++i) {
        const double normal = (At(x, row + i) - mean) / deviation;
        y.data<float>()[row + i] =
            static_cast<float>(normal * (scale != nullptr ? At(*scale, i) : 1) +
                               (offset != nullptr ? At(*offset, i) : 0));
      }
    }
    return y;
  }

  Graph g_;
  Feeds feeds_;
  std::mt19937 random_{29};
};

TEST_F(FuseLayerNorm, EveryFormIsOneNode) {
  for (const Form& form : kForms) {
    for (const bool with_scale : {true, false}) {
      for (const bool with_offset : {true, false}) {
        SCOPED_TRACE(testing::Message()
                     << form.name << ", scale " << with_scale << ", offset " << with_offset);
        const Output x = Input({6, 40}), scale = with_scale ? Input({40}) : Output(),
                     offset = with_offset ? Input({40}) : Output();
        const Output y = form.make(x, scale, offset);
        EXPECT_THAT(OpsFor({y}), ElementsAre(Pair("_FusedLayerNorm", 1)));
        ExpectClose(Run({y}, {})[0],
                    Reference(ValueOf(x), 40, with_scale ? &ValueOf(scale) : nullptr,
                              with_offset ? &ValueOf(offset) : nullptr),
                    1e-5);
      }
    }
  }
}

TEST_F(FuseLayerNorm, RowsOfAnyLengthAreNormalized) {
  for (const Form& form : {kForms[0], kForms[1]}) {
    for (const int64_t n : {1, 2, 7, 31, 1000, 1025, 9001}) {
      for (const Shape& shape : {Shape({5, n}), Shape({2, 3, n}), Shape({1, n}), Shape({n})}) {
        SCOPED_TRACE(testing::Message() << form.name << " " << shape.ToString());
        feeds_.clear();
        const Output x = Input(shape), scale = Input({n}), offset = Input({n});
        const Output y = form.make(x, scale, offset);
        EXPECT_THAT(OpsFor({y}, 5e-5), Contains(Pair("_FusedLayerNorm", 1)));
        ExpectClose(Run({y}, {})[0], Reference(ValueOf(x), n, &ValueOf(scale), &ValueOf(offset)),
                    1e-5);
      }
    }
  }
}

TEST_F(FuseLayerNorm, RowsAreDividedOverThreads) {
  for (const int64_t n : {1024, 1025}) {
    feeds_.clear();
    const Output x = Input({2100, n}), scale = Input({n}), offset = Input({n});
    EXPECT_THAT(OpsFor({Plain(x, scale, offset)}), ElementsAre(Pair("_FusedLayerNorm", 1)));
  }
}

TEST_F(FuseLayerNorm, EmptyTensorsStayEmpty) {
  for (const Shape& shape : {Shape({0, 5}), Shape({4, 0}), Shape({0, 0}), Shape({2, 0, 3})}) {
    feeds_.clear();
    const Output x = Input(shape), scale = Input({shape.dim(-1)});
    OpsFor({Plain(x, scale, scale)});
  }
}

TEST_F(FuseLayerNorm, ALargeMeanLosesNoPrecision) {
  const Output x = Input({8, 1000}, 1e4f, 1), scale = Input({1000}), offset = Input({1000});
  const Tensor want = Reference(ValueOf(x), 1000, &ValueOf(scale), &ValueOf(offset));
  for (const Form& form : kForms) {
    const Output y = form.make(x, scale, offset);
    // The small ops round the mean: floats near 10,000 are 1e-3 apart, and the deviation is 0.58.
    EXPECT_THAT(OpsFor({y}, 1e-2), ElementsAre(Pair("_FusedLayerNorm", 1))) << form.name;
    ExpectClose(Run({y}, {})[0], want, 1e-5);
  }
}

TEST_F(FuseLayerNorm, NonFiniteRowsDoNotChange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const int64_t n : {3, 37}) {
    for (const Form& form : {kForms[0], kForms[3]}) {
      feeds_.clear();
      Tensor t = Tensor::Zeros(DT_FLOAT, Shape({7, n}));
      const float values[] = {std::nanf(""), kInf, -kInf, 3, 1e30f, 0};
      for (int64_t row = 0; row < 6; ++row) {
        for (int64_t i = 0; i < n; ++i) t.data<float>()[row * n + i] = static_cast<float>(i % 5);
        t.data<float>()[row * n + n - 1] = values[row];
      }
      const Output y = form.make(Fed(t), Input({n}), Input({n}));
      EXPECT_THAT(OpsFor({y}), ElementsAre(Pair("_FusedLayerNorm", 1))) << form.name;
    }
  }
}

TEST_F(FuseLayerNorm, RowsMayBeSeveralAxes) {
  const Output x = Input({6, 8, 17}), scale = Input({8, 17}), offset = Input({1, 8, 17});
  const MomentsResult m = Moments(x, {-1, 1}, /*keep_dims=*/true);
  const Output normal = (x - m.mean) * Rsqrt(m.variance + kEpsilon);
  EXPECT_THAT(OpsFor({normal * scale + offset}), ElementsAre(Pair("_FusedLayerNorm", 1)));
  ExpectClose(Run({normal * scale + offset}, {})[0],
              Reference(ValueOf(x), 8 * 17, &ValueOf(scale), &ValueOf(offset)), 1e-5);
}

TEST_F(FuseLayerNorm, OpsAfterTheNormAreNotFused) {
  const Output x = Input({6, 40}), scale = Input({40}), column = Input({6, 1});
  EXPECT_THAT(OpsFor({Plain(x, scale, scale) * 2.f}),
              ElementsAre(Pair("Mul", 1), Pair("_FusedLayerNorm", 1)));
  EXPECT_THAT(OpsFor({Plain(x, scale, {}) + x}),
              ElementsAre(Pair("AddV2", 1), Pair("_FusedLayerNorm", 1)));
  EXPECT_THAT(OpsFor({Plain(x, column, {})}),
              ElementsAre(Pair("Mul", 1), Pair("_FusedLayerNorm", 1)));
  EXPECT_THAT(OpsFor({Plain(x, 1.f + Tanh(scale), {})}), Contains(Key("_FusedLayerNorm")));
  EXPECT_THAT(OpsFor({Plain(Plain(x, scale, {}), {}, scale)}),
              ElementsAre(Pair("_FusedLayerNorm", 2)));
}

TEST_F(FuseLayerNorm, ValuesWithOtherUsersAreKept) {
  const Output x = Input({6, 40}), scale = Input({40});
  const auto expect_not_fused = [&](const Outputs& ys, const char* why) {
    EXPECT_THAT(OpsFor(ys), AllOf(Contains(Key("Mean")), Not(Contains(Key("_FusedLayerNorm")))))
        << why;
  };
  const MomentsResult m = Moments(x, {-1}, /*keep_dims=*/true);
  const Output factor = Rsqrt(m.variance + kEpsilon), normal = (x - m.mean) * factor;
  const Output y = normal * scale + scale;
  expect_not_fused({y, m.mean}, "the mean is fetched");
  expect_not_fused({y, m.variance}, "the variance is fetched");
  expect_not_fused({y, factor}, "the factor is fetched");
  expect_not_fused({y, Square(m.variance)}, "the variance has another user");
  const Output of_mean = ReduceSum(Tanh(m.mean), {0});
  const Output made = Reshape(Tile(of_mean, {40}), {40});
  expect_not_fused({(factor * made) * (x - m.mean)}, "the scale depends on the mean");
  EXPECT_THAT(OpsFor({y, normal}), Contains(Pair("_FusedLayerNorm", 1)))
      << "the fetched value is the result";
  {
    const ControlDependencies after(g_, {m.mean});
    const Output waits = CheckNumerics(scale, "scale");
    expect_not_fused({y, waits}, "a control edge leaves the mean");
  }
  Output late;
  {
    const ControlDependencies after(g_, {CheckNumerics(scale, "scale")});
    late = ReduceMean(x, {-1}, true);
  }
  const Output d = x - late;
  expect_not_fused({d * Rsqrt(ReduceMean(Square(d), {-1}, true) + kEpsilon)},
                   "the mean has a control input");
}

TEST_F(FuseLayerNorm, MeansAndFactorsAreAdditionalResults) {
  for (const int64_t rows : {1, 6, 700}) {
    const Output x = Input({rows, 40}, 3), scale = Input({40}), offset = Input({40});
    const MomentsResult m = Moments(x, {-1}, /*keep_dims=*/true);
    const Output factor = Rsqrt(m.variance + kEpsilon), d = x - m.mean, normal = d * factor;
    const Output y = normal * scale + offset;
    // Together with other nodes in between, which are computed from the results.
    const std::vector<Outputs> others = {{Tanh(m.mean)},
                                         {ReduceSum(factor), Square(m.mean)},
                                         {Tanh(d)},
                                         {Cumsum(normal, 1), Tanh(factor) * m.mean},
                                         {Tanh(normal * scale), -d}};
    for (Outputs fetches : others) {
      fetches.push_back(y);
      EXPECT_THAT(OpsFor(fetches),
                  AllOf(Contains(Pair("_FusedLayerNorm", 1)), Not(Contains(Key("Mean")))));
    }
    feeds_.clear();
  }
  // Over several axes.
  const Output x = Input({5, 4, 6, 3}), mean = ReduceMean(x, {2, 3}, true), d = x - mean;
  const Output factor = Rsqrt(ReduceMean(Square(d), {2, 3}, true) + kEpsilon);
  EXPECT_THAT(OpsFor({d * factor, Tanh(mean), -factor}), Contains(Pair("_FusedLayerNorm", 1)));
}

// Forms whose means have the rank of x.
TEST_F(FuseLayerNorm, TrainingStepsAreFused) {
  for (const Form& form : kForms) {
    for (const Shape& shape : {Shape({6, 40}), Shape({5, 30, 64})}) {
      feeds_.clear();
      const int64_t n = shape.dim(-1);
      const Output x = Input(shape), scale = Input({n}), offset = Input({n});
      const Output loss = ReduceSum(Tanh(form.make(x * 2.f, scale, offset)) * Input(shape));
      Outputs fetches = DenseGradients({loss}, {x, scale, offset});
      fetches.push_back(loss);
      const auto ops = OpsFor(fetches, 2e-4);
      const bool fits = form.make != Squeezed;
      EXPECT_EQ(ops.count("_FusedLayerNorm"), fits ? 1u : 0u) << form.name;
      ASSERT_FALSE(HasFailure()) << form.name;
    }
  }
}

TEST_F(FuseLayerNorm, OtherFormulasAreNotFused) {
  const Output x = Input({6, 6, 6}), other = Input({6, 6, 6}), column = Input({6, 1});
  const auto expect_not_fused = [&](const Output& y, const char* why) {
    EXPECT_THAT(OpsFor({y}), Not(Contains(Key("_FusedLayerNorm")))) << why;
  };
  const auto normal = [](const Output& of, const Output& mean, const Output& variance) {
    return (of - mean) * Rsqrt(variance + kEpsilon);
  };
  MomentsResult m = Moments(x, {1}, true);
  expect_not_fused(normal(x, m.mean, m.variance), "not the last axis");
  m = Moments(x, {0, 2}, true);
  expect_not_fused(normal(x, m.mean, m.variance), "not the last axes");
  m = Moments(x, {2});
  expect_not_fused(normal(x, m.mean, m.variance), "the mean has the wrong axes");
  m = Moments(x, {2}, true);
  expect_not_fused(normal(other, m.mean, m.variance), "statistics of another tensor");
  expect_not_fused(normal(x, Moments(other, {2}, true).mean, m.variance),
                   "the mean of another tensor");
  expect_not_fused((x + m.mean) * Rsqrt(m.variance + kEpsilon), "a sum");
  expect_not_fused((x - m.mean) * Rsqrt(m.variance + Input({})), "epsilon is not known");
  expect_not_fused((x - m.mean) * Rsqrt(m.variance + Input({6})), "epsilon is a vector");
  expect_not_fused(
      (x - m.mean) * Rsqrt(ReduceSum(SquaredDifference(x, m.mean), {2}, true) + kEpsilon),
      "a sum of squares");
  expect_not_fused(AsBatchNorm(x, column, {}), "the scale has the wrong axis");
  const Output row = Input({1, 300000});
  expect_not_fused(Plain(row, {}, {}), "a row that is too long");
  const Output wide = Cast(x, DT_DOUBLE);
  m = Moments(wide, {2}, true);
  expect_not_fused((wide - m.mean) * Rsqrt(m.variance + 1e-3f), "doubles");
}

TEST_F(FuseLayerNorm, GradientsAreTheSame) {
  for (const Form& form : kForms) {
    feeds_.clear();
    const Output x = Input({6, 40}), scale = Input({40}), offset = Input({40});
    const Output loss = ReduceSum(Tanh(form.make(x, scale, offset)) * Input({6, 40}));
    Outputs fetches = DenseGradients({loss}, {x, scale, offset});
    fetches.push_back(loss);
    OpsFor(fetches, 1e-4);
    ASSERT_FALSE(HasFailure()) << form.name;
  }
}

TEST_F(FuseLayerNorm, BranchesAndLoopsReturnTheSame) {
  const Output x = Input({6, 40}), scale = Input({40}), p = Placeholder(g_, DT_BOOL, {});
  const auto taken = [&] { return Outputs{Plain(x, scale, scale)}; };
  const auto other = [&] { return Outputs{-AsBatchNorm(x, scale, {})}; };
  const Output y = Cond(p, taken, other)[0];
  for (const bool value : {true, false}) {
    feeds_.emplace_back(p, Tensor::Scalar(value));
    OpsFor({y});
    feeds_.pop_back();
  }
  const Outputs r = WhileLoop([](const Outputs& v) { return v[0] < 5; },
                              [&](const Outputs& v) {
                                return Outputs{v[0] + 1, Plain(v[1] + x, scale, x)};
                              },
                              {Const(g_, 0), x});
  OpsFor({r[1]}, 1e-4);
}

TEST_F(FuseLayerNorm, TermsThatCancelAreNotFused) {
  const Output x = Input({3, 8}), scale = Input({8}), large = Const(g_, 1e9f);
  const Output huge = BroadcastTo(large, Const(g_, {8}));
  const Output y = Plain(x, scale, huge) - huge;
  EXPECT_EQ(OpsFor({y}, 1e-4)["_FusedLayerNorm"], 1);  // the norm itself
  EXPECT_THAT(Run({y}, {})[0].flat<float>(), ::testing::Each(::testing::Eq(0)));
}

TEST_F(FuseLayerNorm, MalformedNodesAreErrors) {
  const Output x = Input({3, 4}), scale = Input({4}), shorter = Input({3});
  const auto refused = [&](const Outputs& scales, const Outputs& offsets, int64_t axes,
                           int64_t statistics = 0) {
    NodeBuilder builder(g_, "_FusedLayerNorm");
    builder.Input(x).InputList(scales).InputList(offsets);
    builder.Attr("T", DT_FLOAT).Attr("axes", axes).Attr("epsilon", kEpsilon);
    builder.Attr("num_statistics", statistics);
    const Output y = builder.BuildOutput();
    if (!g_.TakeStatus().ok()) return true;
    Session session = *Session::Create(g_, {.num_threads = 1});
    return !session.Run(feeds_, {y}).ok();
  };
  EXPECT_FALSE(refused({scale}, {scale}, 1));
  EXPECT_FALSE(refused({}, {}, 2));
  EXPECT_TRUE(refused({shorter}, {}, 1));
  EXPECT_TRUE(refused({}, {shorter}, 1));
  EXPECT_TRUE(refused({scale}, {scale}, 2));
  EXPECT_TRUE(refused({scale, scale}, {}, 1));
  EXPECT_TRUE(refused({}, {scale, scale}, 1));
  EXPECT_TRUE(refused({}, {}, 3));
  EXPECT_TRUE(refused({}, {}, 0));
  EXPECT_TRUE(refused({}, {}, int64_t{1} << 40));
  EXPECT_FALSE(refused({scale}, {}, 1, 2));
  EXPECT_TRUE(refused({scale}, {}, 1, 1));
  EXPECT_TRUE(refused({scale}, {}, 1, 3));
  EXPECT_TRUE(refused({}, {}, 3, 2));
}

}  // namespace
}  // namespace weir
