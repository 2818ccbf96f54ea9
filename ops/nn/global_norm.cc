#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

// Returns the shape of the input with its channel dimension merged with the lengths of the vectors
// at inputs 1 to `last`.
absl::StatusOr<Shape> WithChannels(ShapeContext& c, int last) {
  WEIR_ASSIGN_OR_RETURN(Shape input, c.WithRank(0, 4));
  int64_t depth = input.dim(3);
  for (int i = 1; i <= last; ++i) {
    WEIR_ASSIGN_OR_RETURN(const Shape each, c.WithRank(i, 1));
    WEIR_ASSIGN_OR_RETURN(depth, MergeDims(depth, each.dim(0)));
  }
  input.set_dim(3, depth);
  return input;
}

absl::Status NormShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, WithChannels(c, 4));
  c.set_output(0, input);
  return absl::OkStatus();
}

absl::Status NormGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, WithChannels(c, 3));
  WEIR_ASSIGN_OR_RETURN(const Shape backprop, c.WithRank(4, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape merged, input.MergeWith(backprop));
  c.set_all_outputs(Shape({merged.dim(3)}));
  c.set_output(0, merged);
  return absl::OkStatus();
}

Grads NormGradient(GradContext& g) {
  const Outputs r = AllOutputs(
      AddNode("BatchNormWithGlobalNormalizationGrad", {g.x(0), g.x(1), g.x(2), g.x(4), g.dy()},
              {{"variance_epsilon", g.attr<float>("variance_epsilon")},
               {"scale_after_normalization", g.attr<bool>("scale_after_normalization")}}),
      5);
  return {r[0], r[1], r[2], r[3], r[4]};
}

OpSpec NormSpec(const char* name, const char* in, const char* out) {
  OpSpec spec(name);
  spec.In(in)
      .Out(out)
      .Attr("T: numbertype")
      .Attr("variance_epsilon: float")
      .Attr("scale_after_normalization: bool")
      .Deprecated(9, "tf.nn.batch_normalization replaces it");
  return spec;
}

}  // namespace

// Batch normalization of the oldest graphs. New graphs cannot contain it.
void AddGlobalNormOps(OpRegistry* ops) {
  ops->Add(NormSpec("BatchNormWithGlobalNormalization", "t: T, m: T, v: T, beta: T, gamma: T",
                    "result: T")
               .InferShape(NormShape)
               .Gradient(NormGradient)
               .Doc("Computes (t - m) / sqrt(v + variance_epsilon), times gamma if requested, plus "
                    "beta, for each channel."));
  ops->Add(NormSpec("BatchNormWithGlobalNormalizationGrad",
                    "t: T, m: T, v: T, gamma: T, backprop: T", "dx: T, dm: T, dv: T, db: T, dg: T")
               .InferShape(NormGradShape)
               .Doc("Computes the gradients of BatchNormWithGlobalNormalization."));
}

}  // namespace weir
