#include <cmath>
#include <limits>

#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/random/random.h"
#include "weir/ops/random/random_internal.h"

// Samples of distributions with parameters. Gradients with respect to the parameters use implicit
// differentiation: the quantile of a sample is held constant. Source: Figurnov et al., "Implicit
// reparameterization gradients", 2018.
namespace weir {

// ---- gradients

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

// ---- op definitions

// The shape given by input 0, followed by the shape of the parameter at input 1.
absl::Status SamplesThenParameter(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape samples, c.InputAsShape(0));
  if (samples.has_rank() && c.input(1).has_rank()) {
    c.set_output(0, samples.Concatenate(c.input(1)));
  }
  return absl::OkStatus();
}

absl::Status StatefulBinomialShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.InputAsShape(2));
  c.set_output(0, shape);
  return absl::OkStatus();
}

// A scalar if all inputs are scalars; otherwise a vector with their length.
absl::Status IndexShuffleShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape index, c.WithRankAtMost(0, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape seed, c.WithRankAtMost(1, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape max_index, c.WithRankAtMost(2, 1));
  if (!index.has_rank() || !seed.has_rank() || !max_index.has_rank()) return absl::OkStatus();
  Shape out;
  if (seed.rank() == 2) out = Shape({seed.dim(0)});
  for (const Shape& s : {index, max_index}) {
    if (s.rank() == 0) continue;
    if (out.rank() == 0) out = Shape({Shape::kUnknown});
    WEIR_ASSIGN_OR_RETURN(out, out.MergeWith(s));
  }
  c.set_output(0, out);
  return absl::OkStatus();
}

absl::Status SobolShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  const auto known = [&](int i) {
    const auto value = KnownInts(c, i);
    return value && value->size() == 1 && value->front() >= 0 ? value->front() : Shape::kUnknown;
  };
  c.set_output(0, Shape({known(1), known(0)}));
  return absl::OkStatus();
}

constexpr char kSizes[] = "{int32, int64}";
constexpr char kSeeds[] = "Tseed: {int32, int64} = DT_INT64";
constexpr char kNumbers[] = "{half, float, double, int32, int64}";

std::string Types(const char* attr, const char* types, const char* fallback = nullptr) {
  return absl::StrCat(attr, ": ", types, fallback == nullptr ? "" : " = ",
                      fallback == nullptr ? "" : fallback);
}

void AddGamma(OpRegistry* ops) {
  ops->Add(OpSpec("RandomGamma")
               .In("shape: S, alpha: T")
               .Out("output: T")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr(Types("S", kSizes))
               .Attr("T: {half, float, double}")
               .Stateful()
               .Has(Effect::kDraws)
               .InferShape(SamplesThenParameter)
               .Gradient(RandomGammaGradient)
               .Doc("Draws samples of the gamma distributions with shape alpha and rate 1, `shape` "
                    "samples of each."));
  ops->Add(OpSpec("RandomGammaGrad")
               .In("alpha: T, sample: T")
               .Out("output: T")
               .Attr("T: {float, double}")
               .InferShape(BroadcastShape)
               .Doc("Computes the derivative of a sample of the gamma distribution with respect to "
                    "alpha, at a fixed quantile."));
  ops->Add(OpSpec("StatelessRandomGammaV2")
               .In("shape: T, seed: Tseed, alpha: dtype")
               .Out("output: dtype")
               .Attr("dtype: {half, float, double}")
               .Attr(Types("T", kSizes))
               .Attr(kSeeds)
               .InferShape(StatelessShape)
               .Gradient(StatelessRandomGammaGradient)
               .Doc("Draws samples of gamma distributions. The result depends only on the seed; "
                    "`shape` ends with alpha's shape."));
  ops->Add(OpSpec("StatelessRandomGammaV3")
               .In("shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype")
               .Out("output: dtype")
               .Attr("dtype: {half, float, double}")
               .Attr(Types("shape_dtype", kSizes, "DT_INT32"))
               .InferShape(KeyCounterShape)
               .Gradient(StatelessRandomGammaGradient)
               .Doc("Draws samples of gamma distributions. The result depends only on a key and a "
                    "counter."));
}

