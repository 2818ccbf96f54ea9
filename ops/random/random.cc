#include "weir/ops/random/random.h"

#include <cmath>

#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/random/random_internal.h"

namespace weir {

namespace {

Output StatefulNode(Graph& g, absl::string_view op, Output shape, DataType dtype,
                    std::optional<int64_t> seed, absl::string_view name = {}) {
  const auto [seed1, seed2] = g.NextSeed(seed);
  return AddOp(op, {shape}, {{"dtype", dtype}, {"seed", seed1}, {"seed2", seed2}}, name);
}

// Scales and shifts a standard sample inside the scope `scope`: nodes name/mul and name.
Output ScaleAndShift(Output sample, Output scale, Output shift, const NameScope& scope) {
  return AddOp("AddV2", {AddOp("Mul", {sample, scale}, {}, "mul"), shift}, {}, scope.name());
}

// Returns a bound of a uniform distribution. The options hold it as a double; for integer types it
// is a whole number.
Output Bound(Graph& g, DataType dtype, double value, absl::string_view name) {
  const bool whole = value == std::floor(value) && std::abs(value) < 0x1p63;
  if (IsInteger(dtype) && whole) return ConstOf(g, dtype, static_cast<int64_t>(value), name);
  return ConstOf(g, dtype, value, name);
}

Output NormalLike(Graph& g, absl::string_view op, const Ints& shape, const RandomNormalOptions& o,
                  absl::string_view name) {
  const NameScope scope(g, name);
  const Output dims = shape.In(g, "shape");
  const Output mean = ConstOf(g, o.dtype, o.mean, "mean");
  const Output stddev = ConstOf(g, o.dtype, o.stddev, "stddev");
  return ScaleAndShift(StatefulNode(g, op, dims, o.dtype, o.seed), stddev, mean, scope);
}

absl::string_view OrElse(absl::string_view name, absl::string_view fallback) {
  return name.empty() ? fallback : name;
}

// The key and counter at which the Philox stream of a stateless op starts, and the number of the
// algorithm.
struct StreamStart {
  Output key, counter, alg;
};

StreamStart StartStream(Graph& g, Output seed, absl::string_view alg_name) {
  Node* start = AddNode("StatelessRandomGetKeyCounter", {seed}, {{"Tseed", seed.dtype()}});
  if (start == nullptr) return {};
  constexpr int32_t kAutoSelect = 3;
  return {start->output(0), start->output(1), Const(g, kAutoSelect, alg_name)};
}

Output StatelessNormalLike(absl::string_view op, Output seed, const Ints& shape,
                           const RandomNormalOptions& o, absl::string_view name) {
  if (!seed.valid()) return {};
  Graph& g = seed.graph();
  const NameScope scope(g, name);
  const Output dims = shape.In(g, "shape");
  const Output mean = ConstOf(g, o.dtype, o.mean, "mean");
  const Output stddev = ConstOf(g, o.dtype, o.stddev, "stddev");
  const StreamStart start = StartStream(g, seed, absl::StrCat(op, "/alg"));  // uses "op" as a scope
  const Output sample = AddOp(op, {dims, start.key, start.counter, start.alg}, {{"dtype", o.dtype}},
                              absl::StrCat(scope.name(), op, "/"));
  return ScaleAndShift(sample, stddev, mean, scope);
}

}  // namespace

Output RandomUniform(Graph& g, const Ints& shape, const RandomUniformOptions& o,
                     absl::string_view name) {
  const NameScope scope(g, OrElse(name, "random_uniform"));
  const Output dims = shape.In(g, "shape");
  const bool integer = IsInteger(o.dtype);
  if (integer && !o.max) {
    g.Fail(InvalidArgument("RandomUniform of dtype ", DataTypeName(o.dtype), " needs options.max"));
    return {};
  }
  Output min, max;
  if (o.min || o.max || integer) {
    min = Bound(g, o.dtype, o.min.value_or(0), "min");
    max = Bound(g, o.dtype, o.max.value_or(1), "max");
  }
  if (integer) {
    const auto [seed1, seed2] = g.NextSeed(o.seed);
    return AddOp("RandomUniformInt", {dims, min, max}, {{"seed", seed1}, {"seed2", seed2}},
                 scope.name());
  }
  const Output sample = StatefulNode(g, "RandomUniform", dims, o.dtype, o.seed);
  if (!o.min) return o.max ? AddOp("Mul", {sample, max}) : sample;
  return ScaleAndShift(sample, AddOp("Sub", {max, min}, {}, "sub"), min, scope);
}

Output RandomNormal(Graph& g, const Ints& shape, const RandomNormalOptions& options,
                    absl::string_view name) {
  return NormalLike(g, "RandomStandardNormal", shape, options, OrElse(name, "random_normal"));
}

Output TruncatedNormal(Graph& g, const Ints& shape, const RandomNormalOptions& options,
                       absl::string_view name) {
  return NormalLike(g, "TruncatedNormal", shape, options, OrElse(name, "truncated_normal"));
}

Output RandomShuffle(Output value, std::optional<int64_t> seed, absl::string_view name) {
  if (!value.valid()) return {};
  const auto [seed1, seed2] = value.graph().NextSeed(seed);
  return AddOp("RandomShuffle", {value}, {{"seed", seed1}, {"seed2", seed2}}, name);
}

Output Multinomial(Output logits, const Ints& num_samples, const MultinomialOptions& o,
                   absl::string_view name) {
  if (!logits.valid()) return {};
  Graph& g = logits.graph();
  const NameScope scope(g, OrElse(name, "multinomial"));
  const Output count = num_samples.In(g, "Multinomial/num_samples");
  const auto [seed1, seed2] = g.NextSeed(o.seed);
  // The constant has used the name "Multinomial" as a scope, so the name is passed as a final name.
  return AddOp("Multinomial", {logits, count},
               {{"seed", seed1}, {"seed2", seed2}, {"output_dtype", o.output_dtype}},
               absl::StrCat(scope.name(), "Multinomial/"));
}

Output StatelessRandomUniform(Output seed, const Ints& shape, const RandomUniformOptions& o,
                              absl::string_view name) {
  if (!seed.valid()) return {};
  Graph& g = seed.graph();
  const NameScope scope(g, OrElse(name, "stateless_random_uniform"));
  const Output dims = shape.In(g, "shape");
  if (IsInteger(o.dtype) && !o.max) {  // all values of the type
    const StreamStart start = StartStream(g, seed, "alg");
    return AddOp("StatelessRandomUniformFullIntV2", {dims, start.key, start.counter, start.alg},
                 {{"dtype", o.dtype}}, scope.name());
  }
  const Output min = Bound(g, o.dtype, o.min.value_or(0), "min");
  const Output max = Bound(g, o.dtype, o.max.value_or(1), "max");
  if (IsInteger(o.dtype)) {
    const StreamStart start = StartStream(g, seed, "alg");
    return AddOp("StatelessRandomUniformIntV2",
                 {dims, start.key, start.counter, start.alg, min, max}, {}, scope.name());
  }
  const StreamStart start = StartStream(g, seed, "StatelessRandomUniformV2/alg");
  const Output sample =
      AddOp("StatelessRandomUniformV2", {dims, start.key, start.counter, start.alg},
            {{"dtype", o.dtype}}, absl::StrCat(scope.name(), "StatelessRandomUniformV2/"));
  return ScaleAndShift(sample, AddOp("Sub", {max, min}, {}, "sub"), min, scope);
}

Output StatelessRandomNormal(Output seed, const Ints& shape, const RandomNormalOptions& options,
                             absl::string_view name) {
  return StatelessNormalLike("StatelessRandomNormalV2", seed, shape, options,
                             OrElse(name, "stateless_random_normal"));
}

Output StatelessTruncatedNormal(Output seed, const Ints& shape, const RandomNormalOptions& options,
                                absl::string_view name) {
  return StatelessNormalLike("StatelessTruncatedNormalV2", seed, shape, options,
                             OrElse(name, "stateless_truncated_normal"));
}

// ---- op definitions

absl::Status StatelessShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape seed, c.WithRank(1, 1));
  if (seed.dim(0) >= 0 && seed.dim(0) != 2) {
    return InvalidArgument("seed must have shape [2], not ", seed.ToString());
  }
  return ShapeFromInput0(c);
}

