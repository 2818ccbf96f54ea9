#ifndef WEIR_CORE_TENSOR_BUFFER_H_
#define WEIR_CORE_TENSOR_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weir/core/tensor/allocator.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/dtype.h"

namespace WEIR_API weir {

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

#endif  // WEIR_CORE_TENSOR_BUFFER_H_
