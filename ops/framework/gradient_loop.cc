#include "weir/ops/framework/gradient_loops_internal.h"

#include <utility>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/lib/array.h"

namespace weir {

// Gradients of a v1 loop, built as TensorFlow 1's control_flow_state.py builds them.
//
//     forward:    n -> Enter -> Merge -> Switch -> +1 -> NextIteration      counts the iterations
//     backward:   n -> Enter -> Merge -> (>= 1) -> Switch -> -1 -> NextIteration
//
// In the backward loop the gradient of each Exit enters through an Enter, is propagated through the
// gradients of the body's nodes, and the gradient of each Enter leaves through an Exit. A Switch
// becomes a Merge and a Merge becomes a Switch. A constant Enter, which the forward loop only
// reads, has a gradient in every iteration; a loop variable of the backward loop accumulates these.
//
// A gradient may need a value of the corresponding forward iteration. Then the forward loop pushes
// the value on a stack in every iteration and the backward loop pops it: last in, first out is the
// order that the backward loop needs. Pushes are tied to the forward counter and pops to the
// backward counter by control edges, so that each happens once per iteration. For a value in a
// branch, which may be dead, a ControlTrigger is in between. A loop-invariant value or a constant
// needs no stack.
//
// The gradient of a nested loop is in the gradient of the outer loop. Its number of iterations is
// saved on a stack there, as are the stacks of the values it pushed.

namespace {

std::string CurrentScopeName(Graph& g) {
  return g.name_scope().substr(0, g.name_scope().size() - 1);
}

// Returns the constant Enter that a value comes from unchanged, or null.
Node* LoopConstantEnter(const Output& value) {
  Node* node = value.node;
  while (node->op_name() == "Switch" || node->op_name() == "RefSwitch" ||
         node->op_name() == "Identity" || node->op_name() == "RefIdentity") {
    node = node->input(0).node;
  }
  return IsLoopConstant(Output(node)) ? node : nullptr;
}

// Adds 1 as TensorFlow's operator does: the constant is created in the op's scope.
Output PlusOne(const Output& x) {
  const NameScope scope(x.graph(), "Add");
  return AddOp("AddV2", {x, Const(x.graph(), 1, "y")}, {}, scope.name());
}

}  // namespace

SwitchResult SwitchBeside(const Output& value, const Output& pred, absl::string_view name) {
  const PlaceWith beside(value.graph(), value.node, true);
  return Switch(value, pred, name);
}

Output DynamicShape(const Output& value) {
  return value.dtype() == DT_RESOURCE ? VariableShape(value)
                                      : ShapeTensor(value, DT_INT32, {}, /*optimize=*/false);
}

std::shared_ptr<GradientLoop> GradientLoop::Make(Graph& graph, FlowContext* forward,
                                                 GradientLoop* outer, FlowContext* base) {
  auto loop = std::make_shared<GradientLoop>(graph, forward, outer, base);
  const Output count = loop->AddForwardCounter();
  if (!count.valid()) return loop;
  loop->AddBackwardCounter(count);
  return loop;
}

GradientLoop::GradientLoop(Graph& graph, FlowContext* forward, GradientLoop* outer,
                           FlowContext* base)
    : g_(graph), stack_(FlowStack::Of(graph)), forward_(forward), outer_(outer), base_(base) {}

Output GradientLoop::AddForwardCounter() {
  const InContext around(stack_, forward_->outer != nullptr ? forward_->outer : base_);
  const Output zero = Const(g_, 0, "f_count");
  stack_.RewireNewNodes();
  if (outer_ != nullptr) {
    Node* const outer_index = outer_->forward_index_.node->input(0).node;
    g_.Fail(g_.AddControlInput(zero.node, outer_index));
  }
  const InContext inside(stack_, forward_);
  const Output enter =
      weir::Enter(zero, forward_->frame_name,
                  {.parallel_iterations = forward_->parallel_iterations}, "f_count");
  if (!enter.valid()) return {};
  g_.Fail(g_.RefineShape(enter, Shape()));
  stack_.Assign(enter.node, forward_);
  const Output merge = Merge({enter, enter}).output;
  const SwitchResult sides = Switch(merge, forward_->condition);
  if (!sides.on_true.valid()) return {};
  forward_index_ = NextIteration(PlusOne(sides.on_true));
  if (!forward_index_.valid()) return {};
  g_.Fail(g_.SetInput(merge.node, 1, forward_index_));
  forward_->enters.push_back(enter);
  return Exit(sides.on_false, "f_count");
}

void GradientLoop::AddBackwardCounter(Output count) {
  Output history;
  if (outer_ != nullptr) history = outer_->Push(count);
  FlowContext* around = forward_->outer != nullptr ? forward_->outer : base_;
  if (outer_ != nullptr) around = outer_->backward_;
  const InContext outside(stack_, around);
  backward_ = stack_.Make(FlowContext::Kind::kLoop);
  backward_->frame_name = g_.UniqueName(g_.name_scope() + forward_->frame_name);
  backward_->parallel_iterations = forward_->parallel_iterations;
  if (outer_ != nullptr) count = outer_->Pop(history, count);
  const Output one = Const(g_, 1, "b_count");
  if (count.valid() && one.valid()) CountBackward(count, one);
}

void GradientLoop::CountBackward(Output count, Output one) {
  const InContext inside(stack_, backward_);
  const Output enter = Enter(count, Shape(), "b_count");
  if (!enter.valid()) return;
  const Output merge = Merge({enter, enter}).output;
  if (!merge.valid()) return;
  backward_->pivot = merge.node;
  backward_->condition = LoopCond(AddOp("GreaterEqual", {merge, one}), "b_count");
  const SwitchResult sides = Switch(merge, backward_->condition);
  const Output index = AddOp("Sub", {sides.on_true, one});
  if (!index.valid()) return;
  stack_.RewireNewNodes();
  backward_->pivot = index.node;
  backward_index_ = NextIteration(index);
  g_.Fail(g_.SetInput(merge.node, 1, backward_index_));
  const Output end = Exit(sides.on_false, "b_count");
  if (end.valid() && outer_ != nullptr)
    g_.Fail(g_.AddControlInput(outer_->BackwardSync(), end.node));
}

Output GradientLoop::Enter(const Output& value, const Shape& shape, absl::string_view name) const {
  const Output enter = weir::Enter(value, backward_->frame_name,
                                   {.parallel_iterations = backward_->parallel_iterations}, name);
  if (!enter.valid()) return {};
  g_.Fail(g_.RefineShape(enter, shape));
  stack_.Assign(enter.node, backward_);
  backward_->enters.push_back(enter);
  return enter;
}

Node* GradientLoop::ControlTrigger(absl::string_view name, FlowContext* context) {
  const ClearControlDependencies no_controls(g_);
  const InContext outside(stack_, nullptr);
  Node* const trigger = weir::ControlTrigger(g_, name).node;
  if (trigger != nullptr) stack_.Assign(trigger, context);
  return trigger;
}

Node* GradientLoop::ForwardSync() {
  if (forward_sync_ == nullptr) {
    forward_sync_ = ControlTrigger("f_sync", forward_);
    g_.Fail(g_.AddControlInput(forward_index_.node, forward_sync_));
  }
  return forward_sync_;
}

Node* GradientLoop::BackwardSync() {
  if (backward_sync_ == nullptr) {
    backward_sync_ = ControlTrigger("b_sync", backward_);
    g_.Fail(g_.AddControlInput(backward_index_.node, backward_sync_));
  }
  return backward_sync_;
}

// ---- values of the forward loop

Output GradientLoop::PushIn(FlowContext* context, const Output& stack, const Output& value) {
  const InContext inside(stack_, context);
  return AddOp("StackPushV2", {stack, value});
}

Output GradientLoop::Push(const Output& value, bool dead_branch) {
  const ClearControlDependencies no_controls(g_);
  Output stack;
  {
    const InContext outside(stack_, base_);
    const ColocateWith beside(g_, value.node);
    stack = AddOp("StackV2", {Const(g_, -1)}, {{"elem_type", value.dtype()}}, "f_acc");
  }
  const InContext outside(stack_, nullptr);
  const Output inside = stack_.ImportValue(forward_, stack, CurrentScopeName(g_));
  if (!inside.valid()) return {};
  FlowContext* const context = stack_.OutputContextOf(value.node);
  const Output push = PushIn(dead_branch ? context->outer : context, inside, value);
  if (!push.valid()) return {};
  if (dead_branch) stack_.Assign(push.node, context);
  Node* const after = context == forward_ ? forward_index_.node : ForwardSync();
  g_.Fail(g_.AddControlInput(after, push.node));
  g_.Fail(g_.AddControlInput(push.node, forward_index_.node->input(0).node));
  return stack;
}

Output GradientLoop::Pop(const Output& stack, const Output& value, bool dead_branch) {
  const FlowContext* branch = stack_.ContextOf(value.node);
  const FlowContext* const around = stack_.ContextOf(stack.node);
  while (branch != nullptr && branch != around && branch->kind != FlowContext::Kind::kBranch)
    branch = branch->outer;
  if (branch == around) branch = nullptr;
  Output pop;
  {
    const ClearControlDependencies no_controls(g_);
    const InContext inside(stack_, backward_);
    Output from = stack;
    if (branch != nullptr) {
      Output pred;
      for (GradientLoop* loop = this; loop != nullptr && !pred.valid(); loop = loop->outer_) {
        if (const auto it = loop->history_.find(branch->pred); it != loop->history_.end())
          pred = it->second;
      }
      const SwitchResult sides = SwitchBeside(stack, pred.valid() ? pred : branch->pred, "Switch");
      from = (branch->side == 1) != dead_branch ? sides.on_true : sides.on_false;
    }
    pop = AddOp("StackPopV2", {from}, {{"elem_type", value.dtype()}});
  }
  if (!pop.valid()) return {};
  g_.Fail(g_.RefineShape(pop, value.shape()));
  if (backward_->parallel_iterations > 1) g_.Fail(g_.AddControlInput(BackwardSync(), pop.node));
  return pop;
}

Output GradientLoop::RealValue(const Output& value, const std::string& user) {
  if (const auto it = history_.find(value); it != history_.end()) return it->second;
  const NameScope scope(g_, user + "/");
  Output real, current = value;
  GradientLoop* loop = this;
  while (Node* const enter = LoopConstantEnter(current)) {
    current = enter->input(0);
    loop = loop->outer_;
    if (loop == nullptr) break;
  }
  if (loop == nullptr) {
    real = stack_.ImportValue(backward_, current, user);
  } else if (current.node->op_name() == "Const") {
    const InContext inside(stack_, backward_);
    real = Const(g_, current.node->attr<Tensor>("value"));
  } else {
    const Output stack = loop->Push(current);
    real = stack.valid() ? loop->Pop(stack, current) : Output();
    if (loop != this) real = stack_.ImportValue(backward_, real, user);
  }
  if (real.valid()) history_[value] = real;
  return real;
}

Output GradientLoop::RealPredicate(const Output& pred) {
  if (const auto it = history_.find(pred); it != history_.end()) return it->second;
  const Output stack = Push(pred);
  if (!stack.valid()) return {};
  return history_[pred] = Pop(stack, pred);
}

// ---- sums over all iterations

Output GradientLoop::ZerosToAccumulate(const Node& enter, const Output& grad) {
  if (grad.shape().IsFullyDefined()) {
    const InContext outside(stack_, OuterContext());
    return Const(g_, Tensor::Zeros(grad.dtype(), grad.shape()), "b_acc");
  }
  const Output& value = enter.input(0);
  if (outer_ == nullptr) {
    const InContext outside(stack_, OuterContext());
    return Zeros(g_, DynamicShape(value), grad.dtype());
  }
  Output shape;
  {
    const InContext around(stack_, forward_->outer);
    shape = DynamicShape(value);
  }
  const Output history = shape.valid() ? outer_->Push(shape) : Output();
  if (!history.valid()) return {};
  const InContext outside(stack_, backward_->outer);
  return Zeros(g_, outer_->Pop(history, shape), grad.dtype());
}

// Adds loop variables to the backward loop and returns their final values.
Outputs GradientLoop::AddAccumulators(const Outputs& starts, const std::vector<Shape>& shapes,
                                      const std::function<Outputs(const Outputs&)>& next) {
  Outputs enters, merges, current, exits;
  std::vector<SwitchResult> sides;
  for (size_t i = 0; i < starts.size(); ++i) {
    enters.push_back(Enter(starts[i], shapes[i], "b_acc"));
    if (!enters.back().valid()) return {};
  }
  for (const Output& enter : enters) merges.push_back(Merge({enter, enter}, "b_acc").output);
  for (const Output& merge : merges) {
    sides.push_back(Switch(merge, backward_->condition));
    current.push_back(sides.back().on_true);
  }
  Outputs rounds = next(current);
  for (Output& round : rounds) round = round.valid() ? NextIteration(round) : round;
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (!rounds[i].valid()) return {};
    g_.Fail(g_.SetInput(merges[i].node, 1, rounds[i]));
  }
  for (const SwitchResult& side : sides) exits.push_back(Exit(side.on_false, "b_acc"));
  return exits;
}

