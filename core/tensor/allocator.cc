#include "weir/core/tensor/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <new>

#include "weir/core/tensor/host_memory.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/system_memory.h"

namespace weir {

namespace {

// A caching allocator. It keeps freed blocks of 16 KiB to 1 GiB in free lists, one for each size
// class, and reuses them in LIFO order. There are four size classes per doubling, so a block is at
// most 25% larger than requested. A free list is threaded through the free blocks themselves and
// has its own lock, so threads that work on different sizes do not contend. Smaller blocks come
// from malloc, which has per-thread caches; larger ones are returned to the system. Sanitizer
// builds cache nothing, because a cached block hides its misuse.
//
// Blocks above 64 MiB have a cache of their own, in which the system may take the pages back
// (MADV_FREE): the process keeps what nobody else needs. As long as the system has not taken a
// page, reusing it costs nothing, while a new page must be cleared, which takes as long as a kernel
// that only moves elements.
//
// When a cache is full, a size class that has not been used recently is evicted to make room for
// the freed block. Otherwise the blocks of a deleted model would be cached forever, and every
// buffer of the next model would be allocated from and returned to the system.
class CachingAllocator final : public Allocator {
 public:
  absl::string_view name() const override { return "cpu"; }

  void* Allocate(size_t bytes) override {
    if (bytes > kMaxBytes || !Reserve(static_cast<int64_t>(bytes))) return nullptr;
    const int size_class = SizeClass(bytes);
    const size_t block = size_class < 0 ? bytes : ClassBytes(size_class);
    void* data = size_class < 0 ? nullptr : PopCached(size_class);
    if (data == nullptr) data = AllocateIfAvailable(block);
    if (data == nullptr) {
      DropUnused(std::chrono::milliseconds(0));
      data = AllocateIfAvailable(block);
    }
    if (data == nullptr) in_use_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    return data;
  }

  void Deallocate(void* data, size_t bytes) override {
    if (data == nullptr) return;
    in_use_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    const int size_class = SizeClass(bytes);
    if (size_class < 0 || !PushCached(data, size_class)) SystemFree(data, bytes);
  }

  int64_t bytes_in_use() const override { return in_use_.load(std::memory_order_relaxed); }
  int64_t bytes_free() const override {
    const int64_t allowed = limit_.load(std::memory_order_relaxed) - bytes_in_use();
    return std::clamp<int64_t>(allowed, 0,
                               SystemBytesFree() + held_.bytes.load(std::memory_order_relaxed));
  }
  void SetLimit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

