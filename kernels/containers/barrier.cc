#include "weir/kernels/containers/barrier.h"

#include <algorithm>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

namespace weir {

namespace {

// Complete tuples wait in a queue ordered by number; their number and key are the leading
// components.
QueueSpec SpecOfReady(const std::string& name, const DataTypes& types,
                      const std::vector<Shape>& shapes) {
  QueueSpec spec;
  spec.kind = "PriorityQueue";
  spec.name = name + "_queue";
  spec.types = {DT_INT64, DT_STRING};
  spec.shapes = {Shape(), Shape()};
  spec.types.insert(spec.types.end(), types.begin(), types.end());
  spec.shapes.insert(spec.shapes.end(), shapes.begin(), shapes.end());
  return spec;
}

}  // namespace

BarrierState::BarrierState(std::string name, DataTypes types, std::vector<Shape> shapes)
    : name_(std::move(name)),
      types_(std::move(types)),
      shapes_(std::move(shapes)),
      ready_(std::make_shared<QueueState>(SpecOfReady(name_, types_, shapes_))) {}

void BarrierState::Clear() {
  ready_->Clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  incomplete_.clear();
}

std::string BarrierState::State() const {
  return absl::StrCat(".  Pending enqueues cancelled: ", static_cast<int>(cancelled_));
}

void BarrierState::InsertMany(const Tensor& keys, int64_t component, const Tensor& values,
                              Cancellation* cancellation, Done done) {
  std::vector<Tensors> complete;
  const absl::Status inserted = Insert(keys, component, values, &complete);
  if (complete.empty()) return done(inserted);
  ready_->Enqueue(std::move(complete), cancellation,
                  [this, inserted, done = std::move(done)](const absl::Status& queued) {
                    bool is_last = false;
                    {
                      const std::lock_guard<std::mutex> lock(mutex_);
                      is_last = closed_ && incomplete_.empty();
                    }
                    if (is_last) CloseQueue(/*cancel_pending=*/false);
                    done(inserted.ok() ? queued : inserted);
                  });
}

absl::Status BarrierState::Insert(const Tensor& keys, int64_t component, const Tensor& values,
                                  std::vector<Tensors>* complete) {
  WEIR_RETURN_IF_ERROR(CheckRank(keys, 1, "keys"));
  WEIR_RETURN_IF_ERROR(CheckRankAtLeast(values, 1, "values"));
  const int64_t count = keys.num_elements();
  if (values.dim(0) != count)
    return InvalidArgument("There are ", count, " keys for ", values.dim(0), " values");
  if (count > 0 && values.num_elements() == 0) {
    return InvalidArgument("Tensors with no elements are not supported ", name_,
                           ": received shape ", values.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<Tensors> rows, RowsOf({values}));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_ && (cancelled_ || (count > 0 && incomplete_.empty()))) {
    return absl::CancelledError(absl::StrCat(
        "Barrier ", name_, " is closed", State(), ".  Number of new insertions: ", count,
        ".  Number of incomplete keys: ", incomplete_.size(), "."));
  }
  absl::Status status;
  bool any_new = false;
  for (int64_t i = 0; i < count && status.ok(); ++i) {
    status = InsertOne(keys.data<std::string>()[i], i, component, rows[i][0], &any_new, complete);
  }
  if (any_new) ++next_number_;
  return status;
}

absl::Status BarrierState::InsertOne(const std::string& key, int64_t i, int64_t component,
                                     Tensor value, bool* is_new, std::vector<Tensors>* complete) {
  if (!shapes_[component].IsCompatibleWith(value.shape())) {
    return InvalidArgument("Shape mismatch in tuple component ", component + 2, ". Expected ",
                           shapes_[component].ToString(), ", got ", value.shape().ToString());
  }
  const auto it = incomplete_.find(key);
  if (it == incomplete_.end() && closed_) {
    return absl::CancelledError(absl::StrCat(
        "Barrier ", name_, " is closed, but attempted to insert a brand new key: ", key, State(),
        ".  Insertion index: ", i, ".  Number of incomplete keys: ", incomplete_.size(), "."));
  }
  if (it == incomplete_.end()) {
    incomplete_[key] = {next_number_, Tensors(types_.size())};
    *is_new = true;
  }
  Incomplete& tuple = incomplete_[key];
  if (tuple.components[component].initialized()) {
    return InvalidArgument("Key ", key, " already has a value for component ", component,
                           " in barrier ", name_);
  }
  tuple.components[component] = std::move(value);
  const bool is_complete = std::all_of(tuple.components.begin(), tuple.components.end(),
                                       [](const Tensor& t) { return t.initialized(); });
  if (!is_complete) return absl::OkStatus();
  Tensors element = {Tensor::Scalar(tuple.number), Tensor::Scalar(key)};
  element.insert(element.end(), tuple.components.begin(), tuple.components.end());
  complete->push_back(std::move(element));
  incomplete_.erase(key);
  return absl::OkStatus();
}

void BarrierState::TakeMany(int64_t count, bool allow_fewer, Cancellation* cancellation,
                            QueueState::TakeCallback done) {
  absl::Status enough;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    int64_t available = ready_size();
    if (closed_ && allow_fewer) count = std::min(count, available);
    if (!allow_fewer) available += static_cast<int64_t>(incomplete_.size());
    if (closed_ && available < std::max<int64_t>(count, 1)) {
      enough = OutOfRange("Barrier '", name_, "' is closed and has insufficient elements ",
                          "(requested ", count, ", total size ", available, ")");
    }
  }
  if (!enough.ok()) return done(std::move(enough));
  ready_->DequeueMany(count, allow_fewer, cancellation, std::move(done));
}

