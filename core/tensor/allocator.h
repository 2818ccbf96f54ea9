#ifndef WEIR_CORE_TENSOR_ALLOCATOR_H_
#define WEIR_CORE_TENSOR_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "weir/core/tensor/dtype.h"

namespace weir {

// A source of memory for tensors: host memory, or the memory of one accelerator. Thread-safe. An
// allocator outlives everything allocated from it.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;  // bytes: a cache line, and the longest vectors

  virtual ~Allocator() = default;
  // For messages: "cpu". Valid as long as the allocator.
  virtual absl::string_view name() const = 0;
  // Returns at least `bytes` bytes, aligned to kAlignment and uninitialized, or nullptr when out of
  // memory. Never throws.
  virtual void* Allocate(size_t bytes) = 0;
  // `bytes` is the size passed to Allocate.
  virtual void Deallocate(void* data, size_t bytes) = 0;
  // Returns false for memory that the host must not touch (an accelerator's).
  virtual bool host_accessible() const { return true; }
  // Bytes allocated and not yet deallocated.
  virtual int64_t bytes_in_use() const = 0;
  // Estimate of the bytes that can still be allocated; for messages.
  virtual int64_t bytes_free() const = 0;
};

// Returns the process-wide host allocator. It caches freed blocks for reuse, because the first
// touch of fresh pages costs ten times as much as memory already in use: up to 256 MiB in blocks of
// 16 KiB to 64 MiB, and up to an eighth of the free memory in blocks of at most 1 GiB, whose pages
// the system may take back whenever it needs them (MADV_FREE).
Allocator& HostAllocator();
// Limits the bytes in use of the host allocator, in addition to what the system allows (by default,
// without limit). Beyond it, allocations return nullptr; running steps end with RESOURCE_EXHAUSTED.
void SetHostMemoryLimit(int64_t bytes);

// A ref-counted block of memory that holds the elements of a tensor. Tensors share it; the last
// reference frees it.
class Buffer {
 public:
  // Allocates `count` elements of `dtype` from `allocator` and constructs them if they are C++
  // objects. Returns nullptr when out of memory. The caller owns one reference.
  static Buffer* New(Allocator& allocator, DataType dtype, int64_t count);
  // Wraps memory owned by somebody else. `release(arg)` is called when the last reference is
  // dropped; `release` may be null. `transient` marks memory that is reused when the step ends (an
  // arena): a value that outlives the step must be copied.
  static Buffer* Wrap(void* data, size_t bytes, Allocator* allocator, void (*release)(void*),
                      void* arg, bool transient = false);

  // The elements, and their size in bytes.
  void* data() const { return data_; }
  size_t size() const { return bytes_; }
  // Null for wrapped host memory.
  Allocator* allocator() const { return allocator_; }
  // Whether the memory is an arena's (see Wrap), and whether the host may touch it.
  bool transient() const { return transient_; }
  bool host_accessible() const { return allocator_ == nullptr || allocator_->host_accessible(); }

  // Adds a reference, and drops one. The last Unref frees the memory. Thread-safe.
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    // The sole owner needs no atomic decrement: no other thread can hold a reference.
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      Delete();
  }
  // True if the caller's reference is the only one, so that it may write to the elements.
  bool unique() const { return holders() == 1; }
  // The number of references. Other threads may change it concurrently unless the caller excludes
  // them.
  int32_t holders() const { return refs_.load(std::memory_order_acquire); }

 private:
  Buffer() = default;
  ~Buffer() = default;
  void Delete();

  std::atomic<int32_t> refs_{1};
  DataType dtype_ = DT_INVALID;  // to destroy the objects
  bool transient_ = false;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  int64_t count_ = 0;
  Allocator* allocator_ = nullptr;
  void (*release_)(void*) = nullptr;
  void* release_arg_ = nullptr;
};

// A ref-counting pointer to a Buffer.
class BufferPtr {
 public:
  // Takes over a reference that the caller owns; null is allowed. Copies add a reference.
  BufferPtr() = default;
  explicit BufferPtr(Buffer* owned) : p_(owned) {}
  BufferPtr(const BufferPtr& o) : p_(o.p_) {
    if (p_ != nullptr) p_->Ref();
  }
  BufferPtr(BufferPtr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  BufferPtr& operator=(BufferPtr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~BufferPtr() {
    if (p_ != nullptr) p_->Unref();
  }
  Buffer* get() const { return p_; }
  Buffer* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  Buffer* p_ = nullptr;
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_ALLOCATOR_H_
