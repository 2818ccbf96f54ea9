#include "weir/core/allocator.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "weir/core/resource_handle.h"
#include "weir/core/variant.h"

namespace weir {

namespace {

// The number after `key`, or the first word if there is none, in a file of lines such as
// "MemAvailable:  123 kB"; -1 if it is not there.
int64_t NumberIn(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  int64_t number = -1;
  if (key.empty()) return file >> number ? number : -1;
  while (file >> word) {
    if (word == key) return file >> number ? number : -1;
  }
  return -1;
}

// What the system has left, less some that everything besides tensors can still have; or what the
// process's container (a control group, version 2) or its own limit allows.
int64_t SystemBytesFree() {
  constexpr char kMemory[] = "/proc/meminfo";
  static const int64_t spare =
      std::min<int64_t>(NumberIn(kMemory, "MemTotal:") << 5, int64_t{256} << 20);  // 1/32 of it
  int64_t available = NumberIn(kMemory, "MemAvailable:");
  available = available < 0 ? std::numeric_limits<int64_t>::max()  // it does not say
                            : (available + NumberIn(kMemory, "SwapFree:")) << 10;
  static const int64_t of_group = NumberIn("/sys/fs/cgroup/memory.max", "");
  if (of_group >= 0) {
    const int64_t taken = NumberIn("/sys/fs/cgroup/memory.current", "") -
                          NumberIn("/sys/fs/cgroup/memory.stat", "inactive_file");
    available = std::min(available, of_group - taken);
  }
  available = std::max<int64_t>(available - spare, 0);
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return available;
  const int64_t taken = std::max<int64_t>(NumberIn("/proc/self/status", "VmSize:"), 0) << 10;
  return std::clamp<int64_t>(static_cast<int64_t>(limit.rlim_cur) - taken, 0, available);
}

// Freed blocks of 16 KiB to 64 MiB wait in lists, one for each size class, and go out again last in
// first out. There are four classes to a doubling, so that a block is at most a quarter larger than
// what was asked for. A list is threaded through the free blocks themselves and has a lock of its
// own, so threads that work on different sizes do not meet. Smaller blocks are left to malloc,
// which has caches for each thread; larger ones go back to the system. Sanitizer builds keep
// nothing, because a block that is kept hides its misuse.
//
// When the lists are full, a class that nobody has asked for lately makes room for the block that
// comes: else those of a model that is gone would be kept for ever, and every buffer of the next
// one would come from the system and go back to it.
class CachingAllocator final : public Allocator {
 public:
  absl::string_view name() const override { return "cpu"; }

  void* Allocate(size_t bytes) override {
    if (bytes > kMaxBytes) return nullptr;
    const int size_class = SizeClass(bytes);
    const size_t block = size_class < 0 ? bytes : ClassBytes(size_class);
    void* data = size_class < 0 ? nullptr : TakeCached(size_class);
    if (data == nullptr) data = IfThereIsRoom(block);
    if (data == nullptr) {
      DropCache();
      data = IfThereIsRoom(block);
    }
    if (data != nullptr) in_use_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    return data;
  }

  void Deallocate(void* data, size_t bytes) override {
    if (data == nullptr) return;
    in_use_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    const int size_class = SizeClass(bytes);
    if (size_class < 0 || !Keep(data, size_class)) SystemFree(data, bytes);
  }

  int64_t bytes_in_use() const override { return in_use_.load(std::memory_order_relaxed); }
  int64_t bytes_free() const override {
    return SystemBytesFree() + cached_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kMaxBytes = size_t{1} << 47;
  static constexpr int kSmallestLog = 14, kLargestLog = 26;  // 16 KiB, 64 MiB
  static constexpr int kClasses = (kLargestLog - kSmallestLog) * 4 + 1;
  static constexpr int64_t kCapacity = int64_t{256} << 20;
  // From here on memory is asked for in pages of 2 MiB: the first touch of 4 KiB pages costs
  // several times the copying of what is put there.
  static constexpr size_t kHugePage = size_t{2} << 20, kHugePages = size_t{4} << 20;

  struct FreeBlock {
    FreeBlock* next;
  };
  struct FreeList {
    std::mutex mutex;  // held by who changes it
    std::atomic<FreeBlock*> head{nullptr};
    std::atomic<int64_t> used_ms{0};  // when a block was last taken or given back
  };
  static constexpr int64_t kLatelyMs = 200;

  // Class 4k + j holds blocks of 16 KiB * 2^k * (1 + j/4).
  static size_t ClassBytes(int c) {
    return ((size_t{4} + static_cast<size_t>(c % 4)) << (kSmallestLog - 2)) << (c / 4);
  }

  // The smallest class that holds `bytes`; -1 if such blocks are not kept.
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

  // Of these malloc's own blocks are used, from the next multiple of kAlignment on, and the byte
  // before that says how far it is: aligned_alloc cuts a larger block each time, which takes
  // several times as long.
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
    madvise(data, rounded, MADV_HUGEPAGE);  // a hint: without it the memory is as good
    return data;
  }