Grad GradientLoop::Accumulate(const Node& enter, const Grad& grad) {
  if (grad.is_slices()) return AccumulateRows(enter, grad.slices());
  const Output start = ZerosToAccumulate(enter, grad.dense());
  if (!start.valid()) return {};
  const Outputs sum = AddAccumulators({start}, {start.shape()}, [&](const Outputs& sums) {
    return Outputs{AddOp("AddV2", {sums[0], grad.dense()}, {}, "Add")};
  });
  return sum.empty() ? Grad() : Grad(sum[0]);
}

// Concatenates the rows of all iterations after an initial row of zeros.
Grad GradientLoop::AccumulateRows(const Node& enter, const IndexedSlices& rows) {
  Output values, indices, shape;
  {
    const InContext outside(stack_, OuterContext());
    const Shape& known = rows.values.shape();
    if (known.IsFullyDefined()) {
      const Shape one_row = Shape({1}).Concatenate(known.Sub(1));
      values = Const(g_, Tensor::Zeros(rows.values.dtype(), one_row), "b_acc");
    } else {
      const Output rest = StridedSlice(DynamicShape(enter.input(0)), {Index::Range(1, {})});
      const Output one = Ints({1}).In(g_, "concat/values_0");
      values = Zeros(g_, Concat({one, rest}, 0), rows.values.dtype());
    }
    indices = Const(g_, Tensor::Zeros(rows.indices.dtype(), {1}));
    if (rows.dense_shape.valid()) {
      shape = rows.dense_shape.shape().IsFullyDefined()
                  ? Const(g_, Tensor::Zeros(rows.dense_shape.dtype(), rows.dense_shape.shape()))
                  : ZerosLike(DynamicShape(enter.input(0)), DT_INVALID, {}, /*optimize=*/false);
    }
  }
  if (!values.valid() || !indices.valid()) return {};
  Shape longer = values.shape();
  if (longer.rank() > 0) longer.set_dim(0, Shape::kUnknown);
  Outputs starts = {indices, values};
  std::vector<Shape> shapes = {Shape({-1}), longer};
  if (shape.valid()) {
    starts.push_back(shape);
    shapes.push_back(Shape::UnknownRank());
  }
  const Outputs sums = AddAccumulators(starts, shapes, [&](const Outputs& so_far) {
    Outputs next = {Concat({so_far[0], rows.indices}, 0), Concat({so_far[1], rows.values}, 0)};
    if (shape.valid()) next.push_back(AddOp("Maximum", {rows.dense_shape, so_far[2]}));
    return next;
  });
  if (sums.empty()) return {};
  return Grad(IndexedSlices{sums[1], sums[0], shape.valid() ? sums[2] : Output()});
}

void GradientLoop::Finish() {
  for (const auto& [node, merge] : merges_) {
    if (merge.node->input(0) != merge.node->input(1)) continue;
    const Output start = merge.node->input(0);
    Output zeros;
    if (start.shape().IsFullyDefined()) {
      const InContext inside(stack_, backward_);
      zeros = NextIteration(Const(g_, Tensor::Zeros(start.dtype(), start.shape())));
    } else {
      {
        const InContext outside(stack_, OuterContext());
        zeros = Zeros(g_, DynamicShape(start.node->input(0)), start.dtype());
      }
      const InContext inside(stack_, backward_);
      zeros = zeros.valid() ? NextIteration(zeros) : Output();
    }
    if (zeros.valid()) g_.Fail(g_.SetInput(merge.node, 1, zeros));
  }
}

}  // namespace weir