absl::Status KeyCounterShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  return ShapeFromInput0(c);
}

namespace {

constexpr char kFloats[] = "dtype: {half, bfloat16, float, double}";
constexpr char kLogits[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";

// The shape of input 0; the others are a key, a counter and an algorithm.
absl::Status KeyCounterSameShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  return SameShape(c);
}

absl::Status GetKeyCounterShape(ShapeContext& c) {
  c.set_output(0, Shape({1}));
  c.set_output(1, Shape({2}));
  if (c.num_outputs() > 2) c.set_output(2, Shape());
  return absl::OkStatus();
}

absl::Status MultinomialShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape logits, c.WithRank(0, 2));
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  const Tensor* count = c.input_value(1);
  if (count != nullptr && count->IntAt(0) < 0) {
    return InvalidArgument("num_samples should be nonnegative, got ", count->IntAt(0));
  }
  c.set_output(0, Shape({logits.dim(0), count == nullptr ? Shape::kUnknown : count->IntAt(0)}));
  return absl::OkStatus();
}

void AddStateful(OpRegistry* ops, absl::string_view name, absl::string_view doc) {
  ops->Add(OpSpec(name)
               .In("shape: T")
               .Out("output: dtype")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr(kFloats)
               .Attr("T: {int32, int64}")
               .Stateful()
               .Has(Effect::kDraws)
               .InferShape(ShapeFromInput0)
               .NotDifferentiable()
               .Doc(doc));
}

