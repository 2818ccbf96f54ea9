#ifndef WEIR_CORE_TENSOR_MEMORY_QUOTA_H_
#define WEIR_CORE_TENSOR_MEMORY_QUOTA_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "weir/core/tensor/allocator.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"
#include "weir/core/tensor/tensor.h"

// Limits on parts of the host's memory, such as what one client of a server holds.
namespace weir {

// What a step, a session or a client holds of the memory of the host allocator, and the most that
// it may hold. A quota is a part of an outer one, where its bytes count too. A block counts from
// its allocation until it is deallocated, whoever does that and when: a variable counts for the
// session that assigned it, even after the session is closed.
//
// While a ScopedMemoryQuota exists on a thread, HostAllocator() returns its quota. The executor and
// the loops of a ThreadPool set it on all threads that work on a step. Thread-safe.
class MemoryQuota final : public Allocator {
 public:
  // What a block counts in addition to its bytes, for the objects that describe it: a queue of a
  // million scalars takes hundreds of megabytes.
  static constexpr int64_t kBytesPerBlock = 256;

  // `name` says who has the quota, and which option sets it: "this step (weir serve
  // --step-memory-mb)". A `limit` of 0 bytes limits nothing. `outer` may be null.
  static std::shared_ptr<MemoryQuota> New(std::shared_ptr<MemoryQuota> outer, std::string name,
                                          int64_t limit);

  // Changes the limit. What is held already stays, even if it is more.
  void set_limit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  // The bytes that count for this quota.
  int64_t held() const { return held_.load(std::memory_order_relaxed); }
  // The bytes that this quota and its outer ones leave; INT64_MAX without limits.
  int64_t left() const;
  // Another owner of this quota.
  std::shared_ptr<MemoryQuota> Share();

  // Counts memory that is allocated elsewhere. Returns RESOURCE_EXHAUSTED, with the quota and what
  // is left, and counts nothing, if it is too much. Release what is counted.
  absl::Status Charge(int64_t bytes, absl::string_view what);
  void Release(int64_t bytes);

  // Counts what the strings of a tensor hold, until its buffer is deallocated, for the quota that
  // it was allocated from. Call it again after they have changed. RESOURCE_EXHAUSTED as above.
  static absl::Status ChargeStrings(const Tensor& tensor);
  // Counts the memory of a tensor that no allocator has counted, for as long as it exists.
  absl::StatusOr<Tensor> Adopt(Tensor tensor);

  // Allocator. `name`, `bytes_in_use` and `bytes_free` are those of whatever leaves the least: this
  // quota, an outer one, or the allocator of the process.
  absl::string_view name() const override;
  void* Allocate(size_t bytes) override;
  void Deallocate(void* data, size_t bytes) override;
  int64_t bytes_in_use() const override;
  int64_t bytes_free() const override;

  // The quota of this thread; null if there is none.
  static MemoryQuota* Current() { return current_; }
  // An owner of it.
  static std::shared_ptr<MemoryQuota> ShareCurrent();

 private:
  friend class ScopedMemoryQuota;

  MemoryQuota(std::shared_ptr<MemoryQuota> outer, std::string name, int64_t limit)
      : outer_(std::move(outer)), name_(std::move(name)), limit_(limit) {}
  ~MemoryQuota() override = default;

  // The bytes that this quota alone leaves.
  int64_t OwnLeft() const;
  // The quota that leaves the least.
  const MemoryQuota& Tightest() const;
  bool Reserve(int64_t bytes);
  absl::Status SetStrings(const void* data, int64_t bytes);
  // Owners, and blocks that are allocated. The last one destroys the object.
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();

  static thread_local constinit MemoryQuota* current_;

  const std::shared_ptr<MemoryQuota> outer_;
  const std::string name_;
  std::atomic<int64_t> limit_, held_{0}, refs_{1};
  Mutex mutex_;
  std::unordered_map<const void*, int64_t> strings_ ABSL_GUARDED_BY(mutex_);  // bytes by buffer
  std::atomic<size_t> num_strings_{0};  // the size of the table, to ask without the lock
};

// Sets the quota of this thread for its lifetime. Null: memory counts for the process only.
class ScopedMemoryQuota {
 public:
  // The quota outlives this object. Scopes nest: the destructor restores the outer one.
  explicit ScopedMemoryQuota(MemoryQuota* quota)
      : before_(std::exchange(MemoryQuota::current_, quota)) {}
  ~ScopedMemoryQuota() { MemoryQuota::current_ = before_; }
  ScopedMemoryQuota(const ScopedMemoryQuota&) = delete;
  ScopedMemoryQuota& operator=(const ScopedMemoryQuota&) = delete;

 private:
  MemoryQuota* const before_;
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_MEMORY_QUOTA_H_