  // Counts the bytes as used. Returns false if they would exceed the limit.
  bool Reserve(int64_t bytes) {
    const int64_t before = in_use_.fetch_add(bytes, std::memory_order_relaxed);
    if (before <= limit_.load(std::memory_order_relaxed) - bytes) return true;
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  void Release(int64_t bytes) { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }

  // Frees the blocks of the classes that have not been used for that long. Returns the bytes.
  int64_t DropUnused(std::chrono::milliseconds unused_for) {
    const int64_t until = NowMs() - unused_for.count();
    int64_t freed = 0;
    for (int c = 0; c < kClasses; ++c) {
      if (lists_[c].used_ms.load(std::memory_order_relaxed) <= until) freed += DropClass(c);
    }
    return freed;
  }

 private:
  static constexpr size_t kMaxBytes = size_t{1} << 47;
  static constexpr int kSmallestLog = 14, kHeldLog = 26, kLargestLog = 30;  // 16 KiB, 64 MiB, 1 GiB
  static constexpr int kHeldClasses = (kHeldLog - kSmallestLog) * 4 + 1;
  static constexpr int kClasses = (kLargestLog - kSmallestLog) * 4 + 1;
  static constexpr int64_t kMaxHeldBytes = int64_t{256} << 20;
  // Blocks of at least kHugePages bytes are allocated in 2 MiB pages: the first touch of 4 KiB
  // pages costs several times as much as copying the data into them.
  static constexpr size_t kHugePage = size_t{2} << 20, kHugePages = size_t{4} << 20;

  struct FreeBlock {
    FreeBlock* next;
  };
  struct FreeList {
    Mutex mutex;  // held while the list changes
    std::atomic<FreeBlock*> head{nullptr};
    std::atomic<int64_t> used_ms{0};  // when a block was last pushed or popped
  };
  static constexpr int64_t kStaleAfterMs = 200;

  // The free blocks of some classes: those below kHeldClasses, or the larger ones.
  struct Cache {
    const int first_class, end_class;
    std::atomic<int64_t> bytes{0};
  };
  Cache& CacheOf(int size_class) { return size_class < kHeldClasses ? held_ : lent_; }

  // An eighth of the memory that is free at the first call: the system can take the pages of large
  // blocks back, but prefers not to be asked.
  static int64_t CacheBytes() {
    static const int64_t bytes = SystemBytesFree() / 8;
    return bytes;
  }

  // Lets the system take the pages of a free block. What they contain is lost only if it does.
  static void LendPages(void* data, size_t bytes) {
    static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    madvise(data, bytes / page * page, MADV_FREE);  // a hint, as MADV_HUGEPAGE
  }

  // Class 4k + j holds blocks of 16 KiB * 2^k * (1 + j/4).
  static size_t ClassBytes(int c) {
    return ((size_t{4} + static_cast<size_t>(c % 4)) << (kSmallestLog - 2)) << (c / 4);
  }

  // Returns the smallest class that holds `bytes`, or -1 if blocks of that size are not cached.
  static int SizeClass(size_t bytes) {
#ifdef WEIR_SANITIZED
    return -1;
#endif
    if (bytes < (size_t{1} << kSmallestLog) || bytes > (size_t{1} << kLargestLog)) return -1;
    const int log = std::bit_width(bytes) - 1;
    const size_t quarter = size_t{1} << (log - 2);
    const int j = static_cast<int>((bytes - (size_t{1} << log) + quarter - 1) / quarter);
    return (log - kSmallestLog) * 4 + j;
  }

  // Small blocks come from malloc. The data starts at the next multiple of kAlignment, and the byte
  // before it stores the shift. This is several times as fast as aligned_alloc, which splits a
  // larger block for each allocation.
  static bool IsSmall(size_t bytes) {
#ifdef WEIR_SANITIZED
    return false;
#endif
    return bytes < (size_t{1} << kSmallestLog);
  }

  static void SystemFree(void* data, size_t bytes) {
    if (IsSmall(bytes)) data = static_cast<uint8_t*>(data) - static_cast<uint8_t*>(data)[-1];
    std::free(data);
  }

  static void* SystemAllocate(size_t bytes) {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (IsSmall(bytes)) {
      auto* const block = static_cast<uint8_t*>(std::malloc(rounded + kAlignment));
      if (block == nullptr) return nullptr;
      const size_t shift = kAlignment - reinterpret_cast<uintptr_t>(block) % kAlignment;
      block[shift - 1] = static_cast<uint8_t>(shift);
      return block + shift;
    }
    if (bytes < kHugePages)
      return std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
    void* data = nullptr;
    if (posix_memalign(&data, kHugePage, rounded) != 0) return nullptr;
    madvise(data, rounded, MADV_HUGEPAGE);  // a hint: the memory is valid without it
    return data;
  }

  // Allocates a block unless the system is out of memory. Linux overcommits memory and kills the
  // process that touches the excess, or another process. So a thread checks the available memory,
  // which takes tens of microseconds, after every 16 MiB that it has allocated. A block counts for
  // more than its size, because its owner takes memory as well. One thread at a time checks and
  // allocates: several could pass the check for the same memory.
  void* AllocateIfAvailable(size_t block) {
    constexpr size_t kCheckInterval = size_t{16} << 20, kPerBlockOverhead = 512;
    thread_local size_t since_check = 0;
    since_check += block + kPerBlockOverhead;
    if (since_check > kCheckInterval) {
      const MutexLock lock(checking_);
      // Check again at the next allocation, unless this check succeeds.
      since_check = kCheckInterval;
      if (static_cast<int64_t>(block) > SystemBytesFree()) return nullptr;
      since_check = 0;
      return SystemAllocate(block);
    }
    return SystemAllocate(block);
  }

  // Returns the time with a resolution of some milliseconds, at a cost of some nanoseconds.
  static int64_t NowMs() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  }

