#include "weir/ops/function.h"
#include "weir/ops/function_internal.h"
#include "weir/ops/gradient_util.h"

// Gradients of calls and branches: the same node again with each function replaced by its gradient
// (SymbolicGradient), which the session builds on the first call.
namespace weir {

DataType GradientType(const Output& x) {
  if (x.dtype() != DT_RESOURCE) return x.dtype();
  if (const HandleData* data = x.node->output_handle(x.index))
    return data->dtype == DT_INVALID ? DT_RESOURCE : data->dtype;
  // A node without inputs, such as a table or a queue, has no gradient; a handle that is passed
  // through a node may refer to a variable.
  const bool is_forwarded =
      x.node->num_inputs() > 0 || x.node->op_name() == "_Arg" || x.node->op_name() == "Placeholder";
  return is_forwarded ? DT_FLOAT : DT_RESOURCE;
}

FunctionRef GradientFunction(const FunctionRef& f, const DataTypes& args,
                             const DataTypes& results) {
  return FunctionRef{
      kSymbolicGradient,
      std::make_shared<AttrMap>(
          AttrMap{{"f", AttrValue(f)}, {"Tin", AttrValue(args)}, {"Tout", AttrValue(results)}})};
}

namespace {

// The signature of a gradient function. It takes the arguments of the function (node inputs from
// `first` on) and the gradients of its results.
struct GradientCall {
  Outputs inputs;
  DataTypes input_types, output_types;
  std::vector<bool> needs_grad;  // by argument

  GradientCall(GradContext& g, int first) {
    for (int i = first; i < g.num_inputs(); ++i) {
      inputs.push_back(g.x(i));
      output_types.push_back(GradientType(g.x(i)));
      needs_grad.push_back(IsTrainable(output_types.back()) && output_types.back() != DT_RESOURCE);
    }
    for (int i = 0; i < g.node().num_outputs(); ++i) {
      const Output dy = g.dy(i), y = g.y(i);
      inputs.push_back(dy.valid() ? dy : y.dtype() == DT_RESOURCE ? y : AddOp("ZerosLike", {y}));
    }
    for (const Output& input : inputs) input_types.push_back(input.dtype());
  }

  FunctionRef GradientOf(const FunctionRef& f) const {
    return GradientFunction(f, input_types, output_types);
  }

  Grads ExtractGrads(Node* node, int first) const {
    Grads grads(first);
    for (size_t i = 0; i < needs_grad.size() && node != nullptr; ++i)
      grads.push_back(needs_grad[i] ? Grad(node->output(static_cast<int>(i))) : Grad());
    return grads;
  }
};

Grads GradientOfCallOf(GradContext& g, const FunctionRef& f) {
  const GradientCall backward(g, 0);
  Node* node = AddNode(g.graph(), kSymbolicGradient, {backward.inputs},
                       {{"Tin", AttrValue(backward.input_types)},
                        {"Tout", AttrValue(backward.output_types)},
                        {"f", AttrValue(f)}});
  return backward.ExtractGrads(node, 0);
}

}  // namespace

Grads CallGradient(GradContext& g) {
  auto attrs = std::make_shared<AttrMap>();
  for (const AttrSpec& attr : g.node().op().attrs())
    attrs->emplace(attr.name, *g.node().FindAttr(attr.name));
  return GradientOfCallOf(g, FunctionRef{g.node().op_name(), std::move(attrs)});
}

Grads PartitionedCallGradient(GradContext& g) {
  return GradientOfCallOf(g, g.attr<FunctionRef>("f"));
}

// The gradient of a gradient is that of the function that "SymbolicGradient" names.
Grads SymbolicGradientGradient(GradContext& g) {
  return GradientOfCallOf(g, GradientFunction(g.attr<FunctionRef>("f"), g.attr<DataTypes>("Tin"),
                                              g.attr<DataTypes>("Tout")));
}

Grads IfGradient(GradContext& g) {
  const GradientCall backward(g, 1);
  Node* node = AddNode(
      g.graph(), g.node().op_name(), {g.x(0), backward.inputs},
      {{"Tin", AttrValue(backward.input_types)},
       {"Tout", AttrValue(backward.output_types)},
       {"then_branch", AttrValue(backward.GradientOf(g.attr<FunctionRef>("then_branch")))},
       {"else_branch", AttrValue(backward.GradientOf(g.attr<FunctionRef>("else_branch")))}});
  return backward.ExtractGrads(node, 1);
}

Grads CaseGradient(GradContext& g) {
  const GradientCall backward(g, 1);
  std::vector<FunctionRef> branches;
  for (const FunctionRef& branch : g.attr<std::vector<FunctionRef>>("branches"))
    branches.push_back(backward.GradientOf(branch));
  Node* node = AddNode(g.graph(), g.node().op_name(), {g.x(0), backward.inputs},
                       {{"Tin", AttrValue(backward.input_types)},
                        {"Tout", AttrValue(backward.output_types)},
                        {"branches", AttrValue(branches)}});
  return backward.ExtractGrads(node, 1);
}

}  // namespace weir
