#include "weir/ops/nn/ctc.h"

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

CtcDecoded DecodedOf(Node* node, int paths) {
  const Outputs r = AllOutputs(node, 3 * paths + 1);
  CtcDecoded decoded;
  for (int p = 0; p < paths; ++p) decoded.paths.push_back({r[p], r[paths + p], r[2 * paths + p]});
  decoded.log_probability = r.back();
  return decoded;
}

// ---- shape functions

absl::Status LossShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape inputs, c.WithRank(0, 3));
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(1, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRank(2, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape lengths, c.WithRank(3, 1));
  WEIR_RETURN_IF_ERROR(MergeDims(indices.dim(0), values.dim(0)).status());
  WEIR_ASSIGN_OR_RETURN(const int64_t batch, MergeDims(inputs.dim(1), lengths.dim(0)));
  inputs.set_dim(1, batch);
  c.set_output(0, Shape({batch}));
  c.set_output(1, inputs);
  return absl::OkStatus();
}

absl::Status DecodedShape(ShapeContext& c, int64_t paths) {
  WEIR_ASSIGN_OR_RETURN(const Shape inputs, c.WithRank(0, 3));
  WEIR_ASSIGN_OR_RETURN(const Shape lengths, c.WithRank(1, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t batch, MergeDims(inputs.dim(1), lengths.dim(0)));
  const int n = static_cast<int>(paths);
  for (int p = 0; p < n; ++p) {
    c.set_output(p, Shape({Shape::kUnknown, 2}));
    c.set_output(n + p, Shape({Shape::kUnknown}));
    c.set_output(2 * n + p, Shape({2}));
  }
  c.set_output(3 * n, Shape({batch, paths}));
  return absl::OkStatus();
}

absl::Status GreedyShape(ShapeContext& c) { return DecodedShape(c, 1); }
absl::Status BeamSearchShape(ShapeContext& c) {
  return DecodedShape(c, c.attr<int64_t>("top_paths"));
}

// ---- gradients

Grads LossGradient(GradContext& g) {
  // The two spaces are TensorFlow's; the graphs must be equal.
  const Output gradient =
      PreventGradient(g.y(1),
                      "Currently there is no way to take the second  derivative of ctc_loss due to "
                      "the fused implementation's interaction  with tf.gradients()");
  return {MulOp(ExpandDims(g.dy(0), -1), gradient), Grad(), Grad(), Grad()};
}

OpSpec LossSpec(const char* name, const char* inputs, const char* outputs) {
  OpSpec spec(name);
  spec.In(inputs)
      .In("labels_indices: int64, labels_values: int32, sequence_length: int32")
      .Out(outputs)
      .Attr("preprocess_collapse_repeated: bool = false")
      .Attr("ctc_merge_repeated: bool = true")
      .Attr("ignore_longer_outputs_than_inputs: bool = false")
      .InferShape(LossShape)
      .Gradient(LossGradient);
  return spec;
}

}  // namespace

Output CtcLoss(const SparseTensor& labels, Output inputs, Output sequence_length,
               const CtcLossOptions& o, absl::string_view name) {
  return AddOp("CTCLoss", {inputs, labels.indices, labels.values, sequence_length},
               {{"preprocess_collapse_repeated", o.preprocess_collapse_repeated},
                {"ctc_merge_repeated", o.ctc_merge_repeated},
                {"ignore_longer_outputs_than_inputs", o.ignore_longer_outputs_than_inputs}},
               name);
}

CtcDecoded CtcGreedyDecoder(Output inputs, Output sequence_length, bool merge_repeated,
                            int blank_index, absl::string_view name) {
  return DecodedOf(
      AddNode("CTCGreedyDecoder", {inputs, sequence_length},
              {{"merge_repeated", merge_repeated}, {"blank_index", blank_index}}, name),
      1);
}

CtcDecoded CtcBeamSearchDecoder(Output inputs, Output sequence_length,
                                const CtcBeamSearchOptions& o, absl::string_view name) {
  return DecodedOf(AddNode("CTCBeamSearchDecoder", {inputs, sequence_length},
                           {{"beam_width", o.beam_width},
                            {"top_paths", o.top_paths},
                            {"merge_repeated", o.merge_repeated}},
                           name),
                   o.top_paths);
}

void AddCtcOps(OpRegistry* ops) {
  ops->Add(LossSpec("CTCLoss", "inputs: T", "loss: T, gradient: T")
               .Attr("T: {float, double} = DT_FLOAT")
               .Doc("Computes -log of the probability of each label sequence, over all alignments, "
                    "and its gradient. The last class is the blank."));
  ops->Add(LossSpec("CTCLossV2", "inputs: float", "loss: float, gradient: float")
               .Doc("CTCLoss with class 0 as the blank."));
  ops->Add(
      OpSpec("CTCGreedyDecoder")
          .In("inputs: T, sequence_length: int32")
          .Out("decoded_indices: int64, decoded_values: int64, decoded_shape: int64, "
               "log_probability: T")
          .Attr("merge_repeated: bool = false")
          .Attr("blank_index: int = -1")
          .Attr("T: {float, double} = DT_FLOAT")
          .InferShape(GreedyShape)
          .NotDifferentiable()
          .Doc(
              "Greedy decoding: returns the most likely class of each time step, without blanks."));
  ops->Add(
      OpSpec("CTCBeamSearchDecoder")
          .In("inputs: T, sequence_length: int32")
          .Out("decoded_indices: top_paths * int64, decoded_values: top_paths * int64, "
               "decoded_shape: top_paths * int64, log_probability: T")
          .Attr("beam_width: int >= 1")
          .Attr("top_paths: int >= 1")
          .Attr("merge_repeated: bool = true")
          .Attr("T: {float, double} = DT_FLOAT")
          .InferShape(BeamSearchShape)
          .NotDifferentiable()
          .Doc("Returns the most likely label sequences, found by a beam search over prefixes."));
}

}  // namespace weir
