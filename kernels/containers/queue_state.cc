#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "weir/kernels/containers/queue.h"
#include "weir/kernels/containers/stored_values.h"
#include "weir/kernels/lib/strided_copy.h"

namespace weir {

namespace {

absl::Status MismatchError(absl::string_view name, absl::string_view what, absl::string_view has,
                           absl::string_view wanted) {
  return InvalidArgument("Shared queue '", name, "' has ", what, " ", has, " but requested ", what,
                         " was ", wanted);
}

// Copies `from` to the start of an area of shape `dims` at `to`.
void CopyIntoLarger(const Tensor& from, absl::Span<const int64_t> dims, char* to) {
  if (from.num_elements() == 0) return;
  const int rank = from.rank();
  const auto size = static_cast<int64_t>(ElementSize(from.dtype()));
  const int64_t run = rank == 0 ? 1 : from.dim(rank - 1);
  const Dims strides = StridesOf(dims);
  Dims at(static_cast<size_t>(std::max(rank - 1, 0)), 0);
  for (int64_t begin = 0; begin < from.num_elements(); begin += run) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    CopyElements(from.dtype(), ElementAt(from, begin), to + offset * size, run);
    for (int d = rank - 2; d >= 0 && ++at[d] == from.dim(d); --d) at[d] = 0;
  }
}

// Returns the shape that all elements fit into: the declared shape, with the largest extent where
// that is unknown.
Shape EnclosingShape(const Shape& declared, const std::vector<Tensors>& elements,
                     size_t component) {
  absl::InlinedVector<int64_t, 6> dims(declared.dims().begin(), declared.dims().end());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] >= 0) continue;
    dims[d] = 0;
    for (const Tensors& element : elements)
      dims[d] = std::max(dims[d], element[component].dim(static_cast<int>(d)));
  }
  return Shape(dims);
}

absl::StatusOr<Tensor> BatchComponent(const std::vector<Tensors>& elements, size_t component,
                                      DataType dtype, const Shape& declared) {
  const Shape shape = EnclosingShape(declared, elements, component);
  WEIR_ASSIGN_OR_RETURN(
      Tensor batch,
      Tensor::Allocate(HostAllocator(), dtype,
                       Shape({static_cast<int64_t>(elements.size())}).Concatenate(shape)));
  const bool is_padded = !declared.IsFullyDefined();
  if (is_padded && IsPlain(dtype) && batch.num_bytes() > 0)
    std::memset(batch.raw(), 0, batch.num_bytes());
  if (batch.num_elements() == 0) return batch;
  const int64_t row = batch.num_elements() / batch.dim(0);
  for (size_t i = 0; i < elements.size(); ++i) {
    void* const to = ElementAt(batch, static_cast<int64_t>(i) * row);
    const Tensor& from = elements[i][component];
    if (is_padded) {
      CopyIntoLarger(from, shape.dims(), static_cast<char*>(to));
    } else {
      CopyElements(dtype, from.raw(), to, row);
    }
  }
  return batch;
}

}  // namespace

absl::Status QueueSpec::Check() const {
  if (types.empty()) return InvalidArgument("Empty component types for queue ", name);
  if (pads() && types.size() != shapes.size()) {
    return InvalidArgument("Shapes must be provided for all components, but received ",
                           types.size(), " dtypes and ", shapes.size(), " shapes.");
  }
  if (!shapes.empty() && types.size() != shapes.size()) {
    return InvalidArgument("Different number of component types.  Types: ", TypeList(types),
                           ", Shapes: ", ShapeList(shapes));
  }
  for (const Shape& shape : shapes) {
    if (!shape.has_rank())
      return InvalidArgument("shape ", shape.ToString(), " must have known rank.");
    if (!pads() && !shape.IsFullyDefined())
      return InvalidArgument("shape ", shape.ToString(), " must be fully defined.");
  }
  if (min_after_dequeue < 0)
    return InvalidArgument("min_after_dequeue ", min_after_dequeue, " must be >= 0");
  if (min_after_dequeue >= capacity && kind == "RandomShuffleQueue") {
    return InvalidArgument("min_after_dequeue ", min_after_dequeue, " must be < capacity ",
                           capacity);
  }
  return absl::OkStatus();
}

QueueState::QueueState(QueueSpec spec)
    : WaitableResource(/*lanes=*/2, /*in_order=*/true),
      spec_(std::move(spec)),
      order_(QueueOrder::Make(spec_)) {}

void QueueState::ResetState() {
  order_ = QueueOrder::Make(spec_);
  closed_ = true;
}

