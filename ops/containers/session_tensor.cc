#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

// Values that stay with the session and are named by handles: Python's tf.get_session_handle.
namespace weir {

namespace {

absl::Status FromHandleShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

}  // namespace

void AddSessionTensorOps(OpRegistry* ops) {
  ops->Add(OpSpec("GetSessionHandle")
               .In("value: T")
               .Out("handle: string")
               .Attr("T: type")
               .Stateful()
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Keeps a value in the session and returns its handle."));
  ops->Add(OpSpec("GetSessionHandleV2")
               .In("value: T")
               .Out("handle: resource")
               .Attr("T: type")
               .Stateful()
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("GetSessionHandle, whose result is a resource with the name of the handle."));
  ops->Add(OpSpec("GetSessionTensor")
               .In("handle: string")
               .Out("value: dtype")
               .Attr("dtype: type")
               .Stateful()
               .Moves(Movement::kStored)
               .InferShape(FromHandleShape)
               .NotDifferentiable()
               .Doc("Returns the value that a session keeps under a handle."));
  ops->Add(OpSpec("DeleteSessionTensor")
               .In("handle: string")
               .Stateful()
               .InferShape(FromHandleShape)
               .NotDifferentiable()
               .Doc("Frees the value that a session keeps under a handle."));
}

}  // namespace weir