absl::Status BarrierState::Close(bool cancel_pending) {
  bool is_last = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ && (cancelled_ || !cancel_pending)) {
      return absl::CancelledError(absl::StrCat("Barrier '", name_, "' is already closed."));
    }
    closed_ = true;
    cancelled_ = cancel_pending;
    if (cancel_pending) incomplete_.clear();
    is_last = incomplete_.empty();
  }
  if (is_last) CloseQueue(cancel_pending);
  return absl::OkStatus();
}

// Closes the queue. It is unbounded, so no enqueuer waits, and neither does this.
void BarrierState::CloseQueue(bool cancel_pending) {
  if (!ready_->is_closed()) ready_->Close(cancel_pending, nullptr, [](const absl::Status&) {});
}

int64_t BarrierState::incomplete_size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(incomplete_.size());
}

namespace {

absl::StatusOr<Kernel> MakeBarrier(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameOfResource(init.node));
  const auto types = init.attr<DataTypes>("component_types");
  const auto shapes = init.attr<std::vector<Shape>>("shapes");
  if (shapes.size() != types.size())
    return InvalidArgument("All of the component shapes must be specified");
  if (init.attr<int64_t>("capacity") != -1) {
    return InvalidArgument("Barrier only accepts capacity=-1.  Feed the inputs to your Barrier ",
                           "through a queue to enforce a limited capacity.");
  }
  WEIR_RETURN_IF_ERROR(SpecOfReady(name.name, types, shapes).Check());
  const auto barrier =
      name.SelectMap(init.resources).LookupOrCreate<BarrierState>(name.container, name.name, [&] {
        return std::make_shared<BarrierState>(name.name, types, shapes);
      });
  if (barrier->types() != types) {
    return InvalidArgument("Shared barrier '", name.name, "' has component types ",
                           TypeList(barrier->types()), " but requested component types were ",
                           TypeList(types));
  }
  if (barrier->shapes() != shapes) {
    return InvalidArgument("Shared barrier '", name.name, "' has component shapes ",
                           ShapeList(barrier->shapes()), " but requested component shapes were ",
                           ShapeList(shapes));
  }
  return Kernel::Constant(HandleTo(init.device, name, barrier));
}