void AddPoisson(OpRegistry* ops) {
  ops->Add(OpSpec("RandomPoisson")
               .In("shape: S, rate: dtype")
               .Out("output: dtype")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr(Types("S", kSizes))
               .Attr("dtype: {half, float, double}")
               .Stateful()
               .Has(Effect::kDraws)
               .Deprecated(25, "RandomPoissonV2 replaces it")
               .InferShape(SamplesThenParameter)
               .Doc("Computes RandomPoissonV2 with rates and samples of the same type."));
  ops->Add(OpSpec("RandomPoissonV2")
               .In("shape: S, rate: R")
               .Out("output: dtype")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr(Types("S", kSizes))
               .Attr(Types("R", kNumbers, "DT_DOUBLE"))
               .Attr(Types("dtype", kNumbers, "DT_INT64"))
               .Stateful()
               .Has(Effect::kDraws)
               .InferShape(SamplesThenParameter)
               .Doc("Draws samples of the Poisson distributions with the given rates, `shape` "
                    "samples of each."));
  ops->Add(OpSpec("StatelessRandomPoisson")
               .In("shape: T, seed: Tseed, lam: Rtype")
               .Out("output: dtype")
               .Attr(Types("Rtype", kNumbers))
               .Attr(Types("dtype", kNumbers))
               .Attr(Types("T", kSizes))
               .Attr(kSeeds)
               .InferShape(StatelessShape)
               .NotDifferentiable()
               .Doc("Draws samples of Poisson distributions. The result depends only on the seed; "
                    "`shape` ends with lam's shape."));
}

void AddBinomial(OpRegistry* ops) {
  ops->Add(OpSpec("StatelessRandomBinomial")
               .In("shape: S, seed: Tseed, counts: T, probs: T")
               .Out("output: dtype")
               .Attr(Types("S", kSizes))
               .Attr(kSeeds)
               .Attr(Types("T", kNumbers, "DT_DOUBLE"))
               .Attr(Types("dtype", kNumbers, "DT_INT64"))
               .InferShape(StatelessShape)
               .NotDifferentiable()
               .Doc("Draws samples of binomial distributions: the number of successes in counts "
                    "trials. The result depends only on the seed; `shape` ends with the broadcast "
                    "shape of counts and probs."));
  ops->Add(OpSpec("StatefulRandomBinomial")
               .In("resource: resource, algorithm: int64, shape: S, counts: T, probs: T")
               .Out("output: dtype")
               .Attr(Types("S", kSizes))
               .Attr(Types("T", kNumbers, "DT_DOUBLE"))
               .Attr(Types("dtype", kNumbers, "DT_INT64"))
               .Stateful()
               .InferShape(StatefulBinomialShape)
               .Doc("Draws samples of binomial distributions, the number of successes in counts "
                    "trials, with the generator in a variable."));
}

void AddBounded(OpRegistry* ops) {
  ops->Add(OpSpec("ParameterizedTruncatedNormal")
               .In("shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype")
               .Out("output: dtype")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr("dtype: {half, bfloat16, float, double}")
               .Attr(Types("T", kSizes))
               .Stateful()
               .Has(Effect::kDraws)
               .InferShape(
                   Ranked("means: <=1, stdevs: <=1, minvals: <=1, maxvals: <=1", ShapeFromInput0))
               .NotDifferentiable()
               .Doc("Draws normally distributed numbers between bounds. The parameters are "
                    "scalars, or vary along the first dimension."));
  ops->Add(OpSpec("StatelessParameterizedTruncatedNormal")
               .In("shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: "
                   "dtype")
               .Out("output: dtype")
               .Attr(Types("S", kSizes))
               .Attr(kSeeds)
               .Attr("dtype: {half, float, double}")
               .InferShape(StatelessShape)
               .Gradient(StatelessTruncatedNormalGradient)
               .Doc("Draws normally distributed numbers between bounds. The result depends only on "
                    "the seed; `shape` ends with the broadcast shape of the parameters."));
  ops->Add(OpSpec("SobolSample")
               .In("dim: int32, num_results: int32, skip: int32")
               .Out("samples: dtype")
               .Attr("dtype: {float, double} = DT_FLOAT")
               .InferShape(SobolShape)
               .NotDifferentiable()
               .Doc("Returns the points of a Sobol sequence of dimension `dim` after the first "
                    "`skip`, [num_results, dim], in the unit cube."));
  ops->Add(OpSpec("RandomIndexShuffle")
               .In("index: dtype, seed: Tseed, max_index: dtype")
               .Out("output: dtype")
               .Attr("rounds: int = 4")
               .Attr("dtype: {int32, uint32, int64, uint64}")
               .Attr("Tseed: {int32, uint32, int64, uint64}")
               .InferShape(IndexShuffleShape)
               .NotDifferentiable()
               .Doc("Returns the position of an index in a permutation of [0, max_index] that the "
                    "seed determines."));
}

}  // namespace

// ---- builders

Output SobolSample(Output dim, Output num_results, Output skip, const SobolSampleOptions& options,
                   absl::string_view name) {
  return AddOp("SobolSample", {dim, num_results, skip}, {{"dtype", options.dtype}}, name);
}

void AddDistributionOps(OpRegistry* ops) {
  AddGamma(ops);
  AddPoisson(ops);
  AddBinomial(ops);
  AddBounded(ops);
}

}  // namespace weir
