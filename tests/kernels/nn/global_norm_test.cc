#include <cmath>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"

// Gradients checked to order 1 by tests: BatchNormWithGlobalNormalization.

// BatchNormWithGlobalNormalization, in a graph of an old producer version.
namespace weir {
namespace {

constexpr int64_t kRows = 6, kDepth = 2;
constexpr double kEpsilon = 0.01;

double Wave(int64_t i, double phase) { return std::sin(0.7 * static_cast<double>(i) + phase); }

// The concatenation of t, m, v, beta, gamma.
std::vector<double> Parameters() {
  std::vector<double> p;
  for (int64_t i = 0; i < kRows * kDepth; ++i) p.push_back(Wave(i, 0));
  for (const double v : {0.3, -0.2, 0.5, 1.2, 0.1, -0.4, 1.5, -0.7}) p.push_back(v);
  return p;
}

// The weighted sum of the results.
double Loss(const std::vector<double>& p, bool scale) {
  const double* rest = p.data() + kRows * kDepth;
  double sum = 0;
  for (int64_t i = 0; i < kRows * kDepth; ++i) {
    const int64_t j = i % kDepth;
    const double gamma = scale ? rest[6 + j] : 1;
    const double y = (p[i] - rest[j]) / std::sqrt(rest[2 + j] + kEpsilon) * gamma + rest[4 + j];
    sum += y * Wave(i, 2);
  }
  return sum;
}

TEST(GlobalNorm, ResultAndGradientsMatchTheFormula) {
  for (const bool scale : {false, true}) {
    Graph g;
    g.versions().producer = 8;
    std::vector<double> p = Parameters();
    Outputs inputs;
    size_t next = 0;
    for (const Shape& shape : {Shape({1, 2, 3, kDepth}), Shape({kDepth}), Shape({kDepth}),
                               Shape({kDepth}), Shape({kDepth})}) {
      const size_t n = shape.num_elements();
      inputs.push_back(
          Const(g, Tensor::Of<double>(shape, absl::MakeConstSpan(p).subspan(next, n))));
      next += n;
    }
    const Output y = AddOp(
        "BatchNormWithGlobalNormalization", {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]},
        {{"variance_epsilon", static_cast<float>(kEpsilon)}, {"scale_after_normalization", scale}});
    ASSERT_TRUE(g.status().ok()) << g.status();
    EXPECT_EQ(y.shape(), Shape({1, 2, 3, kDepth}));
    Tensor weights(DT_DOUBLE, y.shape());
    for (int64_t i = 0; i < kRows * kDepth; ++i) weights.data<double>()[i] = Wave(i, 2);
    const Output weighted = AddOp("Mul", {y, Const(g, weights)});
    Outputs fetches =
        DenseGradients({weighted}, {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]});
    fetches.push_back(weighted);
    ASSERT_TRUE(g.status().ok()) << g.status();
    const absl::StatusOr<Tensors> out = Evaluate(g, fetches);
    ASSERT_TRUE(out.ok()) << out.status();
    double sum = 0;
    for (const double v : (*out)[5].flat<double>()) sum += v;
    EXPECT_NEAR(sum, Loss(p, scale), 1e-6);
    size_t at = 0;
    for (int k = 0; k < 5; ++k) {
      for (const double got : (*out)[k].flat<double>()) {
        const double kept = p[at];
        p[at] = kept + 1e-5;
        const double above = Loss(p, scale);
        p[at] = kept - 1e-5;
        EXPECT_NEAR(got, (above - Loss(p, scale)) / 2e-5, 1e-6) << k << " " << at;
        p[at++] = kept;
      }
    }
  }
}

TEST(GlobalNorm, RejectsMismatchedShapes) {
  const Tensor image = Tensor::Zeros(DT_FLOAT, Shape({1, 1, 2, 3})),
               three = Tensor::Zeros(DT_FLOAT, Shape({3})),
               two = Tensor::Zeros(DT_FLOAT, Shape({2}));
  for (const Tensors& in :
       {Tensors{three, three, three, three, three}, Tensors{image, three, two, three, three}}) {
    Graph g;
    g.versions().producer = 8;
    std::vector<Arg> args;
    std::vector<std::pair<Output, Tensor>> feeds;
    for (const Tensor& t : in) {
      const Output fed = Placeholder(g, DT_FLOAT);
      args.emplace_back(fed);
      feeds.emplace_back(fed, t);
    }
    const Output y = AddOp("BatchNormWithGlobalNormalization", args,
                           {{"variance_epsilon", 0.1f}, {"scale_after_normalization", true}});
    ASSERT_TRUE(g.status().ok()) << g.status();
    EXPECT_EQ(Evaluate(g, feeds, {y}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace weir
