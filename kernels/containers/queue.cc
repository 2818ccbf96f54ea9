#include "weir/kernels/containers/queue.h"

#include "absl/strings/strip.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Queues, by a resource handle or a reference: both are the same scalar handle here.
namespace weir {

namespace {

absl::StatusOr<Kernel> MakeQueue(const KernelInit& init) {
  const Node& node = init.node;
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameOfResource(node));
  QueueSpec spec;
  spec.kind = std::string(absl::StripSuffix(node.op_name(), "V2"));
  spec.name = name.name;
  spec.container = name.container;
  spec.is_own = name.is_own;
  spec.types = init.attr<DataTypes>("component_types");
  spec.shapes = init.attr<std::vector<Shape>>("shapes");
  WEIR_ASSIGN_OR_RETURN(const int64_t capacity, NarrowAttr(node, "capacity"));
  if (capacity >= 0) spec.capacity = capacity;
  spec.min_after_dequeue = node.attr_or<int64_t>("min_after_dequeue", 0);
  spec.seed = node.attr_or<int64_t>("seed", 0);
  spec.seed2 = node.attr_or<int64_t>("seed2", 0);
  if (spec.kind == "PriorityQueue") {
    spec.types.insert(spec.types.begin(), DT_INT64);
    if (!spec.shapes.empty()) spec.shapes.insert(spec.shapes.begin(), Shape());
  }
  WEIR_RETURN_IF_ERROR(spec.Check());
  const auto queue =
      name.SelectMap(init.resources).LookupOrCreate<QueueState>(name.container, name.name, [&] {
        return std::make_shared<QueueState>(spec);
      });
  WEIR_RETURN_IF_ERROR(queue->CheckSame(spec));
  return Kernel::Constant(HandleTo(init.device, name, queue));
}

void Enqueue(KernelContext& c, bool many, Kernel::Done done) {
  const auto queue = c.resource<QueueState>(0);
  if (!queue.ok()) return done(queue.status());
  Tensors tuple;
  for (int i = 1; i < c.num_inputs(); ++i) {
    absl::StatusOr<Tensor> component = many ? c.input(i) : c.Own(c.input(i));
    if (!component.ok()) return done(component.status());
    tuple.push_back(*std::move(component));
  }
  const absl::Status fits = many ? (*queue)->CheckBatch(tuple) : (*queue)->CheckElement(tuple);
  if (!fits.ok()) return done(fits);
  std::vector<Tensors> elements;
  if (many) {
    absl::StatusOr<std::vector<Tensors>> rows = RowsOf(tuple);
    if (!rows.ok()) return done(rows.status());
    elements = *std::move(rows);
    if (elements.empty()) return done(absl::OkStatus());
  } else {
    elements.push_back(std::move(tuple));
  }
  (*queue)->Enqueue(std::move(elements), c.cancellation(),
                    [done = std::move(done), keep = *queue](absl::Status s) { done(s); });
}

// Returns the queue at input 0, if its component types are those of the node.
absl::StatusOr<std::shared_ptr<QueueState>> QueueFor(KernelContext& c, const DataTypes& types) {
  WEIR_ASSIGN_OR_RETURN(auto queue, c.resource<QueueState>(0));
  WEIR_RETURN_IF_ERROR(CheckTypes(types, queue->spec().types));
  return queue;
}

QueueState::TakeCallback WriteOutputs(KernelContext& c, std::shared_ptr<QueueState> keep,
                                      Kernel::Done done) {
  return [&c, keep = std::move(keep), done = std::move(done)](absl::StatusOr<Tensors> taken) {
    for (size_t i = 0; taken.ok() && i < taken->size(); ++i)
      c.SetOutput(static_cast<int>(i), std::move((*taken)[i]));
    done(taken.status());
  };
}

void Dequeue(KernelContext& c, const DataTypes& types, Kernel::Done done) {
  const auto queue = QueueFor(c, types);
  if (!queue.ok()) return done(queue.status());
  (*queue)->Dequeue(c.cancellation(), WriteOutputs(c, *queue, std::move(done)));
}

void DequeueMany(KernelContext& c, const DataTypes& types, bool allow_fewer, Kernel::Done done) {
  const auto queue = QueueFor(c, types);
  if (!queue.ok()) return done(queue.status());
  const absl::StatusOr<int64_t> n = ReadOneInt(c.input(1), "n");
  if (!n.ok()) return done(n.status());
  if (*n < 0) {
    return done(InvalidArgument(allow_fewer ? "DequeueUpToOp" : "DequeueManyOp", " requested ", *n,
                                " < 0 elements"));
  }
  (*queue)->DequeueMany(*n, allow_fewer, c.cancellation(),
                        WriteOutputs(c, *queue, std::move(done)));
}

absl::Status CheckTimeout(const KernelInit& init) {
  if (init.attr<int64_t>("timeout_ms") == -1) return absl::OkStatus();
  return InvalidArgument("Timeout not supported yet.");
}

template <bool kMany>
absl::StatusOr<Kernel> MakeEnqueue(const KernelInit& init) {
  WEIR_RETURN_IF_ERROR(CheckTimeout(init));
  return Kernel(
      [](KernelContext& c, Kernel::Done done) -> void { Enqueue(c, kMany, std::move(done)); });
}

absl::StatusOr<Kernel> MakeDequeue(const KernelInit& init) {
  WEIR_RETURN_IF_ERROR(CheckTimeout(init));
  return Kernel(
      [types = init.attr<DataTypes>("component_types")](
          KernelContext& c, Kernel::Done done) -> void { Dequeue(c, types, std::move(done)); });
}

template <bool kAllowFewer>
absl::StatusOr<Kernel> MakeDequeueMany(const KernelInit& init) {
  WEIR_RETURN_IF_ERROR(CheckTimeout(init));
  return Kernel([types = init.attr<DataTypes>("component_types")](KernelContext& c,
                                                                  Kernel::Done done) -> void {
    DequeueMany(c, types, kAllowFewer, std::move(done));
  });
}

absl::StatusOr<Kernel> MakeClose(const KernelInit& init) {
  const bool cancel = init.attr<bool>("cancel_pending_enqueues");
  return Kernel([cancel](KernelContext& c, Kernel::Done done) -> void {
    const auto queue = c.resource<QueueState>(0);
    if (!queue.ok()) return done(queue.status());
    (*queue)->Close(cancel, c.cancellation(),
                    [done = std::move(done), keep = *queue](absl::Status s) { done(s); });
  });
}

absl::Status Size(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto queue, c.resource<QueueState>(0));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int32_t>() = static_cast<int32_t>(queue->size());
  return absl::OkStatus();
}

absl::Status IsClosed(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto queue, c.resource<QueueState>(0));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<bool>() = queue->is_closed();
  return absl::OkStatus();
}

}  // namespace

void AddQueueKernels(KernelRegistry* r) {
  for (const char* version : {"", "V2"}) {
    const auto name = [&](const char* op) { return absl::StrCat(op, version); };
    for (const char* kind :
         {"FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue"})
      r->Add(name(kind), kCpu, MakeQueue);
    r->Add(name("QueueEnqueue"), kCpu, MakeEnqueue<false>);
    r->Add(name("QueueEnqueueMany"), kCpu, MakeEnqueue<true>);
    r->Add(name("QueueDequeue"), kCpu, MakeDequeue);
    r->Add(name("QueueDequeueMany"), kCpu, MakeDequeueMany<false>);
    r->Add(name("QueueDequeueUpTo"), kCpu, MakeDequeueMany<true>);
    r->Add(name("QueueClose"), kCpu, MakeClose);
    r->Add(name("QueueSize"), kCpu, Size);
    r->Add(name("QueueIsClosed"), kCpu, IsClosed);
  }
}

}  // namespace weir
