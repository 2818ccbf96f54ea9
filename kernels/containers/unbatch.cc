#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/kernels/containers/batch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/waiter_queue.h"

// Unbatching: splitting the result of a batch over its steps, and concatenating the gradients of
// the parts. One of the batched steps has the whole result and an index of whose rows are where;
// the other steps wait for their rows. In the backward pass, that step waits for the gradients of
// all steps.
namespace weir {

namespace {

using Clock = std::chrono::steady_clock;

// A row of the index: a step's id, and the rows [begin, end) of its part.
struct Part {
  int64_t id, begin, end;
};

absl::StatusOr<std::vector<Part>> ReadParts(const Tensor& index, int64_t rows) {
  if (index.rank() != 2 || index.dim(1) != 3) {
    return InvalidArgument(
        "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: ",
        index.shape().ToString());
  }
  std::vector<Part> parts;
  const int64_t* at = index.data<int64_t>();
  for (int64_t i = 0; i < index.dim(0); ++i, at += 3) {
    if (at[1] < 0 || at[2] < at[1]) {
      return InvalidArgument("the index tensor names rows ", at[1], " to ", at[2],
                             ", which must be non-negative and in order");
    }
    if (at[2] > rows) {
      return InvalidArgument("the index tensor names rows ", at[1], " to ", at[2],
                             ", but there are only ", rows, " rows");
    }
    parts.push_back({at[0], at[1], at[2]});
  }
  return parts;
}

// Tensors by the ids of the steps that send or receive them.
class BatchPartsState final : public WaitableResource {
 public:
  BatchPartsState(std::string name, std::chrono::microseconds timeout)
      : WaitableResource(/*lanes=*/1, /*in_order=*/false),
        name_(std::move(name)),
        timeout_(timeout) {}
  ~BatchPartsState() override {
    {
      const std::lock_guard<std::mutex> lock(clock_mutex_);
      stopping_ = true;
      clock_.notify_all();
    }
    if (timeout_thread_.joinable()) JoinOrDetach(timeout_thread_);
  }

  std::string Describe() const override { return "parts of batches '" + name_ + "'"; }

  // Stores a tensor for this id. Returns `duplicate_error` if there is one already.
  absl::Status Put(int64_t id, Tensor value, absl::Status duplicate_error) {
    absl::Status status;
    Change([&] {
      if (!tensors_.emplace(id, std::move(value)).second) status = std::move(duplicate_error);
    });
    return status;
  }

  // Calls `done` with the tensors of these ids, in this order, once all are available.
  void Take(std::vector<int64_t> ids, Cancellation* cancellation,
            std::function<void(absl::StatusOr<std::vector<Tensor>>)> done) {
    const auto found = std::make_shared<std::vector<Tensor>>();
    const Clock::time_point due =
        timeout_.count() == 0 ? Clock::time_point::max() : Clock::now() + timeout_;
    if (timeout_.count() != 0) StartTimeoutThread();
    WaitRequest request;
    request.attempt = [this, ids = std::move(ids), found, due]() -> std::optional<absl::Status> {
      const bool all =
          std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return tensors_.count(id) > 0; });
      if (!all && Clock::now() < due) return std::nullopt;
      if (!all)
        return absl::DeadlineExceededError("Batched data did not arrive within timeout window.");
      for (const int64_t id : ids) {
        const auto it = tensors_.find(id);
        if (it == tensors_.end()) return InvalidArgument("Missing tensor wanted more than once.");
        found->push_back(std::move(it->second));
        tensors_.erase(it);
      }
      return absl::OkStatus();
    };
    request.roll_back = [] {};
    request.cancelled = "Waiting for a part of a batch was cancelled";
    request.cancellation = cancellation;
    request.done = [found, done = std::move(done)](const absl::Status& status) {
      if (!status.ok()) return done(status);
      done(std::move(*found));
    };
    Wait(0, std::move(request));
  }

 private:
  void ResetState() override { tensors_.clear(); }

  // Runs a thread that times out requests.
  void StartTimeoutThread() {
    const std::lock_guard<std::mutex> lock(clock_mutex_);
    last_deadline_ = std::max(last_deadline_, Clock::now() + timeout_ + kTick);
    clock_.notify_all();
    if (timeout_thread_.joinable()) return;
    timeout_thread_ = std::thread([this] {
      std::unique_lock<std::mutex> wait(clock_mutex_);
      while (!stopping_) {
        if (Clock::now() > last_deadline_) {
          clock_.wait(wait);
          continue;
        }
        clock_.wait_for(wait, kTick);
        wait.unlock();
        Change([] {});
        wait.lock();
      }
    });
  }

