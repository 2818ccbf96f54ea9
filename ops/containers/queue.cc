#include "weir/ops/containers/queue.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/containers/queue_internal.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

Queue Queue::Make(Graph& graph, absl::string_view kind, int64_t capacity, const DataTypes& types,
                  const QueueOptions& options, Attrs attrs, absl::string_view name) {
  Attrs all = {{"component_types", types},
               {"shapes", options.shapes},
               {"capacity", capacity},
               {"container", graph.context().container},
               {"shared_name", options.shared_name}};
  all.insert(all.end(), attrs.begin(), attrs.end());
  const std::string op = absl::StrCat(kind, options.use_resource ? "V2" : "");
  Queue queue(Output(AddNode(graph, op, {}, all, name)), types, options.shapes);
  if (kind == "PriorityQueue") {
    queue.types_.insert(queue.types_.begin(), DT_INT64);
    if (!queue.shapes_.empty()) queue.shapes_.insert(queue.shapes_.begin(), Shape());
  }
  return queue;
}

Queue Queue::Fifo(Graph& graph, int64_t capacity, const DataTypes& types,
                  const QueueOptions& options, absl::string_view name) {
  return Make(graph, "FIFOQueue", capacity, types, options, {}, name.empty() ? "fifo_queue" : name);
}

Queue Queue::PaddingFifo(Graph& graph, int64_t capacity, const DataTypes& types,
                         const QueueOptions& options, absl::string_view name) {
  return Make(graph, "PaddingFIFOQueue", capacity, types, options, {},
              name.empty() ? "padding_fifo_queue" : name);
}

Queue Queue::RandomShuffle(Graph& graph, int64_t capacity, int64_t min_after_dequeue,
                           const DataTypes& types, const QueueOptions& options,
                           std::optional<int64_t> seed, absl::string_view name) {
  const auto [seed1, seed2] = graph.NextSeed(seed);
  return Make(graph, "RandomShuffleQueue", capacity, types, options,
              {{"min_after_dequeue", min_after_dequeue}, {"seed", seed1}, {"seed2", seed2}},
              name.empty() ? "random_shuffle_queue" : name);
}

Queue Queue::Priority(Graph& graph, int64_t capacity, const DataTypes& types,
                      const QueueOptions& options, absl::string_view name) {
  return Make(graph, "PriorityQueue", capacity, types, options, {},
              name.empty() ? "priority_queue" : name);
}

Node* Queue::Add(absl::string_view op, std::vector<Arg> args, Attrs attrs, absl::string_view suffix,
                 absl::string_view name) const {
  if (!handle_.valid()) return nullptr;
  args.insert(args.begin(), handle_);
  const std::string full = absl::StrCat(op, handle_.dtype() == DT_RESOURCE ? "V2" : "");
  const std::string fallback = absl::StrCat(LastNameComponent(handle_.node->name()), suffix);
  return AddNode(full, args, attrs, name.empty() ? absl::string_view(fallback) : name);
}

Operation Queue::Enqueue(const Outputs& element, absl::string_view name) const {
  return Operation(Add("QueueEnqueue", {element}, {}, "_enqueue", name));
}

Operation Queue::EnqueueMany(const Outputs& batch, absl::string_view name) const {
  return Operation(Add("QueueEnqueueMany", {batch}, {}, "_EnqueueMany", name));
}

Outputs Queue::Components(Node* node, const Shape& front) const {
  Outputs out = AllOutputs(node, types_.size());
  for (size_t i = 0; node != nullptr && i < shapes_.size(); ++i) {
    Graph& graph = node->graph();
    graph.Fail(graph.RefineShape(out[i], front.Concatenate(shapes_[i])));
  }
  return out;
}

Outputs Queue::Dequeue(absl::string_view name) const {
  return Components(Add("QueueDequeue", {}, {{"component_types", types_}}, "_Dequeue", name),
                    Shape());
}

Outputs Queue::TakeMany(absl::string_view op, Output n, absl::string_view suffix,
                        absl::string_view name) const {
  return Components(Add(op, {n}, {{"component_types", types_}}, suffix, name),
                    Shape({Shape::kUnknown}));
}

Outputs Queue::TakeMany(absl::string_view op, int32_t n, absl::string_view suffix,
                        absl::string_view name) const {
  if (!handle_.valid()) return AllOutputs(nullptr, types_.size());
  Graph& graph = handle_.graph();
  const NameScope scope(graph, name.empty()
                                   ? absl::StrCat(LastNameComponent(handle_.node->name()), suffix)
                                   : std::string(name));
  return TakeMany(op, Const(graph, n, "n"), suffix, scope.name());
}

Outputs Queue::DequeueMany(Output n, absl::string_view name) const {
  return TakeMany("QueueDequeueMany", n, "_DequeueMany", name);
}

Outputs Queue::DequeueMany(int32_t n, absl::string_view name) const {
  Outputs out = TakeMany("QueueDequeueMany", n, "_DequeueMany", name);
  for (const Output& component : out) {
    if (!component.valid() || !component.shape().has_rank()) continue;
    Graph& graph = component.graph();
    const Shape exact = Shape({n}).Concatenate(component.shape().Sub(1));
    graph.Fail(graph.RefineShape(component, exact));
  }
  return out;
}

Outputs Queue::DequeueUpTo(Output n, absl::string_view name) const {
  return TakeMany("QueueDequeueUpTo", n, "_DequeueUpTo", name);
}

Outputs Queue::DequeueUpTo(int32_t n, absl::string_view name) const {
  return TakeMany("QueueDequeueUpTo", n, "_DequeueUpTo", name);
}