  void* PopCached(int size_class) {
    FreeList& list = lists_[size_class];
    const MutexLock lock(list.mutex);
    FreeBlock* block = list.head.load(std::memory_order_relaxed);
    if (block == nullptr) return nullptr;
    list.head.store(block->next, std::memory_order_relaxed);
    list.used_ms.store(NowMs(), std::memory_order_relaxed);
    CacheOf(size_class)
        .bytes.fetch_sub(static_cast<int64_t>(ClassBytes(size_class)), std::memory_order_relaxed);
    return block;
  }

  // Returns false if the cache of that class would exceed its limit.
  bool PushCached(void* data, int size_class) {
    const int64_t bytes = static_cast<int64_t>(ClassBytes(size_class));
    Cache& cache = CacheOf(size_class);
    const int64_t limit = &cache == &held_ ? std::min(kMaxHeldBytes, CacheBytes()) : CacheBytes();
    cache.bytes.fetch_add(bytes, std::memory_order_relaxed);
    while (cache.bytes.load(std::memory_order_relaxed) > limit) {
      if (DropStalestClass(cache)) continue;
      cache.bytes.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    if (&cache == &lent_) LendPages(data, ClassBytes(size_class));
    FreeList& list = lists_[size_class];
    const MutexLock lock(list.mutex);
    auto* const block = new (data) FreeBlock{list.head.load(std::memory_order_relaxed)};
    list.head.store(block, std::memory_order_relaxed);
    list.used_ms.store(NowMs(), std::memory_order_relaxed);
    return true;
  }

  // Frees the blocks of the least recently used class of a cache. Returns false if all classes were
  // used recently.
  bool DropStalestClass(const Cache& cache) {
    int stalest = -1;
    int64_t oldest = NowMs() - kStaleAfterMs;
    for (int c = cache.first_class; c < cache.end_class; ++c) {
      const int64_t used = lists_[c].used_ms.load(std::memory_order_relaxed);
      const bool is_empty = lists_[c].head.load(std::memory_order_relaxed) == nullptr;
      if (is_empty || used >= oldest) continue;
      oldest = used;
      stalest = c;
    }
    if (stalest < 0) return false;
    DropClass(stalest);
    return true;
  }

  // Returns the bytes that it frees.
  int64_t DropClass(int c) {
    int64_t freed = 0;
    while (void* block = PopCached(c)) {
      std::free(block);
      freed += static_cast<int64_t>(ClassBytes(c));
    }
    return freed;
  }

  Mutex checking_;  // see AllocateIfAvailable
  std::array<FreeList, kClasses> lists_;
  Cache held_{0, kHeldClasses}, lent_{kHeldClasses, kClasses};
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> limit_{std::numeric_limits<int64_t>::max()};
};

CachingAllocator& TheHostAllocator() {
  static CachingAllocator& allocator = *new CachingAllocator;
  return allocator;
}

}  // namespace

Allocator& HostAllocator() {
  MemoryQuota* const quota = MemoryQuota::Current();
  return quota != nullptr ? static_cast<Allocator&>(*quota) : TheHostAllocator();
}
Allocator& ProcessAllocator() { return TheHostAllocator(); }
void SetHostMemoryLimit(int64_t bytes) { TheHostAllocator().SetLimit(bytes); }
bool ReserveHostMemory(int64_t bytes) { return TheHostAllocator().Reserve(bytes); }
void ReleaseHostMemory(int64_t bytes) { TheHostAllocator().Release(bytes); }
int64_t TrimHostMemory(std::chrono::milliseconds unused_for) {
  return TheHostAllocator().DropUnused(unused_for);
}

}  // namespace weir