  static constexpr std::chrono::milliseconds kTick{2};
  const std::string name_;
  const std::chrono::microseconds timeout_;  // zero: no timeout
  std::map<int64_t, Tensor> tensors_;

  std::mutex clock_mutex_;
  std::condition_variable clock_;
  Clock::time_point last_deadline_;  // after this time no request is pending
  bool stopping_ = false;
  std::thread timeout_thread_;
};

absl::StatusOr<std::shared_ptr<BatchPartsState>> StateOf(const KernelInit& init,
                                                         std::chrono::microseconds timeout) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameSharedByNode(init.node));
  return name.SelectMap(init.resources)
      .LookupOrCreate<BatchPartsState>(name.container, name.name, [&] {
        return std::make_shared<BatchPartsState>(name.name, timeout);
      });
}

absl::Status DistributeParts(KernelContext& c, BatchPartsState& state) {
  if (c.input(0).rank() == 0) return InvalidArgument("batched_tensor must not be a scalar");
  WEIR_ASSIGN_OR_RETURN(const std::vector<Part> parts, ReadParts(c.input(1), c.input(0).dim(0)));
  for (const Part& part : parts) {
    WEIR_RETURN_IF_ERROR(
        state.Put(part.id, c.input(0).Slice(part.begin, part.end).DeepCopy(),
                  absl::AlreadyExistsError("Multiple tensors returned for same batch key.")));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeUnbatch(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int timeout, NarrowAttr(init.node, "timeout_micros"));
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<BatchPartsState> state,
                        StateOf(init, Micros(timeout, 1)));
  return Kernel([state](KernelContext& c, Kernel::Done done) -> void {
    const absl::StatusOr<int64_t> id = ReadInt(c.input(2), "id");
    absl::Status status = id.status();
    if (status.ok()) status = DistributeParts(c, *state);
    if (!status.ok()) return done(status);
    state->Take({*id}, c.cancellation(),
                [&c, done = std::move(done)](absl::StatusOr<std::vector<Tensor>> taken) {
                  if (taken.ok()) c.SetOutput(0, std::move((*taken)[0]));
                  done(taken.status());
                });
  });
}

// The gradient of a step's own part is added to the others; the step with the whole result waits
// for all of them.
void ConcatGradients(KernelContext& c, BatchPartsState& state, Kernel::Done done) {
  const absl::StatusOr<int64_t> id = ReadInt(c.input(3), "id");
  if (!id.ok()) return done(id.status());
  if (c.input(2).rank() == 0) return done(InvalidArgument("grad must not be a scalar"));
  const absl::StatusOr<Tensor> gradient = c.Own(c.input(2));
  if (!gradient.ok()) return done(gradient.status());
  std::vector<int64_t> ids;
  if (c.input(0).num_elements() > 0) {
    if (c.input(1).num_elements() == 0)
      return done(InvalidArgument("batch_index is empty while the tensor isn't."));
    const auto parts = ReadParts(c.input(1), std::numeric_limits<int64_t>::max());
    if (!parts.ok()) return done(parts.status());
    for (const Part& part : *parts) ids.push_back(part.id);
  }
  const absl::Status put =
      state.Put(*id, *gradient, InvalidArgument("Two runs with the same batch key."));
  if (!put.ok()) return done(put);
  if (ids.empty()) {
    c.SetOutput(0, gradient->Slice(0, 0).DeepCopy());
    return done(absl::OkStatus());
  }
  state.Take(std::move(ids), c.cancellation(),
             [&c, done = std::move(done)](absl::StatusOr<std::vector<Tensor>> taken) {
               if (!taken.ok()) return done(taken.status());
               absl::StatusOr<Tensor> concatenated = ConcatRows(*taken);
               const absl::Status status = concatenated.status();
               if (status.ok()) c.SetOutput(0, *std::move(concatenated));
               done(status);
             });
}

absl::StatusOr<Kernel> MakeUnbatchGrad(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<BatchPartsState> state,
                        StateOf(init, std::chrono::microseconds(0)));
  return Kernel([state](KernelContext& c, Kernel::Done done) -> void {
    ConcatGradients(c, *state, std::move(done));
  });
}

}  // namespace

void AddUnbatchKernels(KernelRegistry* r) {
  r->Add("Unbatch", kCpu, MakeUnbatch);
  r->Add("UnbatchGrad", kCpu, MakeUnbatchGrad);
}

}  // namespace weir
