#include "weir/ops/framework/gradient_loops_internal.h"

#include <utility>

#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"

namespace weir {

namespace {

// Returns zeros of the static shape of a tensor or of a handle's variable.
Output StaticZeros(const Output& y) {
  if (y.dtype() != DT_RESOURCE) return Const(y.graph(), Tensor::Zeros(y.dtype(), y.shape()));
  const HandleData* const handle = y.handle_data();
  if (handle == nullptr || handle->dtype == DT_INVALID) return {};
  return Zeros(y.graph(), StaticVariableShape(y), handle->dtype);
}

}  // namespace

bool IsLoopExit(const Node* node) {
  return node->op_name() == "Exit" || node->op_name() == "RefExit";
}

bool IsLoopSwitch(const Node* node) {
  if (node->op_name() != "Switch" && node->op_name() != "RefSwitch") return false;
  const FlowContext* context = FlowStack::Of(node->graph()).ContextOf(node);
  return context != nullptr && context->kind == FlowContext::Kind::kLoop &&
         node->input(1) == context->condition;
}

GradientLoops::GradientLoops(Graph& graph)
    : g_(graph), stack_(FlowStack::Of(graph)), base_(stack_.current()) {}

std::vector<Node*> GradientLoops::Add(const Node* exit) {
  FlowContext* const forward = LoopAround(stack_.ContextOf(exit));
  if (forward == nullptr || loops_.contains(forward)) return {};
  if (forward->gradient != nullptr) {
    g_.Fail(Unimplemented("Second-order gradient for while loops not supported: '", exit->name(),
                          "' is the Exit of a loop that computes a gradient"));
    return {};
  }
  GradientLoop* outer = nullptr;
  if (const FlowContext* around = LoopAround(forward->outer); around != nullptr) {
    if (const auto it = loops_.find(around); it != loops_.end()) outer = it->second.get();
  }
  auto exits = std::make_unique<Exits>();
  for (const Output& e : forward->exits) exits->all.push_back(e.node);
  exits->pending = static_cast<int>(exits->all.size());
  std::shared_ptr<GradientLoop> loop = GradientLoop::Make(g_, forward, outer, base_);
  if (loop->backward() == nullptr) return {};
  loop->backward()->gradient = loop;
  exits->loop = loop.get();
  loops_[forward] = std::move(loop);
  exits_.push_back(std::move(exits));
  return exits_.back()->all;
}

GradientLoop* GradientLoops::LoopOf(const Node* node, bool before) const {
  const FlowContext* context = stack_.ContextOf(node);
  if (before && IsLoopExit(node)) context = stack_.OutputContextOf(node);
  const auto it = loops_.find(LoopAround(const_cast<FlowContext*>(context)));
  return it == loops_.end() ? nullptr : it->second.get();
}

GradientLoops::Exits* GradientLoops::ExitsOf(const Node* exit) const {
  const FlowContext* const loop = LoopAround(stack_.ContextOf(exit));
  for (const auto& exits : exits_) {
    if (exits->loop->forward() == loop) return exits.get();
  }
  return nullptr;
}

Output GradientLoops::ZerosForExit(const Output& exit) {
  const Shape& shape = exit.shape();
  GradientLoop* const outer = LoopOf(exit.node, /*before=*/true);
  if (outer == nullptr) {
    return shape.IsFullyDefined() ? Zeros(g_, shape, exit.dtype())
                                  : ZerosLike(exit, DT_INVALID, {}, /*optimize=*/false);
  }
  if (shape.IsFullyDefined()) {
    const InContext inside(stack_, outer->backward());
    return Zeros(g_, shape, exit.dtype());
  }
  Output value;
  {
    const InContext around(stack_, stack_.OutputContextOf(exit.node));
    value = DynamicShape(exit);
  }
  const Output history = value.valid() ? outer->Push(value) : Output();
  if (!history.valid()) return {};
  const InContext inside(stack_, outer->backward());
  return Zeros(g_, outer->Pop(history, value), exit.dtype());
}

// The gradient loop is open here.
Output GradientLoops::ZerosFor(const Output& y) {
  if (IsLoopSwitch(y.node)) return {};
  GradientLoop* const loop = LoopOf(y.node, /*before=*/false);
  if (loop == nullptr) return ZerosForOutput(y);
  FlowContext* const context = stack_.ContextOf(y.node);
  const bool dead = (y.node->op_name() == "Switch" || y.node->op_name() == "RefSwitch") &&
                    context->kind == FlowContext::Kind::kBranch;
  if (y.shape().IsFullyDefined() || y.dtype() == DT_RESOURCE) {
    const Output zeros = StaticZeros(y);
    if (!dead || !zeros.valid()) return zeros;
    const SwitchResult sides = SwitchBeside(zeros, loop->RealPredicate(context->pred), "Switch");
    return context->side == 1 ? sides.on_false : sides.on_true;
  }
  Output value, shape;
  if (dead) {
    {
      const InContext around(stack_, context->outer);
      const SwitchResult sides = SwitchBeside(y.node->input(0), context->pred, "Switch");
      value = context->side == 1 ? sides.on_false : sides.on_true;
      if (!value.valid()) return {};
      shape = DynamicShape(value);
    }
    stack_.Assign(value.node, context);
    stack_.Assign(shape.node, context);
  } else {
    const InContext inside(stack_, context);
    shape = DynamicShape(y);
  }
  if (!shape.valid()) return {};
  const Output history = loop->Push(shape, dead);
  if (!history.valid()) return {};
  return Zeros(g_, loop->Pop(history, shape, dead), y.dtype());
}

void GradientLoops::Finish() {
  for (const auto& exits : exits_) exits->loop->Finish();
}

}  // namespace weir
