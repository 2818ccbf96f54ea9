#include "weir/ops/framework/control_flow.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradient_loops_internal.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Control flow: the nodes that loops and branches consist of, groups, assertions, prints.
namespace weir {

// ---- shape functions

namespace {

absl::Status SwitchShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  return IdentityShape(c);
}

absl::Status SwitchNShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, c.input(0));
    if (c.handle(0) != nullptr) c.set_output_handle(i, *c.handle(0));
  }
  return absl::OkStatus();
}

// Sets the output shape to the dimensions that all inputs agree on. Back edges of loops do not
// exist yet when the node is created; they are passed as unknown shapes.
absl::Status MergeShape(ShapeContext& c) {
  Shape out = c.input(0);
  for (int i = 1; i < c.num_inputs() && out.has_rank(); ++i) {
    const Shape& in = c.input(i);
    if (in.rank() != out.rank()) out = Shape::UnknownRank();
    for (int d = 0; d < out.rank(); ++d) {
      if (in.dim(d) != out.dim(d)) out.set_dim(d, Shape::kUnknown);
    }
  }
  c.set_output(0, std::move(out));
  if (c.handle(0) != nullptr) c.set_output_handle(0, *c.handle(0));
  c.set_output(1, Shape());
  return absl::OkStatus();
}

absl::Status RefSelectShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  for (int i = 2; i < c.num_inputs(); ++i) {
    if (c.input(i) != c.input(1)) return absl::OkStatus();
  }
  return PassShape(c, 1, 0);
}

// A loop variable may change its shape between iterations; a loop constant may not.
absl::Status EnterShape(ShapeContext& c) {
  constexpr char kParallel[] = "parallel_iterations";
  WEIR_RETURN_IF_ERROR(CheckInt32Attr(kParallel, c.attr<int64_t>(kParallel)));
  if (c.attr<bool>("is_constant")) return IdentityShape(c);
  if (c.handle(0) != nullptr) c.set_output_handle(0, *c.handle(0));
  return absl::OkStatus();
}

absl::Status LoopCondShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  c.set_output(0, Shape());
  return absl::OkStatus();
}

absl::Status ScalarLoopShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  for (int k = 0; k < c.num_outputs(); ++k) c.set_output(k, Shape());
  return absl::OkStatus();
}

absl::Status AssertShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }
absl::Status PrintV2Shape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

// ---- gradients

// Returns the gradient loop that is currently open, or null.
GradientLoop* CurrentLoop(const GradContext& g) {
  const FlowContext* const loop = LoopAround(FlowStack::Of(g.graph()).current());
  return loop == nullptr ? nullptr : loop->gradient.get();
}

Grads LoopSwitchGradient(GradContext& g, GradientLoop& loop) {
  const auto it = loop.merges().find(&g.node());
  if (it != loop.merges().end()) {  // the gradient of the next iteration is now available
    const Output dy = g.dy(1);
    const Output round = dy.valid() ? NextIteration(dy) : Output();
    if (round.valid()) g.graph().Fail(g.graph().SetInput(it->second.node, 1, round));
    return {};
  }
  const Output dy = g.dy(0);
  if (!dy.valid()) return {};
  const Output merge = Merge({dy, dy}, "b_switch").output;
  if (!merge.valid()) return {};
  loop.merges()[&g.node()] = merge;
  return {merge};
}

Grads BranchSwitchGradient(GradContext& g, const FlowContext& branch) {
  const Output taken = g.dy(branch.side), zero = g.dy(1 - branch.side);
  if (zero.valid()) return {Merge({g.dy(0), g.dy(1)}, "cond_grad").output};
  if (!taken.valid() || g.x(0).dtype() != DT_RESOURCE) return {};
  return {Merge({taken, taken}, "cond_resource_grad").output};
}

Grads SwitchGradient(GradContext& g) {
  GradientLoop* const loop = CurrentLoop(g);
  if (loop != nullptr && IsLoopSwitch(&g.node())) return LoopSwitchGradient(g, *loop);
  const FlowContext* const context = FlowStack::Of(g.graph()).ContextOf(&g.node());
  if (context != nullptr && context->kind == FlowContext::Kind::kBranch)
    return BranchSwitchGradient(g, *context);
  // The gradient of a side must be dead if the side was not taken, even if it does not depend on
  // the value.
  const Output pred = g.x(1);
  const Output on_false = Switch(g.dy(0), pred).on_false, on_true = Switch(g.dy(1), pred).on_true;
  return {Merge({on_false, on_true}).output};
}

