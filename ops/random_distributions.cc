#include "weir/core/shape_context.h"
#include "weir/ops/random_internal.h"
#include "weir/ops/ranked_internal.h"
#include "weir/ops/registry.h"

// Definitions of random ops whose distribution has parameters.
namespace weir {

namespace {

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

void AddDistributionOps(OpRegistry* ops) {
  AddGamma(ops);
  AddPoisson(ops);
  AddBinomial(ops);
  AddBounded(ops);
}

}  // namespace weir
