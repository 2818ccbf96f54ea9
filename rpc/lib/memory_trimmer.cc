#include "weir/rpc/lib/memory_trimmer.h"

#include <malloc.h>

#include <algorithm>

#include "weir/core/tensor/host_memory.h"
#include "weir/core/tensor/system_memory.h"

namespace weir::rpc {

namespace {

// Blocks of sizes that have not been used for this long are no longer cached.
constexpr std::chrono::seconds kUnused{5};
// Trimming goes through all free blocks of the C library, so it is rare.
constexpr std::chrono::seconds kBetweenChecks{5};
constexpr int64_t kWorthwhile = int64_t{32} << 20;

int64_t FreeInLibrary() { return static_cast<int64_t>(mallinfo2().fordblks); }

}  // namespace

void MemoryTrimmer::Trim() {
  TrimHostMemory(kUnused);
  const auto now = std::chrono::steady_clock::now();
  if (now - checked_at_ < kBetweenChecks) return;
  checked_at_ = now;
  // What has been trimmed still counts as free, so either can grow alone.
  const int64_t resident = ResidentBytes(), free = FreeInLibrary();
  const bool has_grown = resident - resident_ >= kWorthwhile || free - free_ >= kWorthwhile;
  if (!has_grown || free < kWorthwhile) {
    resident_ = std::min(resident_, resident);
    free_ = std::min(free_, free);
    return;
  }
  malloc_trim(0);
  resident_ = ResidentBytes();
  free_ = FreeInLibrary();
}

}  // namespace weir::rpc
