#include "weir/ops/framework/function.h"

#include "weir/core/graph/shape_context.h"
#include "weir/core/graph/signature.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/function_internal.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Calls of functions, and branches that call one of several functions. Their gradient is the same
// node again with each function replaced by its gradient (SymbolicGradient), which the session
// builds on the first call.
namespace weir {

// ---- shape functions

absl::Status DeclaredShapes(ShapeContext& c) {
  const auto shapes = c.attr<std::vector<Shape>>("output_shapes");
  if (shapes.empty()) return absl::OkStatus();
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument("`output_shapes` must be the same length as num outputs (",
                           shapes.size(), " vs. ", c.num_outputs(), ")");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[i]);
  return absl::OkStatus();
}

namespace {

// The gradient with respect to input i has the shape of input i.
absl::Status SymbolicGradientShape(ShapeContext& c) {
  if (c.num_inputs() < c.num_outputs()) return InvalidArgument("len(inputs) < len(outputs)");
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (c.node().input_type(i) != DT_RESOURCE) {
      c.set_output(i, c.input(i));
    } else if (c.handle(i) != nullptr) {
      c.set_output(i, c.handle(i)->shape);
    }
  }
  return absl::OkStatus();
}

// A session may know the dtype and shape of the resource that a handle refers to.
absl::Status ArgShape(ShapeContext& c) {
  const auto types = c.node().attr_or<DataTypes>(kHandleTypes, {});
  if (!types.empty()) c.set_output_handle(0, {types[0], Shape::UnknownRank()});
  return absl::OkStatus();
}

absl::Status ShapeFromAttr(ShapeContext& c) {
  c.set_output(0, c.attr<Shape>("shape"));
  return absl::OkStatus();
}

}  // namespace

// ---- gradients

