#include <cmath>
#include <limits>

#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"
#include "weir/ops/math_internal.h"
#include "weir/ops/random_internal.h"

// Gradients of samples with respect to the parameters of their distribution, by implicit
// differentiation: the quantile of a sample is held constant. Source: Figurnov et al., "Implicit
// reparameterization gradients", 2018.
namespace weir {

namespace {

// Returns a vector of `count` ones.
Output OnesVector(Graph& g, Output count) {
  const NameScope scope(g, "ones");
  const Output dims = Stack({count}, 0, "packed");
  return AddOp("Fill", {dims, Const(g, int32_t{1}, "Const")}, {}, scope.name());
}

// Returns the gradient with respect to alpha, whose dimensions are the last dimensions of the
// samples. `extra` is the number of dimensions before them.
Output GammaGradient(Output alpha, Output sample, Output dy, Output extra) {
  Graph& g = alpha.graph();
  const Output ones = OnesVector(g, extra);
  const Output shape = Concat({ones, ShapeVector(alpha)}, 0);
  const Output derivative = AddOp("RandomGammaGrad", {Reshape(alpha, shape), sample});
  const Output product = MulOp(dy, derivative);
  return ReduceSum(product, RangeOp(g, 0, extra, 1));
}

Output FirstElement(Output vector) { return StridedSlice(vector, {Index(0)}); }

// Returns the cumulative distribution function of the normal distribution.
Output NormalCdf(Output x) {
  const Output root = ConstLike(x, 0.5 * std::sqrt(2.0), "half_sqrt_2");
  const Output w = MulOp(x, root);
  const Output z = Abs(w);
  const Output middle = Less(z, root);
  const Output near = 1.0 + Erf(w);
  const Output above = Greater(w, 0.0);
  const Output right = 2.0 - Erfc(z);
  const Output far = Select(above, right, Erfc(z));
  return 0.5 * Select(middle, near, far);
}

// Returns exp((sample^2 - bound^2) / 2 + log_share): the derivative of a sample with respect to a
// bound.
Output BoundDerivative(Output sample, Output bound, Output log_share(Output), Output share) {
  const Output a = Pow(sample, 2.0, "pow"), b = Pow(bound, 2.0, "pow");
  const Output half = 0.5 * SubOp(a, b);
  return Exp(AddV2Op(half, log_share(share)));
}

Output LogOf(Output x) { return Log(x); }
Output LogOfRest(Output x) { return Log1p(-x); }

double SmallestNormal(DataType type) {
  if (type == DT_HALF) return 6.103515625e-05;
  return type == DT_DOUBLE ? std::numeric_limits<double>::min()
                           : static_cast<double>(std::numeric_limits<float>::min());
}
double Epsilon(DataType type) {
  if (type == DT_HALF) return 0.0009765625;
  return type == DT_DOUBLE ? std::numeric_limits<double>::epsilon()
                           : static_cast<double>(std::numeric_limits<float>::epsilon());
}

}  // namespace

Grads RandomGammaGradient(GradContext& g) {
  const Output dy = g.dy();
  const ControlDependencies after(g.graph(), {dy.node});
  const Output extra = FirstElement(ShapeVector(g.x(0)));
  return {Grad(), GammaGradient(g.x(1), g.y(), dy, extra)};
}

Grads StatelessRandomGammaGradient(GradContext& g) {
  const Output dy = g.dy();
  const int last = g.num_inputs() - 1;
  const Output alpha = g.x(last);
  const ControlDependencies after(g.graph(), {dy.node});
  const Output rank = FirstElement(ShapeVector(g.x(0)));
  const Output extra = SubOp(rank, Rank(alpha));
  Grads grads(last);
  grads.emplace_back(GammaGradient(alpha, g.y(), dy, extra));
  return grads;
}

Grads StatelessTruncatedNormalGradient(GradContext& g) {
  const Output dy = g.dy(), mean = g.x(2), stddev = g.x(3), min = g.x(4), max = g.x(5);
  const ControlDependencies after(g.graph(), {dy.node});
  const Output low = SubOp(min, mean) / stddev, high = SubOp(max, mean) / stddev;
  const Output sample = SubOp(g.y(), mean) / stddev;
  const Output sample_cdf = NormalCdf(sample), low_cdf = NormalCdf(low);
  const Output covered = SubOp(sample_cdf, low_cdf);
  const Output high_cdf = NormalCdf(high), low_cdf_again = NormalCdf(low);
  const Output ratio = covered / SubOp(high_cdf, low_cdf_again);
  const Output share = ClipByValue(ratio, SmallestNormal(mean.dtype()), 1 - Epsilon(mean.dtype()));
  const Output d_max = BoundDerivative(sample, high, LogOf, share);
  const Output d_min = BoundDerivative(sample, low, LogOfRest, share);
  const Output derivatives[] = {OnesOf(sample), sample, d_min, d_max};
  Output shapes[4];
  for (int k = 0; k < 4; ++k) shapes[k] = ShapeVector(g.x(2 + k));
  Output broadcast = BroadcastDynamicShape(shapes[0], shapes[1]);
  broadcast = BroadcastDynamicShape(shapes[2], broadcast);
  broadcast = BroadcastDynamicShape(shapes[3], broadcast);
  const Output size = Size(g.x(0)), batch_size = Size(broadcast);
  const Output extra = RangeOp(g.graph(), 0, SubOp(size, batch_size), 1);
  Output sums[4], axes[4];
  for (int k = 0; k < 4; ++k) sums[k] = ReduceSum(MulOp(dy, derivatives[k]), extra);
  for (int k = 0; k < 4; ++k) axes[k] = BroadcastGradientArgs(broadcast, shapes[k]).r1;
  Grads grads(2);
  for (int k = 0; k < 4; ++k) {
    const Output sum = ReduceSum(sums[k], axes[k], /*keep_dims=*/true);
    grads.emplace_back(Reshape(sum, shapes[k]));
  }
  return grads;
}

}  // namespace weir
