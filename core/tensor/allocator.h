#ifndef WEIR_CORE_TENSOR_ALLOCATOR_H_
#define WEIR_CORE_TENSOR_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "weir/core/tensor/api.h"

namespace WEIR_API weir {

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

// Returns the host allocator: the one of the process, or the quota of the thread
// (memory_quota.h), which allocates from it. It caches freed blocks for reuse, because the first
// touch of fresh pages costs ten times as much as memory already in use: up to 256 MiB in blocks of
// 16 KiB to 64 MiB, and up to an eighth of the free memory in blocks of at most 1 GiB, whose pages
// the system may take back whenever it needs them (MADV_FREE).
Allocator& HostAllocator();
// Limits the bytes in use of the host allocator, in addition to what the system allows (by default,
// without limit). Beyond it, allocations return nullptr; running steps end with RESOURCE_EXHAUSTED.
void SetHostMemoryLimit(int64_t bytes);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_ALLOCATOR_H_
