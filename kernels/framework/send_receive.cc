#include <memory>

#include "absl/strings/str_format.h"
#include "weir/core/runtime/rendezvous.h"
#include "weir/kernels/lib/registry.h"

// Send and Recv: the two ends of an edge between tasks. They run when their inputs are dead too,
// since the other end waits for the news.
namespace weir {

namespace {

// What both ends know of the edge: its key, but for the frame and iteration.
struct Edge {
  RendezvousKey key;

  explicit Edge(const Node& node) {
    key.send_device = node.attr<std::string>("send_device");
    key.receive_device = node.attr<std::string>("recv_device");
    key.incarnation = static_cast<uint64_t>(node.attr<int64_t>("send_device_incarnation"));
    key.edge = node.attr<std::string>("tensor_name");
    key.text = absl::StrFormat("%s;%016x;%s;%s;", key.send_device, key.incarnation,
                               key.receive_device, key.edge);
  }
  RendezvousKey In(const StepFrame& frame) const {
    RendezvousKey out = key;
    absl::StrAppend(&out.text, frame.id, ":", frame.iteration);
    return out;
  }
};

absl::StatusOr<Rendezvous*> RendezvousOf(const KernelContext& c) {
  if (c.step().rendezvous != nullptr) return c.step().rendezvous;
  return FailedPrecondition("The step has no parts on other tasks (RunOptions::rendezvous)");
}

absl::StatusOr<Kernel> MakeSend(const KernelInit& init) {
  return Kernel([edge = Edge(init.node)](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(Rendezvous* const rendezvous, RendezvousOf(c));
    SentValue sent;
    sent.is_dead = c.input_is_dead(0);
    if (!sent.is_dead) {
      WEIR_ASSIGN_OR_RETURN(sent.value, c.Own(c.input(0)));
    }
    return rendezvous->Send(edge.In(c.frame()), std::move(sent));
  });
}

absl::Status SetReceived(KernelContext& c, absl::StatusOr<SentValue> received) {
  WEIR_RETURN_IF_ERROR(received.status());
  if (received->is_dead) {
    c.SetOutputDead(0);
    return absl::OkStatus();
  }
  const DataType type = c.node().output_type(0);
  if (received->value.dtype() != type) {
    return InvalidArgument("Received ", received->value.Description(), ", but the edge is of type ",
                           DataTypeName(type));
  }
  c.SetOutput(0, std::move(received->value));
  return absl::OkStatus();
}

void Receive(KernelContext& c, const Edge& edge, Kernel::Done done) {
  const absl::StatusOr<Rendezvous*> rendezvous = RendezvousOf(c);
  if (!rendezvous.ok()) return done(rendezvous.status());
  (*rendezvous)
      ->Receive(edge.In(c.frame()), c.cancellation(),
                [&c, done = std::move(done)](absl::StatusOr<SentValue> received) {
                  done(SetReceived(c, std::move(received)));
                });
}

absl::StatusOr<Kernel> MakeReceive(const KernelInit& init) {
  return Kernel([edge = Edge(init.node)](KernelContext& c, Kernel::Done done) {
    Receive(c, edge, std::move(done));
  });
}

}  // namespace

void AddSendReceiveKernels(KernelRegistry* r) {
  for (const char* op : {"_Send", "_HostSend", "Send"}) r->Add(op, kCpu, MakeSend).AcceptsDead();
  for (const char* op : {"_Recv", "_HostRecv", "Recv"}) r->Add(op, kCpu, MakeReceive).AcceptsDead();
}

}  // namespace weir
