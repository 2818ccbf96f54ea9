#include "weir/ops/nn/nn.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn_internal.h"

namespace weir {

namespace {

// The mask: elements whose uniform random number is at least `rate` are retained.
Output MaskDropped(Output x, Output scaled, const std::function<Output(Output)>& keep,
                   const DropoutOptions& options) {
  Graph& g = x.graph();
  Output shape;
  if (!options.noise_shape) shape = ShapeTensor(x, DT_INT32, "Shape");
  Output random;
  {
    NameScope scope(g, "random_uniform");
    if (options.noise_shape) shape = options.noise_shape->In(g, "shape", DT_INT32);
    const auto [seed, seed2] = g.NextSeed(options.seed);
    random =
        AddOp("RandomUniform", {shape}, {{"dtype", x.dtype()}, {"seed", seed}, {"seed2", seed2}});
  }
  if (!random.valid() || !scaled.valid()) return Output();
  Output kept = keep(random);
  return AddOp("SelectV2", {kept, scaled, ConstLike(x, 0, "Const")});
}

}  // namespace

Output Dropout(Output x, double rate, const DropoutOptions& options, absl::string_view name) {
  if (!x.valid()) return Output();
  if (!(rate >= 0 && rate < 1)) {
    x.graph().Fail(InvalidArgument(
        "`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate=", rate,
        " for Dropout of ", x.name()));
    return Output();
  }
  NameScope scope(x.graph(), Or(name, "dropout"));
  if (rate == 0) {
    x.graph().NextSeed(options.seed);
    return x;
  }
  Output scaled = AddOp("Mul", {x, ConstLike(x, 1 / (1 - rate), "Const")});
  return MaskDropped(
      x, scaled, [&](Output r) { return WithScalar("GreaterEqual", r, rate, "GreaterEqual"); },
      options);
}

Output Dropout(Output x, Output rate, const DropoutOptions& options, absl::string_view name) {
  if (!x.valid() || !rate.valid()) return Output();
  NameScope scope(x.graph(), Or(name, "dropout"));
  Output scaled = AddOp("RealDiv", {x, AddOp("Sub", {ConstLike(x, 1, "Const"), rate})});
  return MaskDropped(
      x, scaled,
      [&](Output r) {
        return AddOp("GreaterEqual", {r, rate});
      },
      options);
}

}  // namespace weir
