#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

// Stochastic dual coordinate ascent for linear models, which TensorFlow's estimators used.
namespace weir {

namespace {

// The deltas have the shapes of the weights, which are the inputs before the examples' state.
absl::Status SdcaShape(ShapeContext& c) {
  const int last = c.num_inputs() - 1, deltas = c.num_outputs() - 1;
  WEIR_ASSIGN_OR_RETURN(const Shape state, c.WithRank(last, 2));
  c.set_output(0, state);
  for (int i = 0; i < deltas; ++i) c.set_output(1 + i, c.input(last - deltas + i));
  return absl::OkStatus();
}

absl::Status FprintShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, 1));
  c.set_output(0, Shape({input.dim(0), 2}));
  return absl::OkStatus();
}

OpSpec SdcaSpec(absl::string_view op, absl::string_view adaptive) {
  OpSpec spec(op);
  spec.In("sparse_example_indices: num_sparse_features * int64, "
          "sparse_feature_indices: num_sparse_features * int64, "
          "sparse_feature_values: num_sparse_features_with_values * float, "
          "dense_features: num_dense_features * float, example_weights: float, "
          "example_labels: float, sparse_indices: num_sparse_features * int64, "
          "sparse_weights: num_sparse_features * float, "
          "dense_weights: num_dense_features * float, example_state_data: float")
      .Out(
          "out_example_state_data: float, "
          "out_delta_sparse_weights: num_sparse_features * float, "
          "out_delta_dense_weights: num_dense_features * float")
      .Attr(
          "loss_type: {'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', "
          "'poisson_loss'}")
      .Attr(adaptive)
      .Attr("num_sparse_features: int >= 0")
      .Attr("num_sparse_features_with_values: int >= 0")
      .Attr("num_dense_features: int >= 0")
      .Attr("l1: float")
      .Attr("l2: float")
      .Attr("num_loss_partitions: int >= 1")
      .Attr("num_inner_iterations: int >= 1")
      .InferShape(SdcaShape)
      .NotDifferentiable()
      .Doc(
          "Takes a step of stochastic dual coordinate ascent for each example, and returns the "
          "changes of the weights of a linear model.");
  return spec;
}

}  // namespace

void AddSdcaOps(OpRegistry* ops) {
  ops->Add(SdcaSpec("SdcaOptimizer", "adaptative: bool = false"));
  ops->Add(SdcaSpec("SdcaOptimizerV2", "adaptive: bool = false"));
  ops->Add(OpSpec("SdcaShrinkL1")
               .In("weights: Ref(num_features * float)")
               .Attr("num_features: int >= 0")
               .Attr("l1: float")
               .Attr("l2: float")
               .Uses(VariableUse::kUpdates)
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("Moves weights toward zero by l1 / l2, and to zero those that are nearer."));
  ops->Add(OpSpec("SdcaFprint")
               .In("input: string")
               .Out("output: int64")
               .InferShape(FprintShape)
               .NotDifferentiable()
               .Doc("Returns a fingerprint of 128 bits for each string."));
}

}  // namespace weir