DataType GradientType(const Output& x) {
  if (x.dtype() != DT_RESOURCE) return x.dtype();
  if (const HandleData* data = x.handle_data())
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

namespace {

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

}  // namespace

// ---- op definitions

const FunctionCalls* CallsOf(FunctionCalls calls) { return new FunctionCalls(std::move(calls)); }

namespace {

OpSpec CallOp(absl::string_view name) {
  OpSpec op(name);
  op.In("args: Tin")
      .Out("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("f: func")
      .Attr("config: string = ''")
      .Attr("config_proto: string = ''")
      .Attr("executor_type: string = ''")
      .InferShape(UnknownShape)
      .Gradient(PartitionedCallGradient);
  static const FunctionCalls* const calls = CallsOf({{"f"}});
  op.Calls(calls);
  return op;
}

OpSpec IfOp(absl::string_view name) {
  OpSpec op(name);
  op.In("cond: Tcond, input: Tin")
      .Out("output: Tout")
      .Attr("Tcond: type")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("then_branch: func")
      .Attr("else_branch: func")
      .Attr("output_shapes: list(shape) = []")
      .InferShape(DeclaredShapes)
      .Gradient(IfGradient);
  static const FunctionCalls* const calls = CallsOf({{"then_branch", "else_branch"}, "Tin", 1});
  op.Calls(calls);
  return op;
}

OpSpec CaseOp(absl::string_view name) {
  OpSpec op(name);
  op.In("branch_index: int32, input: Tin")
      .Out("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("branches: list(func) >= 1")
      .Attr("output_shapes: list(shape) = []")
      .InferShape(DeclaredShapes)
      .Gradient(CaseGradient);
  static const FunctionCalls* const calls = CallsOf({{"branches"}, "Tin", 1});
  op.Calls(calls);
  return op;
}

// Each output has a row for each row of the arguments.
absl::Status MapDefunShapes(ShapeContext& c) {
  const auto shapes = c.attr<std::vector<Shape>>("output_shapes");
  if (static_cast<int>(shapes.size()) != c.num_outputs())
    return InvalidArgument("`output_shapes` must be the same length as `output_types` (",
                           shapes.size(), " vs. ", c.num_outputs(), ")");
  int64_t rows = Shape::kUnknown;
  const auto arguments = static_cast<int>(c.attr<DataTypes>("Targuments").size());
  for (int i = 0; i < arguments; ++i) {
    if (c.input(i).rank() == 0)
      return InvalidArgument("Arguments must have rank at least 1. Input ", i, " has rank of 0.");
    const int64_t dim = c.input(i).dim(0);
    if (dim >= 0 && rows >= 0 && dim != rows)
      return InvalidArgument("Arguments must have the same dimension 0.");
    if (dim >= 0) rows = dim;
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    Shape shape = shapes[static_cast<size_t>(i)];
    if (shape.has_rank()) shape.InsertDim(0, rows);
    c.set_output(i, std::move(shape));
  }
  return absl::OkStatus();
}

void AddCallOps(OpRegistry* ops) {
  ops->Add(OpSpec("MapDefun")
               .In("arguments: Targuments, captured_inputs: Tcaptured")
               .Out("output: output_types")
               .Attr("Targuments: list(type) >= 1")
               .Attr("Tcaptured: list(type) >= 0 = []")
               .Attr("output_types: list(type) >= 1")
               .Attr("output_shapes: list(shape) >= 1")
               .Attr("f: func")
               .Attr("max_intra_op_parallelism: int = 1")
               .InferShape(MapDefunShapes)
               .NotDifferentiable()
               .Doc("Calls a function of each row of the arguments, and stacks the results."));
  ops->Add(CallOp("PartitionedCall").Doc("Calls a function of the graph."));
  ops->Add(
      CallOp("StatefulPartitionedCall").Stateful().Doc("Calls a stateful function of the graph."));
  ops->Add(OpSpec("RemoteCall")
               .In("target: string, args: Tin")
               .Out("output: Tout")
               .Attr("Tin: list(type) >= 1")
               .Attr("Tout: list(type) >= 1")
               .Attr("f: func")
               .Stateful()
               .InferShape(UnknownShape)
               .Doc("Calls a function on the session's device named `target`."));
  ops->Add(OpSpec(kSymbolicGradient)
               .In("input: Tin")
               .Out("output: Tout")
               .Attr("Tin: list(type) >= 1")
               .Attr("Tout: list(type) >= 1")
               .Attr("f: func")
               .InferShape(SymbolicGradientShape)
               .Gradient(SymbolicGradientGradient)
               .Doc("Computes the gradients of the function `f` with respect to its arguments. "
                    "`input` is the arguments, followed by the gradients of the results of f."));
}

void AddChoiceOps(OpRegistry* ops) {
  ops->Add(IfOp("If").Stateful().Doc("Calls one of two functions, depending on `cond`."));
  ops->Add(IfOp("StatelessIf").Doc("If, for stateless functions."));
  ops->Add(
      CaseOp("Case").Stateful().Doc("Calls the function that `branch_index` selects; an index out "
                                    "of range selects the last one."));
  ops->Add(CaseOp("StatelessCase").Doc("Case, for stateless functions."));
  ops->Add(OpSpec("ToBool")
               .In("input: T")
               .Out("output: bool")
               .Attr("T: type")
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Converts a tensor to bool as If and While do: a nonzero number, a nonempty "
                    "string, or any other tensor with elements is true."));
}

void AddArgumentOps(OpRegistry* ops) {
  ops->Add(OpSpec("_Arg")
               .Out("output: T")
               .Attr("T: type")
               .Attr("index: int >= 0")
               .InferShape(ArgShape)
               .Doc("An argument of a function, which is fed when the function is called."));
  ops->Add(OpSpec("FakeParam")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape")
               .InferShape(ShapeFromAttr)
               .NotDifferentiable()
               .Doc("Returns zeros in place of a result that a branch does not have. Unknown "
                    "dimensions are zero."));
  ops->Add(OpSpec("DeviceIndex")
               .Out("index: int32")
               .Attr("device_names: list(string)")
               .Stateful()
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns the position in the list of the type of the device that this op runs "
                    "on, or the length of the list if it is not in the list."));
  ops->Add(
      OpSpec("DisableCopyOnRead")
          .In("resource: resource")
          .Stateful()
          .InferShape(NoOutputs)
          .NotDifferentiable()
          .Doc("Requests that reads of a variable return its own buffer, as they always do here."));
}

}  // namespace

void AddFunctionOps(OpRegistry* ops) {
  AddCallOps(ops);
  AddChoiceOps(ops);
  AddArgumentOps(ops);
}

// ---- builders

namespace {

absl::StatusOr<Callee> FindCallee(const Graph& graph, const FunctionRef& f) {
  if (graph.functions() == nullptr || graph.functions()->FindDef(f.name) == nullptr)
    return InvalidArgument("Failed to find function \"", f.name, "\" in function library");
  WEIR_ASSIGN_OR_RETURN(const OpSpec* op, graph.functions()->FindOp(f.name));
  AttrMap attrs = f.attrs == nullptr ? AttrMap() : *f.attrs;
  WEIR_RETURN_IF_ERROR(CompleteAttrs(*op, &attrs));
  WEIR_ASSIGN_OR_RETURN(const NodeTypes types, ArgTypes(*op, op->outputs(), attrs, kMaxNodeArity));
  return Callee{DataTypes(types.begin(), types.end()), op->stateful()};
}

}  // namespace

std::optional<Callee> FindCallees(Graph& graph, const std::vector<FunctionRef>& functions) {
  Callee all;
  for (const FunctionRef& f : functions) {
    absl::StatusOr<Callee> callee = FindCallee(graph, f);
    if (!callee.ok()) {
      graph.Fail(callee.status());
      return std::nullopt;
    }
    all.results = callee->results;
    all.stateful = all.stateful || callee->stateful;
  }
  return all;
}

Outputs Call(Graph& graph, const FunctionRef& f, const Outputs& args, absl::string_view name) {
  const std::optional<Callee> callee = FindCallees(graph, {f});
  if (!callee) return {};
  return AllOutputs(
      AddNode(graph, callee->stateful ? "StatefulPartitionedCall" : "PartitionedCall", {args},
              {{"Tout", AttrValue(callee->results)}, {"f", AttrValue(f)}}, name),
      callee->results.size());
}

Outputs FunctionalIf(Output cond, const Outputs& args, const FunctionRef& then_branch,
                     const FunctionRef& else_branch, absl::string_view name) {
  if (!cond.valid()) return {};
  const std::optional<Callee> callee = FindCallees(cond.graph(), {then_branch, else_branch});
  if (!callee) return {};
  return AllOutputs(AddNode(callee->stateful ? "If" : "StatelessIf", {cond, args},
                            {{"Tout", AttrValue(callee->results)},
                             {"then_branch", AttrValue(then_branch)},
                             {"else_branch", AttrValue(else_branch)}},
                            name),
                    callee->results.size());
}

Outputs FunctionalCase(Output index, const Outputs& args, const std::vector<FunctionRef>& branches,
                       absl::string_view name) {
  if (!index.valid()) return {};
  const std::optional<Callee> callee = FindCallees(index.graph(), branches);
  if (!callee) return {};
  return AllOutputs(
      AddNode(callee->stateful ? "Case" : "StatelessCase", {index, args},
              {{"Tout", AttrValue(callee->results)}, {"branches", AttrValue(branches)}}, name),
      callee->results.size());
}

}  // namespace weir
