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

#include "weir/kernels/arguments.h"
#include "weir/kernels/batch.h"
#include "weir/kernels/waiter_queue.h"

// Dealing out what was made of a batch, and joining the gradients of the parts. One of the steps
// that were batched has the whole and a table of whose rows are where; the others wait for theirs.
// Going back, that one waits for the gradients of all.
namespace weir {

namespace {

using Clock = std::chrono::steady_clock;

// The rows of a table of parts: whose they are, where they begin and where they end.
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
    if (at[1] < 0 || at[2] < at[1] || at[2] > rows) {
      return InvalidArgument("The index tensor names rows ", at[1], " to ", at[2], " of ", rows);
    }
    parts.push_back({at[0], at[1], at[2]});
  }
  return parts;
}

// Tensors by the ids of the steps that they are for or from.
class MailState final : public WaitableResource {
 public:
  MailState(std::string name, std::chrono::microseconds timeout)
      : WaitableResource(/*lanes=*/1, /*in_order=*/false),
        name_(std::move(name)),
        timeout_(timeout) {}
  ~MailState() override {
    {
      const std::lock_guard<std::mutex> lock(clock_mutex_);
      stopping_ = true;
      clock_.notify_all();
    }
    if (watch_.joinable()) JoinOrDetach(watch_);
  }

  std::string Describe() const override { return "parts of batches '" + name_ + "'"; }

  // INVALID_ARGUMENT or so if there is one for this id already.
  absl::Status Put(int64_t id, Tensor value, absl::Status taken) {
    absl::Status status;
    Change([&] {
      if (!tensors_.emplace(id, std::move(value)).second) status = std::move(taken);
    });
    return status;
  }

  // Calls `done` with the tensors of these ids, in their order, when all are there.
  void Take(std::vector<int64_t> ids, Cancellation* cancellation,
            std::function<void(absl::StatusOr<std::vector<Tensor>>)> done) {
    const auto found = std::make_shared<std::vector<Tensor>>();
    const Clock::time_point due =
        timeout_.count() == 0 ? Clock::time_point::max() : Clock::now() + timeout_;
    if (timeout_.count() != 0) Watch();
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
    request.give_back = [] {};
    request.cancelled = "Waiting for a part of a batch was cancelled";
    request.cancellation = cancellation;
    request.done = [found, done = std::move(done)](const absl::Status& status) {
      if (!status.ok()) return done(status);
      done(std::move(*found));
    };
    Wait(0, std::move(request));
  }

 private:
  void Forget() override { tensors_.clear(); }

  // Looks after those who have waited too long.
  void Watch() {
    const std::lock_guard<std::mutex> lock(clock_mutex_);
    until_ = std::max(until_, Clock::now() + timeout_ + kTick);
    clock_.notify_all();
    if (watch_.joinable()) return;
    watch_ = std::thread([this] {
      std::unique_lock<std::mutex> wait(clock_mutex_);
      while (!stopping_) {
        if (Clock::now() > until_) {
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
  const std::chrono::microseconds timeout_;  // zero: none
  std::map<int64_t, Tensor> tensors_;

  std::mutex clock_mutex_;
  std::condition_variable clock_;
  Clock::time_point until_;  // when nobody waits any more
  bool stopping_ = false;
  std::thread watch_;
};

absl::StatusOr<std::shared_ptr<MailState>> StateOf(const KernelInit& init,
                                                   std::chrono::microseconds timeout) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameSharedByNode(init.node));
  return name.HomeIn(init.resources).LookupOrCreate<MailState>(name.container, name.name, [&] {
    return std::make_shared<MailState>(name.name, timeout);
  });
}

absl::Status DealOut(KernelContext& c, MailState& state) {
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
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<MailState> state, StateOf(init, Micros(timeout, 1)));
  return Kernel([state](KernelContext& c, Kernel::Done done) -> void {
    const absl::StatusOr<int64_t> id = ReadInt(c.input(2), "id");
    absl::Status status = id.status();
    if (status.ok()) status = DealOut(c, *state);
    if (!status.ok()) return done(status);
    state->Take({*id}, c.cancellation(),
                [&c, done = std::move(done)](absl::StatusOr<std::vector<Tensor>> taken) {
                  if (taken.ok()) c.SetOutput(0, std::move((*taken)[0]));
                  done(taken.status());
                });
  });
}

// The gradient of a step's own part joins the others; the step that had the whole waits for all.
void JoinGradients(KernelContext& c, MailState& state, Kernel::Done done) {
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
               absl::StatusOr<Tensor> joined = JoinRows(*taken);
               if (joined.ok()) c.SetOutput(0, *std::move(joined));
               done(joined.status());
             });
}

absl::StatusOr<Kernel> MakeUnbatchGrad(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<MailState> state,
                        StateOf(init, std::chrono::microseconds(0)));
  return Kernel([state](KernelContext& c, Kernel::Done done) -> void {
    JoinGradients(c, *state, std::move(done));
  });
}

}  // namespace

void AddUnbatchKernels(KernelRegistry* r) {
  r->Add("Unbatch", kCpu, MakeUnbatch);
  r->Add("UnbatchGrad", kCpu, MakeUnbatchGrad);
}

}  // namespace weir
