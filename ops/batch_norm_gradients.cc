#include <string>
#include <vector>

#include "weir/core/scope.h"
#include "weir/ops/array.h"
#include "weir/ops/gradients.h"
#include "weir/ops/math.h"
#include "weir/ops/nn_gradients.h"
#include "weir/ops/nn_internal.h"
#include "weir/ops/window.h"

namespace weir {
namespace {

Output Binary(absl::string_view op, Output a, Output b) { return AddOp(op, {a, b}); }

// The derivatives of fused batch normalization, built from simple ops so that they are
// differentiable again.
struct BatchNormDerivatives {
  Output x, scale, offset;
};
struct BatchNormInputs {
  Output dy, x, scale, mean, variance;
  DataLayout layout;
  float epsilon;
};

std::vector<int64_t> ReducedAxes(const DataLayout& layout) {
  std::vector<int64_t> axes;
  for (int i = 0; i < layout.rank; ++i) {
    if (i != layout.channel) axes.push_back(i);
  }
  return axes;
}

// Reshapes a per-channel vector so that it broadcasts against the images.
Output AlongChannels(Output vector, const DataLayout& layout) {
  if (!layout.channels_first()) return vector;
  std::vector<int64_t> shape(layout.rank, 1);
  shape[layout.channel] = -1;
  return Reshape(vector, shape);
}

// With x^ = (x - mean(x)) / s, s = sqrt(var(x) + epsilon), and means over all dimensions but the
// channels:
//   dx = scale / s * (dy - mean(dy) - x^ * mean(dy * x^))
//   dscale = sum(dy * x^)
//   doffset = sum(dy)
BatchNormDerivatives TrainingDerivatives(const BatchNormInputs& in) {
  const bool keep = in.layout.channels_first();
  const std::vector<int64_t> axes = ReducedAxes(in.layout);
  Output scale = AlongChannels(in.scale, in.layout);
  Output mean_dy = ReduceMean(in.dy, axes, keep);
  Output mean_x = ReduceMean(in.x, axes, keep);
  Output var_x = ReduceMean(Binary("SquaredDifference", in.x, StopGradient(mean_x)), axes, keep);
  Output dy_offset = AddOp("Sub", {in.dy, mean_dy}, {}, "sub");
  Output x_offset = AddOp("Sub", {in.x, mean_x}, {}, "sub");
  Output mean = ReduceMean(AddOp("Mul", {in.dy, x_offset}, {}, "mul"), axes, keep);
  Output factor = AddOp(
      "Mul", {scale, AddOp("Rsqrt", {WithScalar("AddV2", var_x, in.epsilon, "add")})}, {}, "mul");
  Output inverse = AddOp("Reciprocal", {WithScalar("AddV2", var_x, in.epsilon, "add")});
  Output slope = AddOp("Mul", {AddOp("Mul", {inverse, mean}, {}, "mul"), x_offset}, {}, "mul");
  BatchNormDerivatives out;
  out.x = AddOp("Mul", {factor, AddOp("Sub", {dy_offset, slope}, {}, "sub")}, {}, "mul");
  Output sum = ReduceSum(AddOp("Mul", {in.dy, x_offset}, {}, "mul"), axes, keep);
  out.scale = AddOp("Mul", {AddOp("Rsqrt", {WithScalar("AddV2", var_x, in.epsilon, "add")}), sum},
                    {}, "mul");
  if (keep) out.scale = Reshape(out.scale, {-1});
  out.offset = ReduceSum(in.dy, axes, false);
  return out;
}

// Mean and variance are inputs here, so y depends on x elementwise.
BatchNormDerivatives InferenceDerivatives(const BatchNormInputs& in) {
  const std::vector<int64_t> axes = ReducedAxes(in.layout);
  Output scale = AlongChannels(in.scale, in.layout);
  Output mean = AlongChannels(in.mean, in.layout);
  Output inverse = AddOp(
      "Rsqrt", {WithScalar("AddV2", AlongChannels(in.variance, in.layout), in.epsilon, "add")});
  BatchNormDerivatives out;
  out.offset = ReduceSum(in.dy, axes, false);
  Output centered = AddOp("Mul", {in.dy, AddOp("Sub", {in.x, mean}, {}, "sub")}, {}, "mul");
  out.scale = ReduceSum(AddOp("Mul", {centered, inverse}, {}, "mul"), axes, false);
  out.x = AddOp("Mul", {AddOp("Mul", {in.dy, scale}, {}, "mul"), inverse}, {}, "mul");
  return out;
}

}  // namespace

// Uses the Grad op of the same version. Its inference mode supports NHWC only, so other formats are
// transposed before and after.
Grads FusedBatchNormGradient(GradContext& c) {
  const std::string& op = c.node().op_name();
  const size_t base = std::string("FusedBatchNorm").size();
  const std::string grad_op = op.substr(0, base) + "Grad" + op.substr(base);
  const bool is_training = c.attr<bool>("is_training");
  std::string format = c.attr<std::string>("data_format");
  Output x = c.x(0), dy = c.dy(0);
  std::vector<int64_t> back;
  Output reserve_1 = is_training ? c.y(3) : c.x(3), reserve_2 = is_training ? c.y(4) : c.x(4);
  if (!is_training && format[1] == 'C') {
    const bool flat = format == "NCHW";
    const std::vector<int64_t> there =
        flat ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 3, 4, 1};
    back = flat ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{0, 4, 1, 2, 3};
    x = Transpose(x, there);
    dy = Transpose(dy, there);
    format = flat ? "NHWC" : "NDHWC";
  }
  std::vector<Arg> args = {dy, x, c.x(1), reserve_1, reserve_2};
  if (op == "FusedBatchNormV3") args.push_back(c.y(5));
  Node* node = AddNode(grad_op, args,
                       {{"epsilon", c.attr<float>("epsilon")},
                        {"data_format", format},
                        {"is_training", is_training}});
  if (node == nullptr) return {};
  Output dx = node->output(0);
  if (!back.empty()) dx = Transpose(dx, back);
  return {dx, node->output(1), node->output(2)};
}

Grads FusedBatchNormGradGradient(GradContext& c) {
  const absl::StatusOr<DataLayout> layout = ParseDataFormat(c.attr<std::string>("data_format"));
  if (!layout.ok()) {
    c.graph().Fail(layout.status());
    return {};
  }
  const DataType type = c.x(1).dtype();
  const bool narrow = type != DT_FLOAT;
  BatchNormInputs in{c.x(0), c.x(1), c.x(2), c.x(3), c.x(4), *layout, c.attr<float>("epsilon")};
  if (narrow) {
    in.x = Cast(in.x, DT_FLOAT);
    in.dy = Cast(in.dy, DT_FLOAT);
  }
  BatchNormDerivatives d =
      c.attr<bool>("is_training") ? TrainingDerivatives(in) : InferenceDerivatives(in);
  if (narrow) d.x = Cast(d.x, type);
  GradientsOptions options;
  options.grad_ys = {c.dy(0), c.dy(1), c.dy(2)};
  options.name = "gradient_tape";
  return Gradients({d.x, d.scale, d.offset}, Outputs{c.x(0), c.x(1), c.x(2)}, options);
}

}  // namespace weir
