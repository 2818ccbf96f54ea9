#ifndef WEIR_KERNELS_LIB_WAITER_QUEUE_H_
#define WEIR_KERNELS_LIB_WAITER_QUEUE_H_

#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/variable_access.h"

namespace weir {

// State that steps wait for: a queue that is empty or full, a lock that is held. No thread blocks:
// a step leaves a request in a waiter queue, and the thread that changes the state grants the
// requests that have become possible. A step that ends early withdraws its request. Thread-safe.
//
// Requests wait in lanes (one for puts, one for takes). With `in_order`, a lane grants its requests
// in arrival order; otherwise each is granted as soon as possible.
class WaitableResource : public Resource {
 public:
  using Done = std::function<void(absl::Status)>;

  // Completes all waiting requests with CANCELLED and clears the state.
  void Clear() override;

 protected:
  struct WaitRequest {
    // Called with the lock held, after every change of the state, until it returns an outcome.
    std::function<std::optional<absl::Status>()> attempt;
    // Called with the lock held if the request is withdrawn: undoes a partially completed request.
    std::function<void()> roll_back;
    // The error text for a withdrawn request, such as "Dequeue operation was cancelled".
    const char* cancelled;
    Cancellation* cancellation;
    // Called without the lock.
    Done done;
  };

  WaitableResource(int lanes, bool in_order) : in_order_(in_order), lanes_(lanes) {}

  void Wait(int lane, WaitRequest request);
  // Runs `change` with the lock held and grants the requests that it has made possible.
  template <class F>
  void Change(const F& change) {
    Ready ready;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      change();
      ready = Grant();
    }
    Finish(std::move(ready));
  }
  // For attempts and changes: reports that an attempt has changed the state without completing.
  void Progress() { progress_ = true; }
  // For changes: completes all requests of the lane with this outcome.
  void CompleteAll(int lane, const absl::Status& outcome);
  // Clears the state; called with the lock held.
  virtual void ResetState() = 0;

  std::mutex mutex_;

 private:
  struct Waiter {
    int64_t id, token;
    WaitRequest request;
  };
  using Ready = std::vector<std::pair<Waiter, absl::Status>>;

  Ready Grant();
  void GrantLane(std::list<Waiter>* lane);
  static void Finish(Ready ready);
  void Withdraw(int lane, int64_t id);

  const bool in_order_;
  std::vector<std::list<Waiter>> lanes_;
  Ready ready_;  // granted, but not yet completed
  bool progress_ = false;
  int64_t next_id_ = 0;
};

// The name of a resource that a node creates.
struct ResourceName {
  std::string container, name;
  bool is_own = false;  // owned by the node in its session and invisible to other sessions

  // Returns the map that holds the resource.
  ResourceMap& SelectMap(ResourceMap& session) const {
    return is_own ? session : SharedState(session);
  }
};
// Returns shared_name or, for a resource that the node owns, a name that no shared resource has.
// Like the next function, returns INVALID_ARGUMENT for an invalid container.
absl::StatusOr<ResourceName> NameOfResource(const Node& node);
// Returns shared_name or the node's name, for ops that TensorFlow shares by node name.
absl::StatusOr<ResourceName> NameSharedByNode(const Node& node);
// Returns the container that a node names: "", or letters, digits and "_.-/", of which the first is
// a letter, a digit or a dot.
absl::StatusOr<std::string> ContainerOf(const Node& node);
// Returns the handle, as a scalar.
Tensor HandleTo(const Device& device, const ResourceName& name, std::shared_ptr<Resource> resource);

// Returns INVALID_ARGUMENT unless these are the types of an op's tensors.
absl::Status CheckTypes(absl::Span<const DataType> have, absl::Span<const DataType> expected);
// Returns "float, int32".
std::string TypeList(absl::Span<const DataType> types);
// Returns "[[2], [3,4]]".
std::string ShapeList(absl::Span<const Shape> shapes);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_WAITER_QUEUE_H_
