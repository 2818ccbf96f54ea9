#include "weir/core/graph/shape_context.h"
#include "weir/ops/containers/queue_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

OpSpec User(const char* op, absl::string_view inputs = {}) {
  return HandleUserSpec(op, kReferenceForm, "handle", inputs);
}

absl::Status InsertShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape keys, c.WithRank(1, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRankAtLeast(2, 1));
  if (!values.has_rank()) return absl::OkStatus();
  return MergeDims(keys.dim(0), values.dim(0)).status();
}

void AddMutexOps(OpRegistry* ops) {
  OpSpec mutex("MutexV2");
  ops->Add(AddSharingAttrs(mutex.Out("resource: resource"))
               .Stateful()
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns a handle to a mutex that steps can lock."));
  ops->Add(OpSpec("MutexLock")
               .In("mutex: resource")
               .Out("mutex_lock: variant")
               .Stateful()
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Waits for a mutex and locks it. The mutex remains locked as long as a copy of "
                    "the returned value exists."));
  ops->Add(OpSpec("ConsumeMutexLock")
               .In("mutex_lock: variant")
               .Stateful()
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("Releases a mutex."));
}

}  // namespace

void AddBarrierOps(OpRegistry* ops) {
  OpSpec barrier = HandleCreatorSpec("Barrier", kReferenceForm, "handle");
  ops->Add(AddSharingAttrs(barrier.Attr("component_types: list(type) >= 1")
                               .Attr("shapes: list(shape) >= 0 = []")
                               .Attr("capacity: int = -1"))
               .Doc("Returns a handle to a barrier, which assembles tuples from components that "
                    "are inserted one by one under keys."));
  ops->Add(User("BarrierInsertMany", "keys: string, values: T")
               .Attr("T: type")
               .Attr("component_index: int")
               .InferShape(InsertShape)
               .Doc("Inserts the rows of `values` as a component of the tuples with these keys."));
  ops->Add(User("BarrierTakeMany", "num_elements: int32")
               .Out("indices: int64, keys: string, values: component_types")
               .Attr("component_types: list(type) >= 1")
               .Attr("allow_small_batch: bool = false")
               .Attr("wait_for_incomplete: bool = false")
               .Attr("timeout_ms: int = -1")
               .Waits(WaitsFor::kValue)
               .InferShape(UnknownShape)
               .Doc("Takes a batch of complete tuples, in the order in which their keys were first "
                    "inserted."));
  ops->Add(User("BarrierClose")
               .Attr("cancel_pending_enqueues: bool = false")
               .InferShape(NoOutputs)
               .Doc("Closes a barrier: it accepts no new keys."));
  ops->Add(User("BarrierReadySize")
               .Out("size: int32")
               .InferShape(ScalarShape)
               .Doc("Returns the number of complete tuples in a barrier."));
  ops->Add(User("BarrierIncompleteSize")
               .Out("size: int32")
               .InferShape(ScalarShape)
               .Doc("Returns the number of incomplete tuples in a barrier."));
  AddMutexOps(ops);
}

}  // namespace weir
