#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

// TensorFlow's shape functions declare [2] for the handle, which is a scalar at run time.
absl::Status StackShape(ShapeContext& c) {
  return c.num_inputs() > 0 ? c.WithRank(0, 0).status() : absl::OkStatus();
}

absl::Status PushShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

}  // namespace

void AddStackOps(OpRegistry* ops) {
  ops->Add(OpSpec("StackV2")
               .In("max_size: int32")
               .Out("handle: resource")
               .Attr("elem_type: type")
               .Attr("stack_name: string = ''")
               .Stateful()
               .Uses({.kind = ContainerUse::Kind::kMakes})
               .InferShape(StackShape)
               .NotDifferentiable()
               .Doc("Creates a stack that is private to the step. It holds up to `max_size` "
                    "values, or any number if that is negative."));
  ops->Add(OpSpec("StackPushV2")
               .In("handle: resource, elem: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("swap_memory: bool = false")
               .Stateful()
               .Moves(Movement::kForward)
               .Uses({.kind = ContainerUse::Kind::kPuts, .value = 1})
               .InferShape(PushShape)
               .NotDifferentiable()
               .Doc("Pushes a value onto a stack and returns it."));
  ops->Add(OpSpec("StackPopV2")
               .In("handle: resource")
               .Out("elem: elem_type")
               .Attr("elem_type: type")
               .Stateful()
               .Moves(Movement::kStored)
               .Uses({.kind = ContainerUse::Kind::kTakes})
               .InferShape(UnknownShape)
               .NotDifferentiable()
               .Doc("Pops the last value from a stack."));
  ops->Add(OpSpec("StackCloseV2")
               .In("handle: resource")
               .Stateful()
               .Uses({.kind = ContainerUse::Kind::kObserves})
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("Frees the values of a stack."));
  ops->Add(OpSpec("Stack")
               .Out("handle: Ref(string)")
               .Attr("elem_type: type")
               .Attr("stack_name: string = ''")
               .Stateful()
               .Uses({.kind = ContainerUse::Kind::kMakes})
               .InferShape(StackShape)
               .NotDifferentiable()
               .Doc("The ref form of StackV2, for any number of values."));
  ops->Add(OpSpec("StackPush")
               .In("handle: Ref(string), elem: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("swap_memory: bool = false")
               .Moves(Movement::kForward)
               .Uses({.kind = ContainerUse::Kind::kPuts, .value = 1})
               .InferShape(PushShape)
               .NotDifferentiable()
               .Doc("The ref form of StackPushV2."));
  ops->Add(OpSpec("StackPop")
               .In("handle: Ref(string)")
               .Out("elem: elem_type")
               .Attr("elem_type: type")
               .Moves(Movement::kStored)
               .Uses({.kind = ContainerUse::Kind::kTakes})
               .InferShape(UnknownShape)
               .NotDifferentiable()
               .Doc("The ref form of StackPopV2."));
  ops->Add(OpSpec("StackClose")
               .In("handle: Ref(string)")
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("The ref form of StackCloseV2."));
}

}  // namespace weir
