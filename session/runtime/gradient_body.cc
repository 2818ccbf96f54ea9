#include "weir/session/runtime/gradient_body.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/gradients.h"

namespace weir {

namespace {

Output AddArg(FunctionBody* body, DataType type) {
  const auto index = static_cast<int64_t>(body->args.size());
  Node* node = AddNode(*body->graph, "_Arg", {}, {{"T", type}, {"index", index}},
                       absl::StrCat("grad_arg_", index));
  return node == nullptr ? Output() : Output(node);
}

// Declares the types of the variables behind the handles, which the caller knows and gradient
// functions need.
absl::Status SetHandleTypes(const DataTypes& types, FunctionBody* body) {
  Graph& graph = *body->graph;
  absl::flat_hash_set<const Node*> updated;
  for (size_t i = 0; i < body->args.size(); ++i) {
    Node* const arg = body->args[i].node;
    if (body->args[i].dtype() != DT_RESOURCE) continue;
    const DataType type = types[i] == DT_RESOURCE ? DT_INVALID : types[i];
    graph.SetAttr(arg, "_handle_dtypes", AttrValue(DataTypes{type}));
    WEIR_RETURN_IF_ERROR(graph.InferShapes(arg));
    updated.insert(arg);
  }
  if (updated.empty()) return absl::OkStatus();
  for (const auto& node : graph.nodes()) {
    const auto uses_updated = [&](const Output& in) {
      return in.dtype() == DT_RESOURCE && updated.contains(in.node);
    };
    if (std::none_of(node->inputs().begin(), node->inputs().end(), uses_updated)) continue;
    WEIR_RETURN_IF_ERROR(graph.InferShapes(node.get()));
    updated.insert(node.get());
  }
  return absl::OkStatus();
}

// Returns the gradient of an argument that no result depends on.
Output ZerosFor(const Output& arg, DataType type) {
  if (arg.dtype() != DT_RESOURCE) return AddOp("ZerosLike", {arg});
  if (type == DT_RESOURCE) return arg;
  const Output value = AddOp("ReadVariableOp", {arg}, {{"dtype", type}});
  return AddOp("ZerosLike", {value});
}

absl::Status CheckCounts(const DataTypes& args, const DataTypes& results,
                         const FunctionBody& body) {
  const size_t count = body.args.size(), with_gradients = count + body.results.size();
  if (!results.empty() && results.size() != count) {
    return InvalidArgument("SymbolicGradient of '", body.name, "' must return ", count,
                           " gradients, one for each argument, but returns ", results.size());
  }
  if (!args.empty() && args.size() != with_gradients) {
    return InvalidArgument("SymbolicGradient of '", body.name, "' needs ", with_gradients,
                           " arguments but has ", args.size());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeGradientBody(const DataTypes& args, const DataTypes& results, FunctionBody* body) {
  WEIR_RETURN_IF_ERROR(CheckCounts(args, results, *body));
  if (!results.empty()) WEIR_RETURN_IF_ERROR(SetHandleTypes(results, body));
  const Outputs xs = body->args, ys = body->results;
  GradientsOptions options;
  Outputs differentiable_ys;
  for (const Output& y : ys) {
    const Output dy = AddArg(body, args.empty() ? y.dtype() : args[body->args.size()]);
    if (!dy.valid()) return body->graph->status();
    body->args.push_back(dy);
    if (!IsTrainable(y.dtype()) || dy.dtype() == DT_RESOURCE) continue;
    differentiable_ys.push_back(y);
    options.grad_ys.emplace_back(dy);
  }
  Outputs differentiable_xs;
  const auto type_of = [&](size_t i) { return results.empty() ? xs[i].dtype() : results[i]; };
  const auto is_requested = [&](size_t i) {
    return IsTrainable(xs[i].dtype()) && type_of(i) != DT_RESOURCE;
  };
  for (size_t i = 0; i < xs.size(); ++i) {
    if (is_requested(i)) differentiable_xs.push_back(xs[i]);
  }
  Outputs gradients(differentiable_xs.size());
  if (!differentiable_xs.empty() && !differentiable_ys.empty())
    gradients = DenseGradients(differentiable_ys, differentiable_xs, options);
  WEIR_RETURN_IF_ERROR(body->graph->status());
  body->results.clear();
  size_t next = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    const Output gradient = is_requested(i) ? gradients[next++] : Output();
    body->results.push_back(gradient.valid() ? gradient : ZerosFor(xs[i], type_of(i)));
  }
  // The side effects of the function took place when it was called.
  body->effects.clear();
  body->name = absl::StrCat("the gradient of ", body->name);
  return body->graph->status();
}

}  // namespace weir
