#ifndef WEIR_CORE_ALLOCATOR_H_
#define WEIR_CORE_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "weir/core/dtype.h"

namespace weir {

// Where the bytes of tensors come from: host memory, or the memory of one accelerator. Thread-safe.
// An allocator outlives everything that was allocated from it.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;

  virtual ~Allocator() = default;
  virtual absl::string_view name() const = 0;
  // At least `bytes` bytes aligned to kAlignment, uninitialized; nullptr when there is no room
  // (never throws).
  virtual void* Allocate(size_t bytes) = 0;
  // `bytes` is what Allocate was asked for.
  virtual void Deallocate(void* data, size_t bytes) = 0;
  // False for memory that the host must not touch (an accelerator's).
  virtual bool host_accessible() const { return true; }
  // Bytes handed out and not yet returned.
  virtual int64_t bytes_in_use() const = 0;
  // Bytes that could be had besides, as far as can be told; for messages.
  virtual int64_t bytes_free() const = 0;
};

// The host's allocator. Blocks from 16 KiB to 64 MiB are kept when freed and handed out again (at
// most 256 MiB of them), because the first touch of fresh pages costs ten times as much as memory
// already in use. One for the process.
Allocator& HostAllocator();

// A counted block of memory with the elements of a tensor in it. Tensors share it; the last one
// frees it.
class Buffer {
 public:
  // A block of `count` elements of `dtype` from `allocator`, objects constructed if the dtype has
  // any; nullptr when there is no room. The caller owns one reference.
  static Buffer* New(Allocator& allocator, DataType dtype, int64_t count);
  // Wraps memory that others own. `release(arg)` is called when the last reference goes; may be
  // null. `transient` marks memory that is reused when the step ends (an arena): whoever keeps a
  // value beyond the step copies it.
  static Buffer* Wrap(void* data, size_t bytes, Allocator* allocator, void (*release)(void*),
                      void* arg, bool transient = false);

  void* data() const { return data_; }
  size_t size() const { return bytes_; }
  // Null for wrapped host memory.
  Allocator* allocator() const { return allocator_; }
  bool transient() const { return transient_; }
  bool host_accessible() const { return allocator_ == nullptr || allocator_->host_accessible(); }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    // A sole owner needs no atomic write: nobody else can be counting.
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      Delete();
  }
  bool unique() const { return holders() == 1; }
  // How many hold it; others may join or leave meanwhile, unless they are kept from it.
  int32_t holders() const { return refs_.load(std::memory_order_acquire); }

 private:
  Buffer() = default;
  ~Buffer() = default;
  void Delete();

  std::atomic<int32_t> refs_{1};
  DataType dtype_ = DT_INVALID;  // for destroying objects
  bool transient_ = false;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  int64_t count_ = 0;
  Allocator* allocator_ = nullptr;
  void (*release_)(void*) = nullptr;
  void* release_arg_ = nullptr;
};

// A reference to a Buffer.
class BufferPtr {
 public:
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

#endif  // WEIR_CORE_ALLOCATOR_H_
