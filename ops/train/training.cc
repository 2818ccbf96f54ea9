#include "weir/ops/train/training.h"

#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

namespace weir {

bool IsGradientArg(absl::string_view input) { return input == "grad" || input == "delta"; }

const std::vector<UpdateRule>& UpdateRules() {
  static const auto* const rules = new std::vector<UpdateRule>{
      {.name = "GradientDescent",
       .slots = {},
       .inputs = {"alpha", "delta"},
       .has_sparse = false,
       .doc = "Updates var by gradient descent: var -= alpha * delta."},
      {.name = "ProximalGradientDescent",
       .slots = {},
       .inputs = {"alpha", "l1", "l2", "delta"},
       .doc = "Updates var by a step of gradient descent, followed by the proximal map of l1 * "
              "|var| + l2 / 2 * var^2 (FOBOS)."},
      {.name = "Adadelta",
       .slots = {"accum", "accum_update"},
       .inputs = {"lr", "rho", "epsilon", "grad"},
       .doc = "Updates var by Adadelta: accum = rho * accum + (1 - rho) * grad^2; update = grad * "
              "sqrt(accum_update + epsilon) / sqrt(accum + epsilon); accum_update = rho * "
              "accum_update + (1 - rho) * update^2; var -= lr * update."},
      {.name = "Adagrad",
       .slots = {"accum"},
       .inputs = {"lr", "grad"},
       .attrs = {"update_slots: bool = true"},
       .doc = "Updates var by Adagrad: accum += grad^2; var -= lr * grad / sqrt(accum)."},
      {.name = "AdagradV2",
       .slots = {"accum"},
       .inputs = {"lr", "epsilon", "grad"},
       .attrs = {"update_slots: bool = true"},
       .doc =
           "Updates var by Adagrad: accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)."},
      {.name = "AdagradDA",
       .slots = {"gradient_accumulator", "gradient_squared_accumulator"},
       .inputs = {"grad", "lr", "l1", "l2", "global_step"},
       .doc = "Updates var by Adagrad with dual averaging: recomputes var from the sums of the "
              "gradients and of their squares."},
      {.name = "ProximalAdagrad",
       .slots = {"accum"},
       .inputs = {"lr", "l1", "l2", "grad"},
       .doc = "Updates var by a step of Adagrad, followed by the proximal map of l1 * |var| + l2 / "
              "2 * var^2 with the step's own rate."},
      {.name = "Ftrl",
       .slots = {"accum", "linear"},
       .inputs = {"grad", "lr", "l1", "l2", "lr_power"},
       .attrs = {"multiply_linear_by_lr: bool = false"},
       .doc = "Updates var by Ftrl (follow the regularized leader): maintains the sum of squares "
              "and a linear term, and solves for var."},
      {.name = "FtrlV2",
       .slots = {"accum", "linear"},
       .inputs = {"grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"},
       .attrs = {"multiply_linear_by_lr: bool = false"},
       .doc = "Updates var by Ftrl with a linear term that accumulates grad + 2 * l2_shrinkage * "
              "var."},
      {.name = "Momentum",
       .slots = {"accum"},
       .inputs = {"lr", "grad", "momentum"},
       .attrs = {"use_nesterov: bool = false"},
       .doc = "Updates var by momentum: accum = momentum * accum + grad; var -= lr * accum. "
              "Nesterov: var -= lr * (grad + momentum * accum)."},
      {.name = "KerasMomentum",
       .slots = {"accum"},
       .inputs = {"lr", "grad", "momentum"},
       .attrs = {"use_nesterov: bool = false"},
       .has_ref = false,
       .doc = "Updates var by momentum: accum = momentum * accum - lr * grad; var += accum. "
              "Nesterov: var += momentum * accum - lr * grad."},
      {.name = "Adam",
       .slots = {"m", "v"},
       .inputs = {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       .attrs = {"use_nesterov: bool = false"},
       .has_sparse = false,
       .doc = "Updates var by Adam: m and v are decaying means of grad and grad^2; var -= lr * "
              "sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon)."},
      {.name = "AdamWithAmsgrad",
       .slots = {"m", "v", "vhat"},
       .inputs = {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       .has_sparse = false,
       .has_ref = false,
       .doc = "Updates var by Adam that divides by the running maximum of v, stored in vhat."},
      {.name = "AdaMax",
       .slots = {"m", "v"},
       .inputs = {"beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       .has_sparse = false,
       .doc = "Updates var by AdaMax: m is a decaying mean of grad; v = max(beta2 * v, |grad|); "
              "var -= lr / (1 - beta1_power) * m / (v + epsilon)."},
      {.name = "RMSProp",
       .slots = {"ms", "mom"},
       .inputs = {"lr", "rho", "momentum", "epsilon", "grad"},
       .doc = "Updates var by RMSProp: ms is a decaying mean of grad^2; mom = momentum * mom + lr "
              "* grad / sqrt(ms + epsilon); var -= mom."},
      {.name = "CenteredRMSProp",
       .slots = {"mg", "ms", "mom"},
       .inputs = {"lr", "rho", "momentum", "epsilon", "grad"},
       .doc = "Updates var by RMSProp that divides by the variance: mg is a decaying mean of grad, "
              "and ms - mg^2 replaces ms."},
      {.name = "AddSign",
       .slots = {"m"},
       .inputs = {"lr", "alpha", "sign_decay", "beta", "grad"},
       .has_sparse = false,
       .doc = "Updates var by AddSign: m is a decaying mean of grad; var -= lr * (alpha + "
              "sign_decay * sign(grad) * sign(m)) * grad."},
      {.name = "PowerSign",
       .slots = {"m"},
       .inputs = {"lr", "logbase", "sign_decay", "beta", "grad"},
       .has_sparse = false,
       .doc = "Updates var by PowerSign: m is a decaying mean of grad; var -= lr * exp(logbase * "
              "sign_decay * sign(grad) * sign(m)) * grad."},
  };
  return *rules;
}

namespace {

Shape VariableShapeOf(const ShapeContext& c, int i) {
  if (c.node().input_type(i) != DT_RESOURCE) return c.input(i);
  return c.handle(i) == nullptr ? Shape::UnknownRank() : c.handle(i)->shape;
}

// Inputs: the variables, followed by the inputs of the signature, by name.
absl::Status UpdateShapes(ShapeContext& c) {
  const std::vector<ArgSpec>& args = c.node().op().inputs();
  Shape var = VariableShapeOf(c, 0);
  int grad = -1, indices = -1;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const bool is_variable = args[i].is_ref || args[i].type == DT_RESOURCE;
    if (is_variable) {
      WEIR_ASSIGN_OR_RETURN(var, var.MergeWith(VariableShapeOf(c, i)));
    } else if (args[i].name == "indices") {
      indices = i;
      WEIR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
    } else if (IsGradientArg(args[i].name)) {
      grad = i;
    } else {
      WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
    }
  }
  if (indices < 0) {
    WEIR_ASSIGN_OR_RETURN(var, var.MergeWith(c.input(grad)));
  } else if (var.has_rank()) {
    if (var.rank() < 1) return InvalidArgument("Shape must be at least rank 1 but is rank 0");
    Shape rows = var;
    rows.set_dim(0, c.input(indices).has_rank() ? c.input(indices).dim(0) : Shape::kUnknown);
    WEIR_RETURN_IF_ERROR(rows.MergeWith(c.input(grad)).status());
  }
  if (c.num_outputs() > 0) c.set_output(0, var);
  return absl::OkStatus();
}

OpSpec UpdateOp(const UpdateRule& rule, bool resource, bool sparse) {
  OpSpec op(absl::StrCat(resource ? "Resource" : "", sparse ? "Sparse" : "", "Apply", rule.name));
  const absl::string_view variable = resource ? "resource" : "Ref(T)";
  op.In(absl::StrCat("var: ", variable));
  for (const absl::string_view slot : rule.slots) op.In(absl::StrCat(slot, ": ", variable));
  for (const absl::string_view input : rule.inputs) {
    const absl::string_view name = sparse && IsGradientArg(input) ? "grad" : input;
    op.In(absl::StrCat(name, name == "global_step" ? ": int64" : ": T"));
    if (sparse && IsGradientArg(input)) op.In("indices: Tindices");
  }
  if (!resource) op.Out("out: Ref(T)");
  op.Attr("T: numbertype");
  if (sparse) op.Attr("Tindices: {int32, int64}");
  op.Attr("use_locking: bool = false");
  for (const absl::string_view attr : rule.attrs) op.Attr(attr);
  op.Uses(VariableUse::kUpdates).InferShape(UpdateShapes).Doc(rule.doc);
  if (resource) op.Stateful();
  return op;
}

}  // namespace

void AddTrainingOps(OpRegistry* ops) {
  for (const UpdateRule& rule : UpdateRules()) {
    for (const bool resource : {false, true}) {
      if (!resource && !rule.has_ref) continue;
      ops->Add(UpdateOp(rule, resource, /*sparse=*/false));
      if (rule.has_sparse) ops->Add(UpdateOp(rule, resource, /*sparse=*/true));
    }
  }
}

}  // namespace weir