Operation Queue::Close(bool cancel_pending_enqueues, absl::string_view name) const {
  return Operation(Add("QueueClose", {}, {{"cancel_pending_enqueues", cancel_pending_enqueues}},
                       "_Close", name));
}

Output Queue::IsClosed(absl::string_view name) const {
  return Output(Add("QueueIsClosed", {}, {}, "_Is_Closed", name));
}

Output Queue::Size(absl::string_view name) const {
  return Output(Add("QueueSize", {}, {}, "_Size", name));
}

namespace {

void AddCreators(const HandleForm& form, OpRegistry* ops) {
  const auto elements = [](OpSpec& spec) -> OpSpec& {
    return spec.Attr("component_types: list(type) >= 1")
        .Attr("shapes: list(shape) >= 0 = []")
        .Attr("capacity: int = -1");
  };
  const auto maker = [&](const char* kind) { return HandleCreatorSpec(kind, form, "handle"); };
  OpSpec fifo = maker("FIFOQueue"), padding = maker("PaddingFIFOQueue");
  OpSpec shuffle = maker("RandomShuffleQueue"), priority = maker("PriorityQueue");
  ops->Add(AddSharingAttrs(elements(fifo))
               .Doc("Creates a queue that returns tuples in first-in first-out order."));
  ops->Add(AddSharingAttrs(elements(padding))
               .Doc("Creates a queue whose elements may differ in shape. Batches of elements are "
                    "padded with zeros."));
  ops->Add(AddSharingAttrs(elements(shuffle)
                               .Attr("min_after_dequeue: int = 0")
                               .Attr("seed: int = 0")
                               .Attr("seed2: int = 0"))
               .Doc("Creates a queue that returns tuples in random order and retains at least "
                    "`min_after_dequeue` of them until it is closed."));
  ops->Add(AddSharingAttrs(priority.Attr("component_types: list(type) >= 0 = []")
                               .Attr("shapes: list(shape) >= 0")
                               .Attr("capacity: int = -1"))
               .Doc("Creates a queue that returns the tuple with the smallest first component, an "
                    "int64, first."));
}

OpSpec UserSpec(const char* op, const HandleForm& form, absl::string_view inputs = {}) {
  return HandleUserSpec(op, form, "handle", inputs);
}

void AddTransferOps(const HandleForm& form, OpRegistry* ops) {
  for (const auto& [op, doc] : {std::pair("QueueEnqueue", "Enqueues a tuple."),
                                std::pair("QueueEnqueueMany", "Enqueues the rows of tensors.")}) {
    ops->Add(UserSpec(op, form, "components: Tcomponents")
                 .Attr("Tcomponents: list(type) >= 1")
                 .Attr("timeout_ms: int = -1")
                 .Waits(WaitsFor::kRoom)
                 .InferShape(NoOutputs)
                 .Doc(doc));
  }
  struct DequeueOp {
    const char *op, *inputs, *doc;
  };
  for (const auto& [op, inputs, doc] :
       {DequeueOp{"QueueDequeue", "", "Dequeues a tuple."},
        DequeueOp{"QueueDequeueMany", "n: int32", "Dequeues a batch of n tuples."},
        DequeueOp{
            "QueueDequeueUpTo", "n: int32",
            "Dequeues a batch of n tuples, or of the remaining ones once the queue is closed."}}) {
    ops->Add(UserSpec(op, form, inputs)
                 .Out("components: component_types")
                 .Attr("component_types: list(type) >= 1")
                 .Attr("timeout_ms: int = -1")
                 .Waits(WaitsFor::kValue)
                 .InferShape(UnknownShape)
                 .Doc(doc));
  }
}

}  // namespace

absl::Status HandleShape(ShapeContext& c) {
  c.set_output(0, c.node().output_type(0) == DT_RESOURCE ? Shape() : Shape({2}));
  return absl::OkStatus();
}

OpSpec HandleCreatorSpec(absl::string_view op, const HandleForm& form, absl::string_view handle) {
  OpSpec spec(absl::StrCat(op, form.version));
  spec.Out(absl::StrCat(handle, ": ", form.handle)).Stateful();
  spec.InferShape(HandleShape).NotDifferentiable();
  return spec;
}

OpSpec HandleUserSpec(absl::string_view op, const HandleForm& form, absl::string_view handle,
                      absl::string_view inputs) {
  OpSpec spec(absl::StrCat(op, form.version));
  spec.In(absl::StrCat(handle, ": ", form.handle, inputs.empty() ? "" : ", ", inputs));
  if (form.is_resource) spec.Stateful();
  spec.NotDifferentiable();
  return spec;
}

ShapeFn RankedIfResource(const HandleForm& form, absl::string_view ranks, ShapeFn rule) {
  return form.is_resource ? Ranked(ranks, std::move(rule)) : rule;
}

OpSpec& AddSharingAttrs(OpSpec& spec) {
  return spec.Attr("container: string = ''").Attr("shared_name: string = ''");
}

std::string LastNameComponent(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

void AddQueueOps(OpRegistry* ops) {
  for (const HandleForm& form : kHandleForms) {
    AddCreators(form, ops);
    AddTransferOps(form, ops);
    ops->Add(UserSpec("QueueClose", form)
                 .Attr("cancel_pending_enqueues: bool = false")
                 .InferShape(NoOutputs)
                 .Doc("Closes a queue, which then accepts no more elements."));
    ops->Add(UserSpec("QueueIsClosed", form)
                 .Out("is_closed: bool")
                 .InferShape(ScalarShape)
                 .Doc("Returns whether a queue is closed."));
    ops->Add(UserSpec("QueueSize", form)
                 .Out("size: int32")
                 .InferShape(ScalarShape)
                 .Doc("Returns the number of elements in a queue."));
  }
}

}  // namespace weir
