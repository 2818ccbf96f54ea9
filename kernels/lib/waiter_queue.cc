#include "weir/kernels/lib/waiter_queue.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace weir {

void WaitableResource::Clear() {
  Change([&] {
    for (size_t lane = 0; lane < lanes_.size(); ++lane)
      CompleteAll(static_cast<int>(lane), absl::CancelledError(Describe() + " was cleared"));
    ResetState();
  });
}

void WaitableResource::Wait(int lane, WaitRequest request) {
  Ready ready;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Waiter waiter{next_id_++, -1, std::move(request)};
    Cancellation* const cancellation = waiter.request.cancellation;
    const auto withdraw = [this, lane, id = waiter.id] { Withdraw(lane, id); };
    if (cancellation != nullptr && !cancellation->OnCancel(withdraw, &waiter.token)) {
      waiter.request.cancellation = nullptr;
      const absl::Status over = absl::CancelledError(waiter.request.cancelled);
      ready_.emplace_back(std::move(waiter), over);
    } else {
      lanes_[lane].push_back(std::move(waiter));
    }
    ready = Grant();
  }
  Finish(std::move(ready));
}

void WaitableResource::CompleteAll(int lane, const absl::Status& outcome) {
  for (Waiter& waiter : lanes_[lane]) {
    if (waiter.request.roll_back) waiter.request.roll_back();
    ready_.emplace_back(std::move(waiter), outcome);
  }
  lanes_[lane].clear();
}

WaitableResource::Ready WaitableResource::Grant() {
  const ScopedCancellation none(nullptr);  // the requests belong to other steps than this thread's
  do {
    progress_ = false;
    for (std::list<Waiter>& lane : lanes_) GrantLane(&lane);
  } while (progress_);
  return std::exchange(ready_, {});
}

// A waiter whose step is cancelled is about to withdraw its request and to grant the requests
// behind it. Its request is not attempted here, so no two threads in Finish wait for each other.
void WaitableResource::GrantLane(std::list<Waiter>* lane) {
  for (auto it = lane->begin(); it != lane->end();) {
    const Cancellation* const cancellation = it->request.cancellation;
    std::optional<absl::Status> outcome;
    if (cancellation == nullptr || !cancellation->cancelled()) outcome = it->request.attempt();
    if (!outcome && in_order_) return;
    if (outcome) {
      progress_ = true;
      ready_.emplace_back(std::move(*it), *std::move(outcome));
      it = lane->erase(it);
    } else {
      ++it;
    }
  }
}

// The waiter is in no lane any more, so a concurrent cancellation finds nothing to do while it is
// unregistered here.
void WaitableResource::Finish(Ready ready) {
  for (auto& [waiter, outcome] : ready) {
    if (waiter.request.cancellation != nullptr)
      waiter.request.cancellation->Unregister(waiter.token);
    waiter.request.done(std::move(outcome));
  }
}

void WaitableResource::Withdraw(int lane, int64_t id) {
  std::optional<Waiter> waiter;
  Ready ready;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::list<Waiter>& waiters = lanes_[lane];
    const auto it =
        std::find_if(waiters.begin(), waiters.end(), [id](const Waiter& w) { return w.id == id; });
    if (it == waiters.end()) return;
    if (it->request.roll_back) it->request.roll_back();
    waiter = std::move(*it);
    waiters.erase(it);
    ready = Grant();
  }
  waiter->request.done(absl::CancelledError(waiter->request.cancelled));
  Finish(std::move(ready));
}

absl::StatusOr<std::string> ContainerOf(const Node& node) {
  std::string container = node.attr_or<std::string>("container", "");
  const auto fits = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_.-/", c);
  };
  const bool begins_well = container.empty() || !absl::StrContains("_-/", container[0]);
  if (begins_well && std::all_of(container.begin(), container.end(), fits)) return container;
  return InvalidArgument("container contains invalid characters: ", container);
}

absl::StatusOr<ResourceName> NameOfResource(const Node& node) {
  WEIR_ASSIGN_OR_RETURN(std::string container, ContainerOf(node));
  ResourceName out{std::move(container), node.attr_or<std::string>("shared_name", "")};
  if (out.name.empty()) {
    const bool is_shared = node.attr_or<bool>("use_node_name_sharing", false);
    out.is_own = !is_shared;
    out.name = is_shared ? node.name() : absl::StrCat("_0_", node.name());
  }
  return out;
}

absl::StatusOr<ResourceName> NameSharedByNode(const Node& node) {
  WEIR_ASSIGN_OR_RETURN(std::string container, ContainerOf(node));
  ResourceName out{std::move(container), node.attr_or<std::string>("shared_name", "")};
  if (out.name.empty()) out.name = node.name();
  return out;
}

Tensor HandleTo(const Device& device, const ResourceName& name,
                std::shared_ptr<Resource> resource) {
  ResourceHandle handle;
  handle.device = device.text();
  handle.container = name.container;
  handle.name = name.name;
  handle.resource = std::move(resource);
  return Tensor::Scalar(std::move(handle));
}

absl::Status CheckTypes(absl::Span<const DataType> have, absl::Span<const DataType> expected) {
  if (have == expected) return absl::OkStatus();
  return InvalidArgument("Signature mismatch, have: ", TypeList(have),
                         " expected: ", TypeList(expected));
}

std::string TypeList(absl::Span<const DataType> types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DataType type) {
    absl::StrAppend(out, DataTypeName(type));
  });
}

std::string ShapeList(absl::Span<const Shape> shapes) {
  return absl::StrCat("[",
                      absl::StrJoin(shapes, ", ",
                                    [](std::string* out, const Shape& shape) {
                                      absl::StrAppend(out, shape.ToString());
                                    }),
                      "]");
}

}  // namespace weir