// The gradient goes to the input that was not dead.
Grads MergeGradient(GradContext& g) {
  GradientLoop* const loop = CurrentLoop(g);
  const Output dy = g.dy(0);
  if (!dy.valid()) return {};
  const FlowContext* const context = FlowStack::Of(g.graph()).OutputContextOf(g.x(0).node);
  if (context != nullptr && context->kind == FlowContext::Kind::kLoop && loop != nullptr) {
    const SwitchResult sides = SwitchBeside(dy, loop->backward()->condition, "Switch");
    return {sides.on_false, sides.on_true};
  }
  if (context != nullptr && context->kind == FlowContext::Kind::kBranch) {
    const Output pred = loop != nullptr ? loop->RealPredicate(context->pred) : context->pred;
    if (!pred.valid()) return {};
    const SwitchResult sides = SwitchBeside(dy, pred, "cond_grad");
    return {sides.on_false, sides.on_true};
  }
  Grads out;
  for (int i = 0; i < g.num_inputs(); ++i) {
    const Output index = Const(g.graph(), i, "Equal/y");
    const Output chosen = AddOp("Equal", {g.y(1), index});
    out.push_back(Switch(dy, chosen).on_true);
  }
  return out;
}

Grads EnterGradient(GradContext& g) {
  GradientLoop* const loop = CurrentLoop(g);
  if (loop == nullptr) return {g.dy_grad(0)};
  if (g.attr<bool>("is_constant")) return {loop->Accumulate(g.node(), g.dy_grad(0))};
  const Output dy = g.dy(0);
  return {dy.valid() ? Exit(dy) : Output()};
}

Grads ExitGradient(GradContext& g) {
  GradientLoop* const loop = CurrentLoop(g);
  const Output dy = g.dy(0);
  if (loop == nullptr || !dy.valid()) return {};
  return {loop->Enter(dy, dy.shape(), "b_exit")};
}

}  // namespace

// ---- op definitions

