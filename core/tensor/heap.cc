#include "weir/core/tensor/heap.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/host_memory.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/system_memory.h"

namespace weir {

namespace {

constexpr size_t kCheckInterval = size_t{4} << 20;
constexpr size_t kMaxBytes = size_t{1} << 47;  // as of the host allocator: more is a mistake

// An allocation that was refused. It holds numbers, since no text can be allocated then.
struct Refusal {
  size_t bytes = 0;  // 0: none
  int64_t left = 0;
  bool by_quota = false;
};

thread_local constinit size_t since_check = 0;
thread_local constinit int64_t taken = 0;  // and not freed, since CountHeapAnew
thread_local constinit bool is_limited = false;
thread_local constinit Refusal refusal;

// Returns why so many bytes may not be allocated, or no bytes.
Refusal Check(size_t bytes) {
  const auto more = static_cast<int64_t>(std::min(bytes, kMaxBytes));
  if (const MemoryQuota* const quota = MemoryQuota::Current(); quota != nullptr) {
    const int64_t left = quota->left();
    if (taken > left - more) return {bytes, left - taken, true};
  }
  int64_t left = SystemBytesFree(MemoryUse::kSmall);
  if (more >= left) {
    TrimHostMemory(std::chrono::milliseconds(0));
    left = SystemBytesFree(MemoryUse::kSmall);
  }
  return more < left ? Refusal() : Refusal{bytes, left, false};
}

}  // namespace

bool MayAllocate(size_t bytes) {
  if (!is_limited || ScopedCancellation::Current() == nullptr) return true;
  since_check += std::min(bytes, kCheckInterval);
  if (since_check < kCheckInterval) return true;
  refusal = Check(bytes);
  const bool may = refusal.bytes == 0;
  since_check = may ? 0 : kCheckInterval;  // check again at the next allocation
  return may;
}

void NoteAllocated(size_t bytes) { taken += static_cast<int64_t>(bytes); }

void NoteFreed(size_t bytes) { taken = std::max<int64_t>(0, taken - static_cast<int64_t>(bytes)); }

void CountHeapAnew() { taken = 0; }

std::string WhyNotAllocated() {
  const Refusal why = std::exchange(refusal, {});
  if (why.bytes == 0) return "";
  return absl::StrCat(": ", why.bytes, " bytes, but ",
                      why.by_quota ? "the quota leaves " : "the system has ",
                      std::max<int64_t>(0, why.left), why.by_quota ? " more" : " to spare");
}

ScopedHeapCount::ScopedHeapCount()
    : taken_before_(std::exchange(taken, 0)), limited_before_(std::exchange(is_limited, true)) {}
ScopedHeapCount::~ScopedHeapCount() {
  taken = taken_before_;
  is_limited = limited_before_;
}

ScopedUnlimitedHeap::ScopedUnlimitedHeap() : limited_before_(std::exchange(is_limited, false)) {}
ScopedUnlimitedHeap::~ScopedUnlimitedHeap() { is_limited = limited_before_; }

}  // namespace weir
