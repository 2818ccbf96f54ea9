#include "weir/core/tensor/heap.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/host_memory.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/system_memory.h"

namespace weir {

namespace {

constexpr size_t kCheckInterval = size_t{4} << 20;

thread_local constinit size_t since_check = 0;
thread_local constinit int64_t taken = 0;  // and not freed, since CountHeapAnew

bool IsAvailable(size_t bytes) {
  return static_cast<int64_t>(bytes) < SystemBytesFree(MemoryUse::kSmall);
}

bool IsInQuota() {
  const MemoryQuota* const quota = MemoryQuota::Current();
  return quota == nullptr || taken <= quota->left();
}

}  // namespace

bool MayAllocate(size_t bytes) {
  if (ScopedCancellation::Current() == nullptr) return true;
  since_check += bytes;
  taken += static_cast<int64_t>(bytes);
  if (since_check < kCheckInterval) return true;
  since_check = 0;
  if (IsInQuota()) {
    if (IsAvailable(bytes)) return true;
    TrimHostMemory(std::chrono::milliseconds(0));
    if (IsAvailable(bytes)) return true;
  }
  taken -= static_cast<int64_t>(bytes);
  since_check = kCheckInterval;  // check again at the next allocation
  return false;
}

void NoteFreed(size_t bytes) { taken -= static_cast<int64_t>(bytes); }

void CountHeapAnew() { taken = 0; }

ScopedHeapCount::ScopedHeapCount() : before_(std::exchange(taken, 0)) {}
ScopedHeapCount::~ScopedHeapCount() { taken = before_; }

}  // namespace weir
