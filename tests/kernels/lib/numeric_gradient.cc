#include "weir/tests/kernels/lib/numeric_gradient.h"

#include <cmath>

#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/evaluate.h"

namespace weir {

namespace {

// In [-1, 1], and not periodic: multiples of the golden ratio modulo 1.
Tensor Irregular(const Shape& shape, double offset) {
  Tensor t(DT_DOUBLE, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const double x = offset + 0.6180339887498949 * static_cast<double>(i + 1);
    t.data<double>()[i] = 2 * (x - std::floor(x)) - 1;
  }
  return t;
}

double ValueOf(const Graph& g, const Output& x, const Tensor& value, const Output& y) {
  const absl::StatusOr<Tensors> out = Evaluate(g, {{x, value}}, {y});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0].data<double>()[0] : std::nan("");
}

void Compare(const Graph& g, const Output& x, Tensor at, const Output& y, const Output& dx,
             double tolerance) {
  const absl::StatusOr<Tensors> out = Evaluate(g, {{x, at}}, {dx});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ((*out)[0].shape(), at.shape());
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < at.num_elements(); ++i) {
    double& element = at.data<double>()[i];
    const double was = element;
    element = was + kStep;
    const double above = ValueOf(g, x, at, y);
    element = was - kStep;
    const double below = ValueOf(g, x, at, y);
    element = was;
    const double expected = (above - below) / (2 * kStep);
    EXPECT_NEAR((*out)[0].data<double>()[i], expected,
                tolerance * std::max(1.0, std::abs(expected)))
        << "element " << i;
  }
}

}  // namespace

Output WeightedSum(const Output& x) {
  return ReduceSum(x * Const(x.graph(), Irregular(x.shape(), 0.25)));
}

void ExpectGradient(const std::function<Output(Output x)>& loss, const Shape& shape, int order,
                    double tolerance) {
  Graph g;
  const Output x = Placeholder(g, DT_DOUBLE, shape);
  const Tensor at = Irregular(shape, 0);
  Output y = loss(x);
  for (int k = 1; k <= order; ++k) {
    SCOPED_TRACE(testing::Message() << "order " << k);
    ASSERT_TRUE(g.status().ok()) << g.status();
    const Outputs dx = DenseGradients({y}, {x});
    ASSERT_TRUE(g.status().ok()) << g.status();
    ASSERT_TRUE(dx.size() == 1 && dx[0].valid());
    Compare(g, x, at, y, dx[0], tolerance);
    y = WeightedSum(dx[0]);
  }
}

}  // namespace weir
