#include "weir/core/shape_context.h"
#include "weir/ops/registry.h"

namespace weir {

namespace {

// TensorFlow's rules say [2] for the handle, which is a scalar when run.
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
               .InferShape(StackShape)
               .NotDifferentiable()
               .Doc("A stack that the step has to itself; holds `max_size` values, or any number "
                    "if that is negative."));
  ops->Add(OpSpec("StackPushV2")
               .In("handle: resource, elem: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("swap_memory: bool = false")
               .Stateful()
               .InferShape(PushShape)
               .NotDifferentiable()
               .Doc("Puts a value on a stack; returns it."));
  ops->Add(OpSpec("StackPopV2")
               .In("handle: resource")
               .Out("elem: elem_type")
               .Attr("elem_type: type")
               .Stateful()
               .InferShape(UnknownShape)
               .NotDifferentiable()
               .Doc("Takes the last value from a stack."));
  ops->Add(OpSpec("StackCloseV2")
               .In("handle: resource")
               .Stateful()
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("Frees what a stack holds."));
  ops->Add(OpSpec("Stack")
               .Out("handle: Ref(string)")
               .Attr("elem_type: type")
               .Attr("stack_name: string = ''")
               .Stateful()
               .InferShape(StackShape)
               .NotDifferentiable()
               .Doc("StackV2 by reference, for any number of values."));
  ops->Add(OpSpec("StackPush")
               .In("handle: Ref(string), elem: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("swap_memory: bool = false")
               .InferShape(PushShape)
               .NotDifferentiable()
               .Doc("StackPushV2 by reference."));
  ops->Add(OpSpec("StackPop")
               .In("handle: Ref(string)")
               .Out("elem: elem_type")
               .Attr("elem_type: type")
               .InferShape(UnknownShape)
               .NotDifferentiable()
               .Doc("StackPopV2 by reference."));
  ops->Add(OpSpec("StackClose")
               .In("handle: Ref(string)")
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("StackCloseV2 by reference."));
}

}  // namespace weir
