#include "weir/core/tensor/heap.h"

#include <chrono>
#include <cstdint>

#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/host_memory.h"
#include "weir/core/tensor/system_memory.h"

namespace weir {

namespace {

constexpr size_t kCheckInterval = size_t{4} << 20;

thread_local constinit size_t since_check = 0;

bool IsAvailable(size_t bytes) {
  return static_cast<int64_t>(bytes) < SystemBytesFree(MemoryUse::kSmall);
}

}  // namespace

bool MayAllocate(size_t bytes) {
  if (ScopedCancellation::Current() == nullptr) return true;
  since_check += bytes;
  if (since_check < kCheckInterval) return true;
  since_check = 0;
  if (IsAvailable(bytes)) return true;
  TrimHostMemory(std::chrono::milliseconds(0));
  if (IsAvailable(bytes)) return true;
  since_check = kCheckInterval;  // check again at the next allocation
  return false;
}

}  // namespace weir
