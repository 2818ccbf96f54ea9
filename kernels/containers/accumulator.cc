#include "weir/kernels/containers/accumulator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/waiter_queue.h"

namespace weir {

namespace {

absl::StatusOr<Tensor> CopyOf(const Tensor& t) {
  WEIR_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(HostAllocator(), t.dtype(), t.shape()));
  if (t.num_bytes() > 0) std::memcpy(copy.raw(), t.raw(), t.num_bytes());
  return copy;
}

}  // namespace

void AddGradient(DataType type, const void* from, void* to, int64_t n) {
  DispatchType(type, Numbers{}, [&]<class T>() {
    const T* const x = static_cast<const T*>(from);
    T* const y = static_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) y[i] = Add(y[i], x[i]);
  });
}

void DivideGradient(DataType type, int64_t count, void* gradient, int64_t n) {
  DispatchType(type, Numbers{}, [&]<class T>() {
    T* const y = static_cast<T*>(gradient);
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_integral_v<T>) {
        y[i] = static_cast<T>(static_cast<int64_t>(y[i]) / count);
      } else {
        y[i] /= T(static_cast<float>(count));
      }
    }
  });
}

void AccumulatorState::Clear() {
  Ready ready;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ClearSum();
    count_ = 0;
    for (Waiter& w : waiters_)
      ready.emplace_back(std::move(w), absl::CancelledError(Describe() + " was cleared"));
    waiters_.clear();
  }
  Finish(std::move(ready));
}

absl::Status AccumulatorState::Apply(int64_t local_step, const Tensors& gradient) {
  Ready ready;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (local_step < step_) return absl::OkStatus();
    WEIR_RETURN_IF_ERROR(Add(gradient, count_ == 0));
    ++count_;
    ready = PopReady();
  }
  Finish(std::move(ready));
  return absl::OkStatus();
}

void AccumulatorState::Take(int64_t required, Cancellation* cancellation, TakeDone done) {
  Ready ready;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t id = next_id_++;
    int64_t token = -1;
    if (cancellation != nullptr &&
        !cancellation->OnCancel(
            [this, id, cancellation] { CancelWaiter(id, cancellation->status()); }, &token)) {
      ready.emplace_back(Waiter{id, required, -1, nullptr, std::move(done)},
                         cancellation->status());
    } else {
      waiters_.push_back({id, required, token, cancellation, std::move(done)});
      ready = PopReady();
    }
  }
  Finish(std::move(ready));
}

int64_t AccumulatorState::count() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

void AccumulatorState::SetStep(int64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  step_ = step;
}

// Skips a waiter whose step is cancelled: that waiter is about to call CancelWaiter(), which serves
// the waiters behind it. So no thread in CancelWaiter() waits in Finish() for another one.
AccumulatorState::Ready AccumulatorState::PopReady() {
  Ready ready;
  const auto is_over = [](const Waiter& w) {
    return w.cancellation != nullptr && w.cancellation->cancelled();
  };
  while (!waiters_.empty() && count_ >= waiters_.front().required && !is_over(waiters_.front())) {
    ready.emplace_back(std::move(waiters_.front()), TakeSum(std::exchange(count_, 0), mean_));
    waiters_.pop_front();
    ++step_;
  }
  return ready;
}

// The waiters have already left the queue, so a cancellation that arrives before Unregister() finds
// nothing to do.
void AccumulatorState::Finish(Ready ready) {
  for (auto& [waiter, result] : ready) {
    if (waiter.cancellation != nullptr) waiter.cancellation->Unregister(waiter.token);
    waiter.done(std::move(result));
  }
}

// Removes a waiter and serves the waiters behind it, which may require fewer gradients.
void AccumulatorState::CancelWaiter(int64_t id, const absl::Status& why) {
  TakeDone done;
  Ready ready;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = std::find_if(waiters_.begin(), waiters_.end(),
                                 [id](const Waiter& w) { return w.id == id; });
    if (it == waiters_.end()) return;
    done = std::move(it->done);
    waiters_.erase(it);
    ready = PopReady();
  }
  done(why);
  Finish(std::move(ready));
}

absl::Status DenseAccumulator::Add(const Tensors& gradient, bool is_first) {
  const Tensor& more = gradient[0];
  if (!shape().IsCompatibleWith(more.shape())) {
    return InvalidArgument("Shape mismatch: the accumulator ", name(), " has shape ",
                           shape().ToString(), ", the gradient ", more.shape().ToString());
  }
  if (is_first) {
    WEIR_ASSIGN_OR_RETURN(sum_, CopyOf(more));
    return absl::OkStatus();
  }
  if (sum_.shape() != more.shape()) {
    return InvalidArgument("Shape mismatch: the sum has shape ", sum_.shape().ToString(),
                           ", the gradient ", more.shape().ToString());
  }
  AddGradient(dtype(), more.raw(), sum_.raw(), more.num_elements());
  return absl::OkStatus();
}

