#include "weir/ops/function.h"

#include <algorithm>

#include "weir/core/function_library.h"
#include "weir/core/shape_context.h"
#include "weir/core/signature.h"
#include "weir/ops/function_internal.h"
#include "weir/ops/registry.h"

namespace weir {

namespace {

// The shapes that the attribute says, if it says any.
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

// What is differentiated with respect to input i has its shape.
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

// A session may know what a handle is to.
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

// A function's result types and whether it has state.
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

// Nothing if one of them is unknown, which sticks to the graph.
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

// All `count` outputs of a node; invalid ones of null.
Outputs OutputsOf(Node* node, size_t count) {
  Outputs outputs(count);
  for (size_t i = 0; node != nullptr && i < count; ++i)
    outputs[i] = node->output(static_cast<int>(i));
  return outputs;
}

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
  return op;
}

void AddCallOps(OpRegistry* ops) {
  ops->Add(CallOp("PartitionedCall").Doc("Calls a function of the graph."));
  ops->Add(CallOp("StatefulPartitionedCall")
               .Stateful()
               .Doc("Calls a function of the graph that reads or writes state."));
  ops->Add(OpSpec("RemoteCall")
               .In("target: string, args: Tin")
               .Out("output: Tout")
               .Attr("Tin: list(type) >= 1")
               .Attr("Tout: list(type) >= 1")
               .Attr("f: func")
               .Stateful()
               .InferShape(UnknownShape)
               .Doc("Calls a function on the device named `target`, one of the session's."));
  ops->Add(
      OpSpec(kSymbolicGradient)
          .In("input: Tin")
          .Out("output: Tout")
          .Attr("Tin: list(type) >= 1")
          .Attr("Tout: list(type) >= 1")
          .Attr("f: func")
          .InferShape(SymbolicGradientShape)
          .Gradient(SymbolicGradientGradient)
          .Doc("Gradients of the function `f` with respect to its arguments. `input` is these, "
               "then the gradients with respect to the results of f."));
}

void AddChoiceOps(OpRegistry* ops) {
  ops->Add(IfOp("If").Stateful().Doc("Calls one of two functions, as `cond` is true or not."));
  ops->Add(IfOp("StatelessIf").Doc("If, for functions without state."));
  ops->Add(CaseOp("Case").Stateful().Doc(
      "Calls the function that `branch_index` chooses; the last one if there is no such one."));
  ops->Add(CaseOp("StatelessCase").Doc("Case, for functions without state."));
  ops->Add(WhileOp("While").Stateful().Doc(
      "Calls `body` on its own results as long as `cond` says so; `input` comes first."));
  ops->Add(WhileOp("StatelessWhile").Doc("While, for functions without state."));
  ops->Add(
      OpSpec("For")
          .In("start: int32, limit: int32, delta: int32, input: T")
          .Out("output: T")
          .Attr("T: list(type) >= 0")
          .Attr("body: func")
          .InferShape(UnknownShape)
          .Gradient(FunctionalForGradient)
          .Doc("Calls `body` on the loop's counter and its own results, from `start` to before "
               "`limit` in steps of `delta`."));
  ops->Add(OpSpec("ToBool")
               .In("input: T")
               .Out("output: bool")
               .Attr("T: type")
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("What If and While take for true: a number other than zero, a string that is "
                    "not empty, any other tensor that has elements."));
}

void AddArgumentOps(OpRegistry* ops) {
  ops->Add(OpSpec("_Arg")
               .Out("output: T")
               .Attr("T: type")
               .Attr("index: int >= 0")
               .InferShape(ArgShape)
               .Doc("An argument of a function: fed when the function is called."));
  ops->Add(
      OpSpec("FakeParam")
          .Out("output: dtype")
          .Attr("dtype: type")
          .Attr("shape: shape")
          .InferShape(ShapeFromAttr)
          .NotDifferentiable()
          .Doc("Zeros in the place of a result that a branch does not have; unknown dimensions "
               "are zero."));
  ops->Add(OpSpec("DeviceIndex")
               .Out("index: int32")
               .Attr("device_names: list(string)")
               .Stateful()
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("The position in the list of the kind of device that this runs on; the length "
                    "of the list if it is not there."));
  ops->Add(OpSpec("DisableCopyOnRead")
               .In("resource: resource")
               .Stateful()
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("Asks that reads of a variable hand out its own memory, as they do here."));
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