// The two forms of a stateless op: with a seed, and (V2) with the key and the counter derived from
// it.
void AddStateless(OpRegistry* ops, absl::string_view name, absl::string_view doc) {
  ops->Add(OpSpec(name)
               .In("shape: T, seed: Tseed")
               .Out("output: dtype")
               .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
               .Attr("T: {int32, int64} = DT_INT32")
               .Attr("Tseed: {int32, int64} = DT_INT64")
               .InferShape(StatelessShape)
               .NotDifferentiable()
               .Doc(absl::StrCat(doc, " The result depends only on shape and seed.")));
  ops->Add(OpSpec(absl::StrCat(name, "V2"))
               .In("shape: Tshape, key: uint64, counter: uint64, alg: int32")
               .Out("output: dtype")
               .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
               .Attr("Tshape: {int32, int64} = DT_INT32")
               .InferShape(KeyCounterShape)
               .NotDifferentiable()
               .Doc(absl::StrCat(doc, " The result depends only on shape, key and counter.")));
}

void AddStatelessInts(OpRegistry* ops) {
  ops->Add(OpSpec("StatelessRandomUniformInt")
               .In("shape: T, seed: Tseed, minval: dtype, maxval: dtype")
               .Out("output: dtype")
               .Attr("dtype: {int32, int64}")
               .Attr("T: {int32, int64}")
               .Attr("Tseed: {int32, int64} = DT_INT64")
               .InferShape(Ranked("minval: 0, maxval: 0", StatelessShape))
               .NotDifferentiable()
               .Doc("Draws integers uniformly from [minval, maxval). The result depends only on "
                    "the seed."));
  ops->Add(OpSpec("StatelessRandomUniformIntV2")
               .In("shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, "
                   "maxval: dtype")
               .Out("output: dtype")
               .Attr("dtype: {int32, int64, uint32, uint64}")
               .Attr("Tshape: {int32, int64} = DT_INT32")
               .InferShape(Ranked("minval: 0, maxval: 0", KeyCounterShape))
               .NotDifferentiable()
               .Doc("Draws integers uniformly from [minval, maxval), from a key and a counter."));
  ops->Add(OpSpec("StatelessRandomUniformFullInt")
               .In("shape: T, seed: Tseed")
               .Out("output: dtype")
               .Attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
               .Attr("T: {int32, int64} = DT_INT32")
               .Attr("Tseed: {int32, int64, uint32, uint64} = DT_INT64")
               .InferShape(StatelessShape)
               .NotDifferentiable()
               .Doc("Draws integers uniformly from all values of the type. The result depends only "
                    "on the seed."));
  ops->Add(
      OpSpec("StatelessRandomUniformFullIntV2")
          .In("shape: Tshape, key: uint64, counter: uint64, alg: int32")
          .Out("output: dtype")
          .Attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
          .Attr("Tshape: {int32, int64} = DT_INT32")
          .InferShape(KeyCounterShape)
          .NotDifferentiable()
          .Doc("Draws integers uniformly from all values of the type, from a key and a counter."));
  ops->Add(OpSpec("StatelessMultinomial")
               .In("logits: T, num_samples: int32, seed: Tseed")
               .Out("output: output_dtype")
               .Attr(kLogits)
               .Attr("Tseed: {int32, int64} = DT_INT64")
               .Attr("output_dtype: {int32, int64} = DT_INT64")
               .InferShape(Ranked("seed: 1", MultinomialShape))
               .NotDifferentiable()
               .Doc("Draws column indices for each row of unnormalized log-probabilities. The "
                    "result depends only on the seed."));
}