  // Linux gives out more memory than there is, and ends the process that then touches it, or
  // another one. So whoever has asked for 64 MiB since the last look is made to look at what is
  // left, which takes some tens of microseconds; a block counts for more than it has, since what
  // holds it takes memory as well.
  static void* IfThereIsRoom(size_t block) {
    constexpr size_t kBetweenLooks = size_t{64} << 20, kBesides = 512;
    thread_local size_t asked_for = 0;
    asked_for += block + kBesides;
    if (asked_for > kBetweenLooks) {
      asked_for = kBetweenLooks;  // look again next time, unless there is room now
      if (static_cast<int64_t>(block) > SystemBytesFree()) return nullptr;
      asked_for = 0;
    }
    return SystemAllocate(block);
  }

  // To some milliseconds, for some nanoseconds.
  static int64_t NowMs() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  }

  void* TakeCached(int size_class) {
    FreeList& list = lists_[size_class];
    std::lock_guard<std::mutex> lock(list.mutex);
    FreeBlock* block = list.head.load(std::memory_order_relaxed);
    if (block == nullptr) return nullptr;
    list.head.store(block->next, std::memory_order_relaxed);
    list.used_ms.store(NowMs(), std::memory_order_relaxed);
    cached_.fetch_sub(static_cast<int64_t>(ClassBytes(size_class)), std::memory_order_relaxed);
    return block;
  }

  // False if that would keep too much.
  bool Keep(void* data, int size_class) {
    const int64_t bytes = static_cast<int64_t>(ClassBytes(size_class));
    cached_.fetch_add(bytes, std::memory_order_relaxed);
    while (cached_.load(std::memory_order_relaxed) > kCapacity) {
      if (DropForgotten()) continue;
      cached_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    FreeList& list = lists_[size_class];
    std::lock_guard<std::mutex> lock(list.mutex);
    auto* const block = new (data) FreeBlock{list.head.load(std::memory_order_relaxed)};
    list.head.store(block, std::memory_order_relaxed);
    list.used_ms.store(NowMs(), std::memory_order_relaxed);
    return true;
  }

  // The blocks of the class that has not been asked for for the longest time; false if all have
  // been lately.
  bool DropForgotten() {
    int forgotten = -1;
    int64_t oldest = NowMs() - kLatelyMs;
    for (int c = 0; c < kClasses; ++c) {
      const int64_t used = lists_[c].used_ms.load(std::memory_order_relaxed);
      const bool is_empty = lists_[c].head.load(std::memory_order_relaxed) == nullptr;
      if (is_empty || used >= oldest) continue;
      oldest = used;
      forgotten = c;
    }
    if (forgotten < 0) return false;
    DropClass(forgotten);
    return true;
  }

  void DropClass(int c) {
    while (void* block = TakeCached(c)) std::free(block);
  }

  void DropCache() {
    for (int c = 0; c < kClasses; ++c) DropClass(c);
  }

  std::array<FreeList, kClasses> lists_;
  std::atomic<int64_t> cached_{0};
  std::atomic<int64_t> in_use_{0};
};

// Calls f.operator()<T>() if the elements of `dtype` are objects of class T.
template <class F>
void DispatchObject(DataType dtype, F&& f) {
  DispatchType(dtype, List<std::string, ResourceHandle, Variant>{}, f);
}

}  // namespace

Allocator& HostAllocator() {
  static CachingAllocator& allocator = *new CachingAllocator;
  return allocator;
}

Buffer* Buffer::New(Allocator& allocator, DataType dtype, int64_t count) {
  assert(count >= 0 && ElementSize(dtype) > 0);
  assert(IsPlain(dtype) || allocator.host_accessible());
  size_t bytes;
  if (__builtin_mul_overflow(static_cast<size_t>(count), ElementSize(dtype), &bytes))
    return nullptr;
  void* data = allocator.Allocate(bytes);
  if (data == nullptr) return nullptr;
  DispatchObject(dtype, [&]<class T>() {
    std::uninitialized_value_construct_n(static_cast<T*>(data), count);
  });
  Buffer* buffer = new Buffer;
  buffer->dtype_ = dtype;
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->count_ = count;
  buffer->allocator_ = &allocator;
  return buffer;
}

Buffer* Buffer::Wrap(void* data, size_t bytes, Allocator* allocator, void (*release)(void*),
                     void* arg, bool transient) {
  Buffer* buffer = new Buffer;
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->allocator_ = allocator;
  buffer->release_ = release;
  buffer->release_arg_ = arg;
  buffer->transient_ = transient;
  return buffer;
}

void Buffer::Delete() {
  if (dtype_ != DT_INVALID) {  // not wrapped
    DispatchObject(dtype_, [this]<class T>() { std::destroy_n(static_cast<T*>(data_), count_); });
    allocator_->Deallocate(data_, bytes_);
  } else if (release_ != nullptr) {
    release_(release_arg_);
  }
  delete this;
}

}  // namespace weir
