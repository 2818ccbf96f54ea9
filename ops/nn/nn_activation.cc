#include "weir/ops/nn/nn.h"

#include <string>
#include <utility>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/nn/nn_internal.h"

// Activations: Relu and its kind.
namespace weir {

namespace {

Grads ReluGradient(GradContext& c) {
  const std::string op = c.node().op_name() + "Grad";
  return {Op(op, c.dy(), c.y(), op)};
}

Grads ReluGradGradient(GradContext& c) {
  const std::string& op = c.node().op_name();
  return {Op(op, c.dy(), c.x(1), op), ZerosLike(c.x(1))};
}

Grads EluGradient(GradContext& c) { return ReluGradient(c); }

Grads EluGradGradient(GradContext& c) {
  const std::string& op = c.node().op_name();
  Output y = c.x(1);
  Output first = Op(op, c.dy(), y, op);
  Output below = WithScalar("Less", y, 0, "Less");
  Output product = Op("Mul", c.dy(), c.x(0), "mul");
  return {first, AddOp("Select", {below, product, ZerosLike(y)})};
}

Grads LeakyReluGradient(GradContext& c) {
  return {AddOp("LeakyReluGrad", {c.dy(), c.x()}, CopyAttrs(c.node(), {"alpha"}))};
}

Grads LeakyReluGradGradient(GradContext& c) {
  Output first = AddOp("LeakyReluGrad", {c.dy(), c.x(1)}, CopyAttrs(c.node(), {"alpha"}));
  return {first, ZerosLike(c.x(1))};
}

Grads SoftplusGradient(GradContext& c) {
  return {Op("Mul", c.dy(), Op("Sigmoid", c.x(), "Sigmoid"), "mul")};
}

// d/dx of dy / (1 + exp(-x)) is dy / (exp(-x) + 2 + exp(x)).
Grads SoftplusGradGradient(GradContext& c) {
  ControlDependencies after(c.graph(), {c.dy()});
  Output ddy = Op("SoftplusGrad", c.dy(), c.x(1), "SoftplusGrad");
  Output numerator = Op("Mul", c.dy(), c.x(0), "mul");
  Output e = Op("Exp", Op("Neg", c.x(1), "Neg"), "Exp");
  Output sum = Op("AddV2", WithScalar("AddV2", e, 2, "add"), Op("Exp", c.x(1), "Exp"), "add");
  return {ddy, Op("RealDiv", numerator, sum, "truediv")};
}

Grads SoftsignGradient(GradContext& c) {
  return {Op("SoftsignGrad", c.dy(), c.x(), "SoftsignGrad")};
}

OpSpec Activation(absl::string_view op, absl::string_view types) {
  return std::move(OpSpec(op)
                       .In("features: T")
                       .Out("activations: T")
                       .Attr(types)
                       .Elementwise()
                       .InferShape(SameShape));
}

// Inputs: the gradients, and the tensor that they are computed from. `with` is "features" or
// "outputs".
OpSpec ActivationGrad(absl::string_view op, absl::string_view with, absl::string_view types) {
  return std::move(OpSpec(op)
                       .In("gradients: T")
                       .In(absl::StrCat(with, ": T"))
                       .Out("backprops: T")
                       .Attr(types)
                       .Elementwise()
                       .InferShape(MergedShape));
}

}  // namespace

void AddActivationOps(OpRegistry* ops) {
  ops->Add(Activation("Relu", "T: {realnumbertype, qint8}")
               .Gradient(ReluGradient)
               .Doc("Computes max(features, 0) elementwise."));
  ops->Add(ActivationGrad("ReluGrad", "features", "T: realnumbertype")
               .Gradient(ReluGradGradient)
               .Doc("Computes the gradient of Relu: gradients where features > 0, else 0. The "
                    "features may be Relu's input or its output."));
  ops->Add(Activation("Relu6", "T: realnumbertype")
               .Gradient(ReluGradient)
               .Doc("Computes min(max(features, 0), 6) elementwise."));
  ops->Add(ActivationGrad("Relu6Grad", "features", "T: realnumbertype")
               .Gradient(ReluGradGradient)
               .Doc("Computes the gradient of Relu6: gradients where 0 < features < 6, else 0."));
  ops->Add(Activation("Elu", kFloats)
               .Gradient(EluGradient)
               .Doc("Computes exp(features) - 1 where features < 0, else features."));
  ops->Add(ActivationGrad("EluGrad", "outputs", kFloats)
               .Gradient(EluGradGradient)
               .Doc("Computes the gradient of Elu: gradients * (outputs + 1) where outputs < 0, "
                    "else gradients; outputs are Elu's."));
  ops->Add(Activation("Selu", kFloats)
               .Gradient(EluGradient)
               .Doc("Computes scale * alpha * (exp(features) - 1) where features < 0, else scale * "
                    "features, with the constants of self-normalizing networks."));
  ops->Add(ActivationGrad("SeluGrad", "outputs", kFloats)
               .Gradient(EluGradGradient)
               .Doc("Computes the gradient of Selu: gradients * (outputs + scale * alpha) where "
                    "outputs < 0, else gradients * scale."));
  ops->Add(OpSpec("LeakyRelu")
               .In("features: T")
               .Out("activations: T")
               .Attr("alpha: float = 0.2")
               .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
               .Elementwise()
               .InferShape(SameShape)
               .Gradient(LeakyReluGradient)
               .Doc("Computes features where features > 0, else alpha * features."));
  ops->Add(OpSpec("LeakyReluGrad")
               .In("gradients: T, features: T")
               .Out("backprops: T")
               .Attr("alpha: float = 0.2")
               .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
               .Elementwise()
               .InferShape(MergedShape)
               .Gradient(LeakyReluGradGradient)
               .Doc("Computes the gradient of LeakyRelu: gradients where features > 0, else alpha "
                    "* gradients."));
  ops->Add(Activation("Softplus", kFloats)
               .Gradient(SoftplusGradient)
               .Doc("Computes log(1 + exp(features)) elementwise."));
  ops->Add(ActivationGrad("SoftplusGrad", "features", kFloats)
               .Gradient(SoftplusGradGradient)
               .Doc("Computes the gradient of Softplus: gradients / (1 + exp(-features))."));
  ops->Add(Activation("Softsign", kFloats)
               .Gradient(SoftsignGradient)
               .Doc("Computes features / (1 + abs(features)) elementwise."));
  ops->Add(ActivationGrad("SoftsignGrad", "features", kFloats)
               .Doc("Computes the gradient of Softsign: gradients / (1 + abs(features)) ^ 2."));
}

Output Relu(Output features, absl::string_view name) { return Op("Relu", features, name); }
Output Relu6(Output features, absl::string_view name) { return Op("Relu6", features, name); }
Output Elu(Output features, absl::string_view name) { return Op("Elu", features, name); }
Output Selu(Output features, absl::string_view name) { return Op("Selu", features, name); }
Output LeakyRelu(Output features, float alpha, absl::string_view name) {
  return AddOp("LeakyRelu", {features}, {{"alpha", alpha}}, name);
}
Output Softplus(Output features, absl::string_view name) { return Op("Softplus", features, name); }
Output Softsign(Output features, absl::string_view name) { return Op("Softsign", features, name); }

}  // namespace weir
