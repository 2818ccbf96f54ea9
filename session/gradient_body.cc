#include "weir/session/gradient_body.h"

#include "weir/ops/gradient_util.h"
#include "weir/ops/gradients.h"

namespace weir {

namespace {

Output AddArg(FunctionBody* body, DataType type) {
  const auto index = static_cast<int64_t>(body->args.size());
  Node* node = AddNode(*body->graph, "_Arg", {}, {{"T", type}, {"index", index}},
                       absl::StrCat("grad_arg_", index));
  return node == nullptr ? Output() : Output(node);
}

// What an argument gets that no result depends on.
Output ZerosFor(const Output& arg, DataType type) {
  if (arg.dtype() != DT_RESOURCE) return AddOp("ZerosLike", {arg});
  const Output value = AddOp("ReadVariableOp", {arg}, {{"dtype", type}});
  return AddOp("ZerosLike", {value});
}

}  // namespace

absl::Status MakeGradientBody(const DataTypes& types, FunctionBody* body) {
  const Outputs xs = body->args, ys = body->results;
  if (!types.empty() && types.size() != xs.size()) {
    return InvalidArgument("SymbolicGradient of '", body->name, "', which has ", xs.size(),
                           " arguments, is asked for ", types.size(), " gradients");
  }
  GradientsOptions options;
  Outputs differentiable_ys;
  for (const Output& y : ys) {
    const Output dy = AddArg(body, y.dtype());
    if (!dy) return body->graph->status();
    body->args.push_back(dy);
    if (!IsTrainable(y.dtype())) continue;
    differentiable_ys.push_back(y);
    options.grad_ys.emplace_back(dy);
  }
  Outputs differentiable_xs;
  for (const Output& x : xs) {
    if (IsTrainable(x.dtype())) differentiable_xs.push_back(x);
  }
  Outputs gradients(differentiable_xs.size());
  if (!differentiable_xs.empty() && !differentiable_ys.empty())
    gradients = DenseGradients(differentiable_ys, differentiable_xs, options);
  WEIR_RETURN_IF_ERROR(body->graph->status());
  body->results.clear();
  size_t next = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    const Output gradient = IsTrainable(xs[i].dtype()) ? gradients[next++] : Output();
    body->results.push_back(gradient ? gradient
                                     : ZerosFor(xs[i], types.empty() ? xs[i].dtype() : types[i]));
  }
  // What the function does besides was done when it was called.
  body->effects.clear();
  body->name = absl::StrCat("the gradient of ", body->name);
  return body->graph->status();
}

}  // namespace weir