void AddControlFlowOps(OpRegistry* ops) {
  ops->Add(OpSpec("NoOp").InferShape(NoOutputs).Doc("Does nothing. Used for its control inputs."));
  ops->Add(OpSpec("ControlTrigger")
               .InferShape(NoOutputs)
               .Doc("Does nothing. Runs after its control inputs, even if they are dead."));
  ops->Add(OpSpec("_ScalarLoop")
               .In("entering: variable_types, invariants: invariant_types")
               .Out("values: variable_types")
               .Attr("variable_types: list({float, double, int32, int64, bool}) >= 1")
               .Attr("invariant_types: list({float, double, int32, int64, bool})")
               .Attr("fused_ops: list(string)")
               .Attr("operands: list(int)")
               .Attr("params: list(float)")
               .Attr("types: list(type)")
               .Attr("num_condition_ops: int >= 0")
               .Attr("condition: int >= 0")
               .Attr("next: list(int)")
               .InferShape(ScalarLoopShape)
               .Doc("A while loop over scalars. Its values are the variables, the invariants and "
                    "the results of fused_ops: op i takes the values operands[2i] and "
                    "operands[2i + 1] (-1: it is unary), has the attribute params[i], if any, and "
                    "a result of type types[i]. After the first num_condition_ops the loop ends if "
                    "the value `condition` is false; after the others variable k becomes the value "
                    "next[k]. Specific to Weir: sessions create it from loops of small nodes."));
  ops->Add(OpSpec("Assert")
               .In("condition: bool, data: T")
               .Attr("T: list(type) >= 1")
               .Attr("summarize: int = 3")
               .Stateful()
               .Has(Effect::kChecks)
               .InferShape(AssertShape)
               .NotDifferentiable()
               .Doc("Fails with INVALID_ARGUMENT, printing `data`, if `condition` is false."));
  ops->Add(OpSpec("Print")
               .In("input: T, data: U")
               .Out("output: T")
               .Attr("T: type")
               .Attr("U: list(type) >= 0")
               .Attr("message: string = ''")
               .Attr("first_n: int = -1")
               .Attr("summarize: int = 3")
               .Stateful()
               .InferShape(IdentityShape)
               .Gradient(PassGradient)
               .Doc("Returns the input and writes `data` to stderr."));
  ops->Add(OpSpec("PrintV2")
               .In("input: string")
               .Attr("output_stream: string = 'stderr'")
               .Attr("end: string = '\n'")
               .Stateful()
               .InferShape(PrintV2Shape)
               .Doc("Writes a string and `end` to stderr, stdout or a file."));
  ops->Add(OpSpec("Switch")
               .In("data: T, pred: bool")
               .Out("output_false: T, output_true: T")
               .Attr("T: type")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kSwitch)
               .InferShape(SwitchShape)
               .Gradient(SwitchGradient)
               .Doc("Forwards `data` to one of two outputs. The other output is dead."));
  ops->Add(OpSpec("RefSwitch")
               .In("data: Ref(T), pred: bool")
               .Out("output_false: Ref(T), output_true: Ref(T)")
               .Attr("T: type")
               .AllowsUninitializedInput()
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kSwitch)
               .InferShape(SwitchShape)
               .Gradient(SwitchGradient)
               .Doc("Forwards a reference to one of two outputs. The other output is dead."));
  ops->Add(OpSpec("_SwitchN")
               .In("data: T, output_index: int32")
               .Out("outputs: num_outs * T")
               .Attr("num_outs: int >= 1")
               .Attr("T: type")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kSwitch)
               .InferShape(SwitchNShape)
               .Doc("Forwards `data` to one of several outputs; an index out of range selects the "
                    "last one. The other outputs are dead."));
  ops->Add(OpSpec("Merge")
               .In("inputs: N * T")
               .Out("output: T, value_index: int32")
               .Attr("T: type")
               .Attr("N: int >= 1")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kMerge)
               .InferShape(MergeShape)
               .Gradient(MergeGradient)
               .Doc("Returns the first input that is not dead, and its index."));
  ops->Add(OpSpec("RefMerge")
               .In("inputs: Ref(N * T)")
               .Out("output: Ref(T), value_index: int32")
               .Attr("T: type")
               .Attr("N: int >= 1")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kMerge)
               .InferShape(MergeShape)
               .Gradient(MergeGradient)
               .Doc("Returns the first input that is not dead, a reference, and its index."));
  ops->Add(OpSpec("RefSelect")
               .In("index: int32, inputs: Ref(N * T)")
               .Out("output: Ref(T)")
               .Attr("T: type")
               .Attr("N: int >= 1")
               .InferShape(RefSelectShape)
               .Doc("Returns the reference with this index."));
  ops->Add(OpSpec("RefIdentity")
               .In("input: Ref(T)")
               .Out("output: Ref(T)")
               .Attr("T: type")
               .AllowsUninitializedInput()
               .Moves(Movement::kIdentity)
               .InferShape(IdentityShape)
               .Gradient(PassGradient)
               .Doc("Returns the reference unchanged."));
  ops->Add(OpSpec("DebugGradientRefIdentity")
               .In("input: Ref(T)")
               .Out("output: Ref(T)")
               .Attr("T: type")
               .AllowsUninitializedInput()
               .Moves(Movement::kIdentity)
               .InferShape(IdentityShape)
               .Gradient(PassGradient)
               .Doc("Returns the reference unchanged. TensorFlow's debugger inserts it to watch a "
                    "gradient."));
  ops->Add(OpSpec("Enter")
               .In("data: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("frame_name: string")
               .Attr("is_constant: bool = false")
               .Attr("parallel_iterations: int = 10")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kEnter)
               .InferShape(EnterShape)
               .Gradient(EnterGradient)
               .Doc("Makes a value available in the loop frame `frame_name`."));
  ops->Add(OpSpec("Exit")
               .In("data: T")
               .Out("output: T")
               .Attr("T: type")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kExit)
               .InferShape(IdentityShape)
               .Gradient(ExitGradient)
               .Doc("Makes a value of a loop frame available outside of it."));
  ops->Add(OpSpec("NextIteration")
               .In("data: T")
               .Out("output: T")
               .Attr("T: type")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kNextIteration)
               .InferShape(IdentityShape)
               .Gradient(PassGradient)
               .Doc("Makes a value available to the next iteration of its loop."));
  ops->Add(OpSpec("LoopCond")
               .In("input: bool")
               .Out("output: bool")
               .Flow(ControlFlow::kLoopCond)
               .InferShape(LoopCondShape)
               .NotDifferentiable()
               .Doc("Returns the input. Marks the condition of a loop."));
  ops->Add(OpSpec("RefEnter")
               .In("data: Ref(T)")
               .Out("output: Ref(T)")
               .Attr("T: type")
               .Attr("frame_name: string")
               .Attr("is_constant: bool = false")
               .Attr("parallel_iterations: int = 10")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kEnter)
               .InferShape(EnterShape)
               .Gradient(EnterGradient)
               .Doc("Makes a reference available in the loop frame `frame_name`."));
  ops->Add(OpSpec("RefExit")
               .In("data: Ref(T)")
               .Out("output: Ref(T)")
               .Attr("T: type")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kExit)
               .InferShape(IdentityShape)
               .Gradient(ExitGradient)
               .Doc("Makes a reference in a loop frame available outside of it."));
  ops->Add(OpSpec("RefNextIteration")
               .In("data: Ref(T)")
               .Out("output: Ref(T)")
               .Attr("T: type")
               .Moves(Movement::kForward)
               .Flow(ControlFlow::kNextIteration)
               .InferShape(IdentityShape)
               .Gradient(PassGradient)
               .Doc("Makes a reference available to the next iteration of its loop."));
}

