#include "weir/ops/array.h"
#include "weir/ops/control_flow.h"
#include "weir/ops/gradient_loops_internal.h"

// Gradient rules of the nodes that loops and branches consist of.
namespace weir {

namespace {

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

}  // namespace

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

}  // namespace weir
