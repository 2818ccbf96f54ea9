#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

// The nodes between which a value crosses from one task of a cluster to another. Whoever cuts a
// graph into the parts of tasks adds them in pairs.
namespace weir {

namespace {

// What both ends of a pair agree on.
OpSpec Pair(const char* op) {
  OpSpec spec(op);
  spec.Attr("tensor_name: string")
      .Attr("send_device: string")
      .Attr("send_device_incarnation: int")
      .Attr("recv_device: string")
      .Attr("client_terminated: bool = false")
      .Stateful()
      .CrossesTasks()
      .NotDifferentiable();
  return spec;
}

}  // namespace

void AddSendReceiveOps(OpRegistry* ops) {
  for (const char* op : {"_Send", "_HostSend", "Send"}) {
    ops->Add(Pair(op)
                 .In("tensor: T")
                 .Attr("T: type")
                 .InferShape(NoOutputs)
                 .Doc("Sends a value, dead or alive, to the part of the step on another task."));
  }
  for (const char* op : {"_Recv", "_HostRecv", "Recv"}) {
    ops->Add(Pair(op)
                 .Out("tensor: tensor_type")
                 .Attr("tensor_type: type")
                 .Doc("Waits for a value from the part of the step on another task."));
  }
}

}  // namespace weir