absl::StatusOr<Tensors> DenseAccumulator::TakeSum(int64_t count, bool mean) {
  if (mean) DivideGradient(dtype(), count, sum_.raw(), sum_.num_elements());
  return Tensors{std::move(sum_)};
}

template <class Accumulator>
absl::StatusOr<Kernel> MakeAccumulator(const KernelInit& init) {
  const Node& node = init.node;
  const DataType dtype = init.attr<DataType>("dtype");
  if (!DispatchType(dtype, Numbers{}, []<class T>() {})) {
    return Unimplemented("gradients of type ", DataTypeName(dtype), " cannot be accumulated");
  }
  const Shape shape = init.attr<Shape>("shape");
  const bool mean = init.attr<std::string>("reduction_type") == "MEAN";
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameOfResource(node));
  const auto state =
      name.SelectMap(init.resources).LookupOrCreate<Accumulator>(name.container, name.name, [&] {
        return std::make_shared<Accumulator>(name.name, dtype, shape, mean);
      });
  if (state->dtype() != dtype || !state->shape().IsCompatibleWith(shape)) {
    return InvalidArgument("Shared conditional accumulator '", name.name,
                           "' was created with type ", DataTypeName(state->dtype()), " and shape ",
                           state->shape().ToString(), ", not ", DataTypeName(dtype), " and ",
                           shape.ToString());
  }
  return Kernel::Constant(HandleTo(init.device, name, state));
}
template absl::StatusOr<Kernel> MakeAccumulator<DenseAccumulator>(const KernelInit&);
template absl::StatusOr<Kernel> MakeAccumulator<SparseAccumulator>(const KernelInit&);

namespace {

absl::Status Apply(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto state, c.resource<DenseAccumulator>(0));
  WEIR_ASSIGN_OR_RETURN(const int64_t step, ReadInt(c.input(1), "local_step"));
  if (c.input(2).dtype() != state->dtype()) {
    return InvalidArgument("Expected gradient of type ", DataTypeName(state->dtype()), " but got ",
                           DataTypeName(c.input(2).dtype()));
  }
  return state->Apply(step, {c.input(2)});
}

template <class Accumulator>
void Take(KernelContext& c, DataType dtype, Kernel::Done done) {
  const auto state = c.resource<Accumulator>(0);
  if (!state.ok()) return done(state.status());
  const absl::StatusOr<int64_t> required = ReadInt(c.input(1), "num_required");
  if (!required.ok()) return done(required.status());
  if (*required <= 0)
    return done(InvalidArgument("Argument num_required must be positive, but is ", *required));
  if ((*state)->dtype() != dtype) {
    return done(InvalidArgument("the accumulator has type ", DataTypeName((*state)->dtype()),
                                ", not ", DataTypeName(dtype)));
  }
  (*state)->Take(*required, c.cancellation(),
                 [&c, done = std::move(done), keep = *state](absl::StatusOr<Tensors> sum) {
                   for (int i = 0; sum.ok() && i < c.num_outputs(); ++i)
                     c.SetOutput(i, std::move((*sum)[i]));
                   done(sum.status());
                 });
}

absl::Status Count(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto state, c.resource<AccumulatorState>(0));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int32_t>() = static_cast<int32_t>(state->count());
  return absl::OkStatus();
}

absl::Status SetStep(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto state, c.resource<AccumulatorState>(0));
  WEIR_ASSIGN_OR_RETURN(const int64_t step, ReadInt(c.input(1), "new_global_step"));
  state->SetStep(step);
  return absl::OkStatus();
}

}  // namespace

template <class Accumulator>
absl::StatusOr<Kernel> MakeTakeGradient(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("dtype");
  return Kernel([dtype](KernelContext& c, Kernel::Done done) -> void {
    Take<Accumulator>(c, dtype, std::move(done));
  });
}
template absl::StatusOr<Kernel> MakeTakeGradient<DenseAccumulator>(const KernelInit&);
template absl::StatusOr<Kernel> MakeTakeGradient<SparseAccumulator>(const KernelInit&);

void AddAccumulatorKernels(KernelRegistry* r) {
  for (const char* prefix : {"", "Resource"}) {
    const auto name = [&](const char* op) { return absl::StrCat(prefix, op); };
    r->Add(name("ConditionalAccumulator"), kCpu, MakeAccumulator<DenseAccumulator>)
        .HostArgs({"handle"});
    r->Add(name("AccumulatorApplyGradient"), kCpu, Apply)
        .HostArgs({"handle", "local_step", "gradient"});
    r->Add(name("AccumulatorTakeGradient"), kCpu, MakeTakeGradient<DenseAccumulator>)
        .HostArgs({"handle", "num_required", "average"});
    r->Add(name("AccumulatorNumAccumulated"), kCpu, Count).HostArgs({"handle", "num_accumulated"});
    r->Add(name("AccumulatorSetGlobalStep"), kCpu, SetStep).HostArgs({"handle", "new_global_step"});
  }
  AddSparseAccumulatorKernels(r);
}

}  // namespace weir
