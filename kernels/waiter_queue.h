#ifndef WEIR_KERNELS_WAITER_QUEUE_H_
#define WEIR_KERNELS_WAITER_QUEUE_H_

#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/kernel.h"
#include "weir/kernels/variable_access.h"

namespace weir {

// State that steps wait for: a queue that is empty or full, a lock that somebody holds. No thread
// waits: a step leaves a request, and whoever changes the state grants the wishes that can be granted
// then. A step that ends early takes its request back. Thread-safe.
//
// Wishes stand in lanes (who puts, who takes). In order, a lane grants the first one before the
// second; else each as soon as it can be.
class WaitableResource : public Resource {
 public:
  using Done = std::function<void(absl::Status)>;

  // Everyone who waits gets CANCELLED, and the state is emptied.
  void Clear() override;

 protected:
  struct WaitRequest {
    // Called with the lock held, whenever something has changed, until it returns an outcome.
    std::function<std::optional<absl::Status>()> attempt;
    // Called with the lock held if the request is taken back: returns what it has been given so far.
    std::function<void()> give_back;
    // "Dequeue operation was cancelled": the message then.
    const char* cancelled;
    Cancellation* cancellation;
    // Called without the lock.
    Done done;
  };

  WaitableResource(int lanes, bool in_order) : in_order_(in_order), lanes_(lanes) {}

  void Wait(int lane, WaitRequest request);
  // Runs `change` with the lock held, and grants what it has made possible.
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
  // For attempts and changes: an attempt that is not through has changed something all the same.
  void Progress() { progress_ = true; }
  // For changes: everyone in the lane gets this outcome.
  void Dismiss(int lane, const absl::Status& outcome);
  // Empties the state; the lock is held.
  virtual void Forget() = 0;

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
  void TakeBack(int lane, int64_t id);

  const bool in_order_;
  std::vector<std::list<Waiter>> lanes_;
  Ready ready_;  // granted, and not yet told
  bool progress_ = false;
  int64_t next_id_ = 0;
};

// What a node that makes a resource calls it.
struct ResourceName {
  std::string container, name;
  bool is_own = false;  // of the node in its session; other sessions do not see it

  // Where the resource lies.
  ResourceMap& HomeIn(ResourceMap& session) const {
    return is_own ? session : SharedState(session);
  }
};
// shared_name; or, for a resource that is the node's own, a name that no shared one has. As below,
// INVALID_ARGUMENT for a container that cannot be.
absl::StatusOr<ResourceName> NameOfResource(const Node& node);
// shared_name, or the node's name: for ops that TensorFlow shares by node name.
absl::StatusOr<ResourceName> NameSharedByNode(const Node& node);
// The container that a node names: "", or letters, digits and "_.-/", of which the first is a
// letter, a digit or a dot.
absl::StatusOr<std::string> ContainerOf(const Node& node);
// The handle, as a scalar.
Tensor HandleTo(const Device& device, const ResourceName& name, std::shared_ptr<Resource> resource);

// INVALID_ARGUMENT unless these are the types that an op's tensors have.
absl::Status CheckTypes(absl::Span<const DataType> have, absl::Span<const DataType> expected);
// "float, int32".
std::string TypeList(absl::Span<const DataType> types);
// "[[2], [3,4]]".
std::string ShapeList(absl::Span<const Shape> shapes);

}  // namespace weir

#endif  // WEIR_KERNELS_WAITER_QUEUE_H_