absl::Status QueueState::CheckSame(const QueueSpec& other) const {
  if (other.kind != spec_.kind)
    return InvalidArgument("Expected ", spec_.kind, ", found ", other.kind);
  if (other.capacity != spec_.capacity) {
    return MismatchError(spec_.name, "capacity", absl::StrCat(spec_.capacity),
                         absl::StrCat(other.capacity));
  }
  if (other.min_after_dequeue != spec_.min_after_dequeue) {
    return MismatchError(spec_.name, "min_after_dequeue", absl::StrCat(spec_.min_after_dequeue),
                         absl::StrCat(other.min_after_dequeue));
  }
  const bool is_seeded = other.seed != 0 || other.seed2 != 0;
  if (is_seeded && (other.seed != spec_.seed || other.seed2 != spec_.seed2)) {
    return InvalidArgument("Shared queue '", spec_.name, "' has random seeds (", spec_.seed, ", ",
                           spec_.seed2, ") but requested seeds are (", other.seed, ", ",
                           other.seed2, ").");
  }
  if (other.types != spec_.types) {
    return InvalidArgument("Shared queue '", spec_.name, "' has component types ",
                           TypeList(spec_.types), " but requested component types were ",
                           TypeList(other.types));
  }
  bool same = other.shapes.size() == spec_.shapes.size();
  for (size_t i = 0; same && i < spec_.shapes.size(); ++i)
    same = spec_.shapes[i].IsCompatibleWith(other.shapes[i]);
  if (same) return absl::OkStatus();
  return InvalidArgument("Shared queue '", spec_.name, "' has component shapes ",
                         ShapeList(spec_.shapes), " but requested component shapes were ",
                         ShapeList(other.shapes));
}

absl::Status QueueState::CheckComponents(const Tensors& tuple) const {
  if (tuple.size() != spec_.types.size()) {
    return InvalidArgument("Wrong number of components in tuple. Expected ", spec_.types.size(),
                           ", got ", tuple.size());
  }
  for (size_t i = 0; i < tuple.size(); ++i) {
    if (tuple[i].dtype() != spec_.types[i]) {
      return InvalidArgument("Type mismatch in tuple component ", i, ". Expected ",
                             DataTypeName(spec_.types[i]), ", got ",
                             DataTypeName(tuple[i].dtype()));
    }
  }
  return absl::OkStatus();
}

