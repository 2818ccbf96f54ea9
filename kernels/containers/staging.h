#ifndef WEIR_KERNELS_CONTAINERS_STAGING_H_
#define WEIR_KERNELS_CONTAINERS_STAGING_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/kernels/lib/waiter_queue.h"

namespace weir {

// The capacity of a staging area; 0 is unlimited.
struct StagingLimits {
  int64_t capacity = 0, memory_limit = 0;
  // Returns whether `bytes` more fit beside this many elements of this size.
  bool HasRoom(int64_t elements, int64_t bytes_held, int64_t bytes) const {
    return (capacity == 0 || elements < capacity) &&
           (memory_limit == 0 || bytes_held + bytes <= memory_limit);
  }
  // Returns RESOURCE_EXHAUSTED if `bytes` will never fit.
  absl::Status Check(int64_t bytes) const;
};
int64_t BytesOf(const Tensors& tuple);

// A FIFO queue of tuples that one step passes to another. A Put waits for room, a Take or Peek for
// a tuple. Thread-safe.
class StagingArea final : public WaitableResource {
 public:
  using TakeCallback = std::function<void(absl::StatusOr<Tensors>)>;
  StagingArea(std::string name, StagingLimits limits)
      : WaitableResource(/*lanes=*/2, /*in_order=*/false),
        name_(std::move(name)),
        limits_(limits) {}

  std::string Describe() const override { return "staging area '" + name_ + "'"; }
  void Put(Tensors tuple, Cancellation* cancellation, Done done);
  void Take(Cancellation* cancellation, TakeCallback done);
  // Returns the tuple at this index without removing it.
  void Peek(int64_t index, Cancellation* cancellation, TakeCallback done);
  int64_t size();
  // Removes all tuples. Waiting steps continue to wait.
  void Empty();

 private:
  enum Lane { kPut, kTake };
  void ResetState() override;

  const std::string name_;
  const StagingLimits limits_;
  std::deque<Tensors> tuples_;
  int64_t bytes_ = 0;
};

// A map of tuples by integer keys. A tuple may arrive in parts, and is available once it is
// complete; it may be taken in parts too. Thread-safe.
class StagingMap final : public WaitableResource {
 public:
  // A key and the requested parts.
  using Part = std::pair<int64_t, Tensors>;
  using TakeCallback = std::function<void(absl::StatusOr<Part>)>;
  using Indices = std::vector<int64_t>;
  StagingMap(std::string name, StagingLimits limits)
      : WaitableResource(/*lanes=*/2, /*in_order=*/false),
        name_(std::move(name)),
        limits_(limits) {}

  std::string Describe() const override { return "staging map '" + name_ + "'"; }
  // Puts parts `indices` of a tuple that has `arity` of them.
  void Put(int64_t key, Indices indices, Tensors parts, size_t arity, Cancellation* cancellation,
           Done done);
  // Without a key, takes the tuple with the smallest key.
  void Take(std::optional<int64_t> key, Indices indices, Cancellation* cancellation,
            TakeCallback done);
  void Peek(int64_t key, Indices indices, Cancellation* cancellation, TakeCallback done);
  int64_t size();
  int64_t incomplete_size();
  void Empty();

 private:
  enum Lane { kPut, kTake };
  using Parts = std::vector<std::optional<Tensor>>;

  std::optional<absl::Status> TryPut(int64_t key, const Indices& indices, const Tensors& parts,
                                     size_t arity);
  absl::Status PutParts(int64_t key, const Indices& indices, const Tensors& parts, size_t arity);
  std::optional<absl::Status> TryTake(std::optional<int64_t> key, const Indices& indices,
                                      bool remove, Part* part);
  void WaitForPart(std::optional<int64_t> key, Indices indices, bool remove,
                   Cancellation* cancellation, TakeCallback done);
  void ResetState() override;

  const std::string name_;
  const StagingLimits limits_;
  std::map<int64_t, Parts> whole_, incomplete_;
  int64_t bytes_ = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_STAGING_H_