// ---- builders

Operation NoOp(Graph& graph, absl::string_view name) {
  return Operation(AddNode(graph, "NoOp", {}, {}, name));
}

Operation Group(Graph& graph, const std::vector<Operation>& ops, absl::string_view name) {
  return GroupOps(graph, ops, name.empty() ? "group_deps" : name);
}

Output WithDependencies(const std::vector<Operation>& ops, Output x, absl::string_view name) {
  if (!x.valid()) return {};
  const ColocateWith beside(x.graph(), x.node);
  const ControlDependencies after(x.graph(), ops);
  return Identity(x, name.empty() ? "control_dependency" : name);
}

Outputs Tuple(Graph& graph, const Outputs& tensors) {
  Outputs out;
  for (const Grad& g : GateGrads(graph, Grads(tensors.begin(), tensors.end())))
    out.push_back(g.dense());
  return out;
}

Operation ControlTrigger(Graph& graph, absl::string_view name) {
  return Operation(AddNode(graph, "ControlTrigger", {}, {}, name));
}

SwitchResult Switch(Output data, Output pred, absl::string_view name) {
  const Outputs sides = AllOutputs(AddNode("Switch", {data, pred}, {}, name), 2);
  return {sides[0], sides[1]};
}

MergeResult Merge(const Outputs& inputs, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("Merge", {inputs}, {}, name), 2);
  return {r[0], r[1]};
}

Output Enter(Output data, absl::string_view frame_name, const EnterOptions& options,
             absl::string_view name) {
  return AddOp("Enter", {data},
               {{"frame_name", frame_name},
                {"is_constant", options.is_constant},
                {"parallel_iterations", options.parallel_iterations}},
               name);
}

Output Exit(Output data, absl::string_view name) { return AddOp("Exit", {data}, {}, name); }
Output NextIteration(Output data, absl::string_view name) {
  return AddOp("NextIteration", {data}, {}, name);
}
Output LoopCond(Output input, absl::string_view name) {
  return AddOp("LoopCond", {input}, {}, name);
}

Operation Assert(Output condition, const Outputs& data, int64_t summarize, absl::string_view name) {
  return Operation(AddNode("Assert", {condition, data}, {{"summarize", summarize}}, name));
}

Output Print(Output x, const Outputs& data, const PrintOptions& options, absl::string_view name) {
  return AddOp("Print", {x, data},
               {{"message", options.message},
                {"first_n", options.first_n},
                {"summarize", options.summarize}},
               name);
}

Operation PrintV2(Output text, absl::string_view output_stream, absl::string_view end,
                  absl::string_view name) {
  return Operation(
      AddNode("PrintV2", {text}, {{"output_stream", output_stream}, {"end", end}}, name));
}

}  // namespace weir