absl::Status QueueState::CheckElement(const Tensors& element) const {
  WEIR_RETURN_IF_ERROR(CheckComponents(element));
  if (spec_.kind == "PriorityQueue" && !element[0].shape().IsScalar()) {
    return InvalidArgument("Expected the priority element to be a scalar, but received shape: ",
                           element[0].shape().ToString());
  }
  for (size_t i = 0; i < spec_.shapes.size(); ++i) {
    if (!spec_.shapes[i].IsCompatibleWith(element[i].shape())) {
      return InvalidArgument("Shape mismatch in tuple component ", i, ". Expected ",
                             spec_.shapes[i].ToString(), ", got ", element[i].shape().ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status QueueState::CheckBatch(const Tensors& batch) const {
  WEIR_RETURN_IF_ERROR(CheckComponents(batch));
  for (size_t i = 0; i < batch.size(); ++i) {
    const Shape& shape = batch[i].shape();
    if (shape.IsScalar()) {
      return InvalidArgument("Component ", i, " of a batch must be a vector at least, got shape ",
                             shape.ToString());
    }
    if (shape.dim(0) != batch[0].dim(0)) {
      return InvalidArgument("All input tensors must have the same size in the 0th dimension. ",
                             "Component ", i, " has ", shape.dim(0), ", and should have ",
                             batch[0].dim(0));
    }
    if (spec_.shapes.empty()) continue;
    const Shape expected = Shape({batch[0].dim(0)}).Concatenate(spec_.shapes[i]);
    if (!expected.IsCompatibleWith(shape)) {
      return InvalidArgument("Shape mismatch in tuple component ", i, ". Expected ",
                             expected.ToString(), ", got ", shape.ToString());
    }
  }
  if (spec_.kind == "PriorityQueue" && batch[0].rank() != 1) {
    return InvalidArgument("Expected the priority element to be a scalar, but received shape: ",
                           batch[0].shape().Sub(1).ToString());
  }
  return absl::OkStatus();
}

absl::Status QueueState::Closed() const {
  return absl::CancelledError(absl::StrCat(spec_.kind, " '", spec_.name, "' is closed."));
}

std::optional<absl::Status> QueueState::TryEnqueue(std::vector<Tensors>* elements, size_t* next) {
  if (closed_) return Closed();
  for (; *next < elements->size() && order_->size() < spec_.capacity; ++*next) {
    order_->Put(std::move((*elements)[*next]));
    Progress();
  }
  if (*next < elements->size()) return std::nullopt;
  return absl::OkStatus();
}

void QueueState::Enqueue(std::vector<Tensors> elements, Cancellation* cancellation, Done done) {
  auto shared = std::make_shared<std::vector<Tensors>>(std::move(elements));
  ++waiting_;
  Wait(kEnqueue,
       {.attempt = [this, shared,
                    next = size_t{0}]() mutable { return TryEnqueue(shared.get(), &next); },
        .roll_back = nullptr,
        .cancelled = "Enqueue operation was cancelled",
        .cancellation = cancellation,
        .done =
            [this, done = std::move(done)](absl::Status status) {
              --waiting_;
              done(std::move(status));
            }});
}

void QueueState::PutBack(PendingDequeue* pending) {
  for (; !pending->taken.empty(); pending->taken.pop_back())
    order_->PutBack(std::move(pending->taken.back()));
}

// A batch may be larger than the queue: elements are taken as they arrive, which makes room for
// more. Only priority queues take all elements of a batch at once, because a smaller element may
// still arrive.
std::optional<absl::Status> QueueState::TryDequeue(PendingDequeue* pending) {
  int64_t size = order_->size();
  int64_t missing = pending->wanted - static_cast<int64_t>(pending->taken.size());
  if (closed_ && size < missing) {
    PutBack(pending);
    if (!pending->allow_fewer || order_->size() == 0) {
      return OutOfRange(spec_.kind, " '", spec_.name,
                        "' is closed and has insufficient elements (requested ", missing,
                        ", current size ", size, ")");
    }
    size = missing = pending->wanted = order_->size();
  }
  if (spec_.kind == "PriorityQueue" && size < missing) return std::nullopt;
  if (!closed_) size -= spec_.min_after_dequeue;
  for (; size > 0 && missing > 0; --size, --missing) {
    pending->taken.push_back(order_->Take());
    Progress();
  }
  if (missing > 0) return std::nullopt;
  if (!pending->batch) {
    pending->result = std::move(pending->taken[0]);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensors> batch = Batch(pending->taken);
  if (!batch.ok()) {
    PutBack(pending);
    return batch.status();
  }
  pending->result = *std::move(batch);
  return absl::OkStatus();
}

void QueueState::Take(std::shared_ptr<PendingDequeue> pending, Cancellation* cancellation,
                      TakeCallback done) {
  ++waiting_;
  Wait(kDequeue, {.attempt = [this, pending] { return TryDequeue(pending.get()); },
                  .roll_back = [this, pending] { PutBack(pending.get()); },
                  .cancelled = "Dequeue operation was cancelled",
                  .cancellation = cancellation,
                  .done =
                      [this, pending, done = std::move(done)](absl::Status status) {
                        --waiting_;
                        if (status.ok()) {
                          done(std::move(pending->result));
                        } else {
                          done(std::move(status));
                        }
                      }});
}

void QueueState::Dequeue(Cancellation* cancellation, TakeCallback done) {
  Take(std::make_shared<PendingDequeue>(), cancellation, std::move(done));
}

void QueueState::DequeueMany(int64_t count, bool allow_fewer, Cancellation* cancellation,
                             TakeCallback done) {
  if (spec_.shapes.empty()) {
    return done(InvalidArgument(spec_.kind,
                                "'s DequeueMany and DequeueUpTo require the components ",
                                "to have specified shapes."));
  }
  if (count == 0) return done(Batch({}));
  auto pending = std::make_shared<PendingDequeue>();
  pending->wanted = count;
  pending->batch = true;
  pending->allow_fewer = allow_fewer;
  Take(std::move(pending), cancellation, std::move(done));
}

absl::StatusOr<Tensors> QueueState::Batch(const std::vector<Tensors>& elements) const {
  Tensors batch;
  for (size_t i = 0; i < spec_.types.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(Tensor component,
                          BatchComponent(elements, i, spec_.types[i], spec_.shapes[i]));
    batch.push_back(std::move(component));
  }
  return batch;
}

void QueueState::Close(bool cancel_pending_enqueues, Cancellation* cancellation, Done done) {
  if (cancel_pending_enqueues) {
    Change([&] {
      closed_ = true;
      CompleteAll(kEnqueue, absl::CancelledError("Enqueue operation was cancelled"));
    });
    return done(absl::OkStatus());
  }
  const auto close = [this]() -> std::optional<absl::Status> {
    if (closed_) {
      return absl::CancelledError(absl::StrCat("Queue '", spec_.name, "' is already closed."));
    }
    closed_ = true;
    return absl::OkStatus();
  };
  Wait(kEnqueue, {.attempt = close,
                  .roll_back = nullptr,
                  .cancelled = "Close operation was cancelled",
                  .cancellation = cancellation,
                  .done = std::move(done)});
}

int64_t QueueState::size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return order_->size();
}

bool QueueState::is_closed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

absl::StatusOr<std::vector<Tensors>> RowsOf(const Tensors& batch) {
  const int64_t count = batch.empty() ? 0 : batch[0].dim(0);
  WEIR_RETURN_IF_ERROR(CheckRoomForTensors(count));
  std::vector<Tensors> rows(static_cast<size_t>(count));
  for (const Tensor& component : batch) {
    const Shape shape = component.shape().Sub(1);
    const int64_t row = count == 0 ? 0 : component.num_elements() / count;
    for (int64_t i = 0; i < count; ++i) {
      WEIR_ASSIGN_OR_RETURN(Tensor element,
                            Tensor::Allocate(HostAllocator(), component.dtype(), shape));
      CopyElements(component.dtype(), ElementAt(component, i * row), element.raw(), row);
      rows[static_cast<size_t>(i)].push_back(std::move(element));
    }
  }
  return rows;
}

}  // namespace weir