void AddStreamStarts(OpRegistry* ops) {
  ops->Add(
      OpSpec("StatelessRandomGetKeyCounter")
          .In("seed: Tseed")
          .Out("key: uint64, counter: uint64")
          .Attr("Tseed: {int32, int64} = DT_INT64")
          .InferShape(Ranked("seed: 1", GetKeyCounterShape))
          .Doc("Hashes a seed of two integers to the key and the counter of a Philox stream."));
  ops->Add(OpSpec("StatelessRandomGetAlg")
               .Out("alg: int32")
               .Stateful()
               .Has(Effect::kObserves)
               .InferShape(ScalarShape)
               .Doc("Returns the number of the random number generator that this device prefers: "
                    "1, Philox."));
  ops->Add(OpSpec("StatelessRandomGetKeyCounterAlg")
               .In("seed: Tseed")
               .Out("key: uint64, counter: uint64, alg: int32")
               .Attr("Tseed: {int32, int64} = DT_INT64")
               .InferShape(Ranked("seed: 1", GetKeyCounterShape))
               .Doc("Computes StatelessRandomGetKeyCounter and StatelessRandomGetAlg in one op."));
}

}  // namespace

void AddRandomOps(OpRegistry* ops) {
  AddStateful(ops, "RandomUniform", "Draws numbers uniformly from [0, 1).");
  AddStateful(ops, "RandomStandardNormal",
              "Draws numbers from the normal distribution with mean 0 and standard deviation 1.");
  AddStateful(ops, "TruncatedNormal",
              "Draws normally distributed numbers. Numbers beyond two standard deviations are "
              "drawn again.");
  ops->Add(OpSpec("RandomUniformInt")
               .In("shape: T, minval: Tout, maxval: Tout")
               .Out("output: Tout")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr("Tout: {int32, int64}")
               .Attr("T: {int32, int64}")
               .Stateful()
               .Has(Effect::kDraws)
               .InferShape(Ranked("minval: 0, maxval: 0", ShapeFromInput0))
               .Doc("Draws integers uniformly from [minval, maxval)."));
  ops->Add(OpSpec("StatelessShuffle")
               .In("value: T, key: uint64, counter: uint64, alg: int32")
               .Out("output: T")
               .Attr("T: type")
               .InferShape(KeyCounterSameShape)
               .NotDifferentiable()
               .Doc("Shuffles a tensor along its first dimension, from a key and a counter."));
  ops->Add(
      OpSpec("StochasticCastToInt")
          .In("input: Tin, key: uint64, counter: uint64, alg: int32")
          .Out("output: Tout")
          .Attr("Tin: {half, bfloat16, float, double}")
          .Attr("Tout: {int8, int16, int32}")
          .InferShape(KeyCounterSameShape)
          .NotDifferentiable()
          .Doc("Rounds numbers to one of the two next integers at random, in proportion to how "
               "near they are. Numbers out of range saturate, and NaN becomes 0."));
  ops->Add(OpSpec("RandomShuffle")
               .In("value: T")
               .Out("output: T")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr("T: type")
               .Stateful()
               .Has(Effect::kDraws)
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Returns the rows of value in random order."));
  ops->Add(OpSpec("Multinomial")
               .In("logits: T, num_samples: int32")
               .Out("output: output_dtype")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr(kLogits)
               .Attr("output_dtype: {int32, int64} = DT_INT64")
               .Stateful()
               .Has(Effect::kDraws)
               .InferShape(MultinomialShape)
               .NotDifferentiable()
               .Doc("Draws column indices for each row of unnormalized log-probabilities."));
  AddStateless(ops, "StatelessRandomUniform", "Draws numbers uniformly from [0, 1).");
  AddStateless(ops, "StatelessRandomNormal",
               "Draws numbers from the normal distribution with mean 0 and standard deviation 1.");
  AddStateless(ops, "StatelessTruncatedNormal",
               "Draws normally distributed numbers. Numbers beyond two standard deviations are "
               "drawn again.");
  AddStatelessInts(ops);
  AddStreamStarts(ops);
}

}  // namespace weir
