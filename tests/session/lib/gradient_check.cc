#include "weir/tests/session/lib/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir {

namespace {

double SumWith(Session& session, Feeds feeds, const Output& y, size_t i, int64_t k, double change) {
  feeds[i].second = feeds[i].second.DeepCopy();
  feeds[i].second.flat<double>()[k] += change;
  const auto out = session.Run(feeds, {y});
  EXPECT_TRUE(out.ok()) << out.status();
  double sum = 0;
  if (out.ok()) {
    for (const double v : (*out)[0].flat<double>()) sum += v;
  }
  return sum;
}

}  // namespace

void GradientCheckTest::Compare(const Outputs& xs, const Feeds& feeds, const Output& y,
                                const Outputs& grads) {
  Session session = *Session::Create(g_, {.num_threads = 2});
  for (size_t i = 0; i < xs.size(); ++i) {
    const Shape& shape = feeds[i].second.shape();
    Tensor grad = Tensor::Zeros(DT_DOUBLE, shape);
    if (grads[i].valid()) {
      const auto out = session.Run(feeds, {grads[i]});
      ASSERT_TRUE(out.ok()) << out.status();
      grad = (*out)[0];
    }
    ASSERT_EQ(grad.shape(), shape);
    for (int64_t k = 0; k < shape.num_elements(); ++k) {
      constexpr double kStep = 1e-5;
      const double slope =
          (SumWith(session, feeds, y, i, k, kStep) - SumWith(session, feeds, y, i, k, -kStep)) /
          (2 * kStep);
      EXPECT_NEAR(grad.flat<double>()[k], slope, 1e-6 * std::max(1., std::abs(slope)))
          << "x " << i << ", element " << k;
    }
  }
}

void GradientCheckTest::Check(const std::vector<Shape>& shapes, const Program& program,
                              const CheckOptions& options) {
  Outputs xs;
  Feeds feeds;
  for (const Shape& shape : shapes) {
    Shape known = shape;
    for (int d = 0; d < known.rank() && !options.static_shapes; ++d) known.set_dim(d, -1);
    xs.push_back(Placeholder(g_, DT_DOUBLE, known));
    Tensor value(DT_DOUBLE, shape);
    for (double& v : value.flat<double>()) v = next_ = 0.9 - 0.7 * next_;
    feeds.push_back({xs.back(), value});
  }
  Output y = program(xs);
  for (int order = 1; order <= options.order; ++order) {
    SCOPED_TRACE(testing::Message() << "order " << order);
    ASSERT_TRUE(g_.status().ok()) << g_.status();
    const Outputs grads = DenseGradients({y}, xs);
    ASSERT_TRUE(g_.status().ok()) << g_.status();
    for (size_t i = 0; i < xs.size(); ++i) ASSERT_TRUE(grads[i].valid() || order > 1) << i;
    Compare(xs, feeds, y, grads);
    if (order == options.order) return;
    Outputs sums;
    for (size_t i = 0; i < grads.size(); ++i) {
      Tensor weights(DT_DOUBLE, shapes[i]);
      for (double& w : weights.flat<double>()) w = next_ = 0.9 - 0.7 * next_;
      sums.push_back(ReduceSum(grads[i] * Const(g_, weights)));
    }
    y = AddN(sums);
  }
}

}  // namespace weir
