#include "weir/ops/function.h"

#include <algorithm>

#include "weir/core/function_library.h"
#include "weir/core/shape_context.h"
#include "weir/core/signature.h"
#include "weir/ops/function_internal.h"
#include "weir/ops/registry.h"

namespace weir {

namespace {

// Applies the shapes in the attribute `output_shapes`, if any.
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

// ---- builders

// A function's result dtypes and whether it is stateful.
struct Callee {
  DataTypes results;
  bool stateful = false;
};

absl::StatusOr<Callee> FindCallee(const Graph& graph, const FunctionRef& f) {
  if (graph.functions() == nullptr || graph.functions()->FindDef(f.name) == nullptr)
    return InvalidArgument("Failed to find function \"", f.name, "\" in function library");
  WEIR_ASSIGN_OR_RETURN(const OpSpec* op, graph.functions()->FindOp(f.name));
  AttrMap attrs = f.attrs == nullptr ? AttrMap() : *f.attrs;
  WEIR_RETURN_IF_ERROR(CompleteAttrs(*op, &attrs));
  WEIR_ASSIGN_OR_RETURN(const NodeTypes types, ArgTypes(*op, op->outputs(), attrs, kMaxNodeArity));
  return Callee{DataTypes(types.begin(), types.end()), op->stateful()};
}

// Returns nullopt and fails the graph if a function is unknown.
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

// Returns all `count` outputs of a node; invalid ones if `node` is null.
Outputs OutputsOf(Node* node, size_t count) {
  Outputs outputs(count);
  for (size_t i = 0; node != nullptr && i < count; ++i)
    outputs[i] = node->output(static_cast<int>(i));
  return outputs;
}

const FunctionCalls* CallsOf(FunctionCalls calls) { return new FunctionCalls(std::move(calls)); }

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

OpSpec WhileOp(absl::string_view name) {
  OpSpec op(name);
  op.In("input: T")
      .Out("output: T")
      .Attr("T: list(type) >= 0")
      .Attr("cond: func")
      .Attr("body: func")
      .Attr("output_shapes: list(shape) = []")
      .Attr("parallel_iterations: int = 10")
      .InferShape(DeclaredShapes)
      .Gradient(FunctionalWhileGradient);
  static const FunctionCalls* const calls = CallsOf({{"cond", "body"}, "T", 0, true});
  op.Calls(calls);
  return op;
}

void AddCallOps(OpRegistry* ops) {
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
  ops->Add(
      WhileOp("While").Stateful().Doc("Calls `body` repeatedly on its own results, starting with "
                                      "`input`, while `cond` returns true."));
  ops->Add(WhileOp("StatelessWhile").Doc("While, for stateless functions."));
  static const FunctionCalls* const for_calls = CallsOf({{"body"}, "T", 3, true, true});
  ops->Add(OpSpec("For")
               .In("start: int32, limit: int32, delta: int32, input: T")
               .Out("output: T")
               .Attr("T: list(type) >= 0")
               .Attr("body: func")
               .Calls(for_calls)
               .InferShape(UnknownShape)
               .Gradient(FunctionalForGradient)
               .Doc("Calls `body` repeatedly on the loop's counter and its own results. The "
                    "counter runs from `start` to `limit`, exclusive, in steps of `delta`."));
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

Outputs Call(Graph& graph, const FunctionRef& f, const Outputs& args, absl::string_view name) {
  const std::optional<Callee> callee = FindCallees(graph, {f});
  if (!callee) return {};
  return OutputsOf(
      AddNode(graph, callee->stateful ? "StatefulPartitionedCall" : "PartitionedCall", {args},
              {{"Tout", AttrValue(callee->results)}, {"f", AttrValue(f)}}, name),
      callee->results.size());
}

Outputs FunctionalIf(Output cond, const Outputs& args, const FunctionRef& then_branch,
                     const FunctionRef& else_branch, absl::string_view name) {
  if (!cond.valid()) return {};
  const std::optional<Callee> callee = FindCallees(cond.graph(), {then_branch, else_branch});
  if (!callee) return {};
  return OutputsOf(AddNode(callee->stateful ? "If" : "StatelessIf", {cond, args},
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
  return OutputsOf(
      AddNode(callee->stateful ? "Case" : "StatelessCase", {index, args},
              {{"Tout", AttrValue(callee->results)}, {"branches", AttrValue(branches)}}, name),
      callee->results.size());
}

Outputs FunctionalWhile(const Outputs& vars, const FunctionRef& cond, const FunctionRef& body,
                        absl::string_view name) {
  if (vars.empty() || !vars[0].valid()) return Outputs(vars.size());
  const std::optional<Callee> callee = FindCallees(vars[0].graph(), {cond, body});
  if (!callee) return Outputs(vars.size());
  return OutputsOf(AddNode(callee->stateful ? "While" : "StatelessWhile", {vars},
                           {{"cond", AttrValue(cond)}, {"body", AttrValue(body)}}, name),
                   vars.size());
}

Outputs FunctionalFor(Output start, Output limit, Output delta, const Outputs& vars,
                      const FunctionRef& body, absl::string_view name) {
  return OutputsOf(AddNode("For", {start, limit, delta, vars}, {{"body", AttrValue(body)}}, name),
                   vars.size());
}

void AddFunctionOps(OpRegistry* ops) {
  AddCallOps(ops);
  AddChoiceOps(ops);
  AddArgumentOps(ops);
}

}  // namespace weir