void InsertMany(KernelContext& c, int64_t component, Kernel::Done done) {
  const auto barrier = c.resource<BarrierState>(0);
  if (!barrier.ok()) return done(barrier.status());
  const DataTypes& types = (*barrier)->types();
  if (component < 0 || component >= static_cast<int64_t>(types.size())) {
    return done(InvalidArgument("The component ID is out of range ", component,
                                " > num_components (= ", types.size(), ")"));
  }
  const absl::Status fits = CheckTypes({c.input(2).dtype()}, {types[component]});
  if (!fits.ok()) return done(fits);
  (*barrier)->InsertMany(c.input(1), component, c.input(2), c.cancellation(),
                         [done = std::move(done), keep = *barrier](absl::Status s) { done(s); });
}

void TakeMany(KernelContext& c, const DataTypes& types, bool allow_fewer, Kernel::Done done) {
  const auto barrier = c.resource<BarrierState>(0);
  if (!barrier.ok()) return done(barrier.status());
  absl::Status fits = CheckTypes(types, (*barrier)->types());
  if (fits.ok() && !c.input(1).shape().IsScalar())
    fits = InvalidArgument("num_elements must be a scalar.");
  if (fits.ok() && c.input(1).IntAt(0) < 0)
    fits = InvalidArgument("num_elements must not be negative, got ", c.input(1).IntAt(0));
  if (!fits.ok()) return done(fits);
  (*barrier)->TakeMany(
      c.input(1).IntAt(0), allow_fewer, c.cancellation(),
      [&c, done = std::move(done), keep = *barrier](absl::StatusOr<Tensors> taken) {
        for (size_t i = 0; taken.ok() && i < taken->size(); ++i)
          c.SetOutput(static_cast<int>(i), std::move((*taken)[i]));
        done(taken.status());
      });
}

absl::StatusOr<Kernel> MakeInsertMany(const KernelInit& init) {
  return Kernel([component = init.attr<int64_t>("component_index")](KernelContext& c,
                                                                    Kernel::Done done) -> void {
    InsertMany(c, component, std::move(done));
  });
}

absl::StatusOr<Kernel> MakeTakeMany(const KernelInit& init) {
  if (init.attr<int64_t>("timeout_ms") != -1) return InvalidArgument("Timeout not supported yet.");
  return Kernel([types = init.attr<DataTypes>("component_types"),
                 allow_fewer = init.attr<bool>("allow_small_batch")](KernelContext& c,
                                                                     Kernel::Done done) -> void {
    TakeMany(c, types, allow_fewer, std::move(done));
  });
}

absl::StatusOr<Kernel> MakeClose(const KernelInit& init) {
  return Kernel(
      [cancel = init.attr<bool>("cancel_pending_enqueues")](KernelContext& c) -> absl::Status {
        WEIR_ASSIGN_OR_RETURN(const auto barrier, c.resource<BarrierState>(0));
        return barrier->Close(cancel);
      });
}

template <int64_t (BarrierState::*kSize)()>
absl::Status PutSize(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto barrier, c.resource<BarrierState>(0));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int32_t>() = static_cast<int32_t>((*barrier.*kSize)());
  return absl::OkStatus();
}

}  // namespace

void AddBarrierKernels(KernelRegistry* r) {
  r->Add("Barrier", kCpu, MakeBarrier);
  r->Add("BarrierInsertMany", kCpu, MakeInsertMany);
  r->Add("BarrierTakeMany", kCpu, MakeTakeMany);
  r->Add("BarrierClose", kCpu, MakeClose);
  r->Add("BarrierReadySize", kCpu, PutSize<&BarrierState::ready_size>);
  r->Add("BarrierIncompleteSize", kCpu, PutSize<&BarrierState::incomplete_size>);
  AddMutexKernels(r);
}

}  // namespace weir
