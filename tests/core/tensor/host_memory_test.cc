#include "weir/core/tensor/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "gtest/gtest.h"
#include "weir/core/tensor/allocator.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/heap.h"
#include "weir/core/tensor/system_memory.h"

namespace weir {
namespace {

using ::testing::ExitedWithCode;

constexpr int64_t kMb = int64_t{1} << 20;

void SetLimit(__rlimit_resource resource, int64_t bytes) {
  const rlimit both{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  if (setrlimit(resource, &both) != 0) std::abort();
}

// Limits the address space to this much more than the process has.
void LeaveSpace(int64_t bytes) {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  SetLimit(RLIMIT_AS, pages * sysconf(_SC_PAGESIZE) + bytes);
}

// Ends the process with the number of the first condition that does not hold, or 0.
[[noreturn]] void End(std::initializer_list<bool> conditions) {
  int number = 0;
  for (const bool holds : conditions) {
    ++number;
    if (!holds) _exit(number);
  }
  _exit(0);
}

TEST(SystemMemoryDeathTest, KnowsTheLimitsOfTheProcess) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizers need all the address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    const auto check = [resource] {
      SetLimit(resource, 1000 * kMb);
      const int64_t free = SystemBytesFree(), small = SystemBytesFree(MemoryUse::kSmall);
      // An eighth is the reserve, of which small pieces may take half.
      End({ProcessMemoryLimit() == 1000 * kMb, free <= 875 * kMb, free > 500 * kMb,
           small - free > 62 * kMb, small - free < 63 * kMb});
    };
    EXPECT_EXIT(check(), ExitedWithCode(0), "");
  }
}

TEST(SystemMemory, ReportsTheResidentSize) {
  EXPECT_GT(ResidentBytes(), kMb);
  EXPECT_LT(ResidentBytes(), 100'000 * kMb);
}

TEST(HostMemory, ReservationsCountLikeTensors) {
  Allocator& host = HostAllocator();
  const int64_t before = host.bytes_in_use();
  SetHostMemoryLimit(before + 3 * kMb);
  EXPECT_TRUE(ReserveHostMemory(2 * kMb));
  EXPECT_EQ(host.bytes_in_use(), before + 2 * kMb);
  EXPECT_FALSE(ReserveHostMemory(2 * kMb));
  EXPECT_EQ(host.Allocate(2 * kMb), nullptr);
  ReleaseHostMemory(2 * kMb);
  EXPECT_TRUE(ReserveHostMemory(3 * kMb));
  ReleaseHostMemory(3 * kMb);
  SetHostMemoryLimit(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(host.bytes_in_use(), before);
}

TEST(HostMemory, TrimReturnsTheCachedBlocks) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizer builds cache nothing";
#endif
  Allocator& host = HostAllocator();
  for (const int64_t bytes : {kMb, 100 * kMb}) {
    TrimHostMemory(std::chrono::milliseconds(0));
    host.Deallocate(host.Allocate(bytes), bytes);
    EXPECT_EQ(TrimHostMemory(std::chrono::hours(1)), 0) << "it has just been used";
    EXPECT_GE(TrimHostMemory(std::chrono::milliseconds(0)), bytes);
    EXPECT_EQ(TrimHostMemory(std::chrono::milliseconds(0)), 0);
  }
}

TEST(HeapDeathTest, OfKernelsEndsBeforeTheMemory) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizers need all the address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto check = [] {
    LeaveSpace(400 * kMb);
    const Cancellation step;
    const bool outside = MayAllocate(1000 * kMb);
    const ScopedCancellation of_step(&step);
    const ScopedHeapCount of_kernel;
    int64_t taken = 0;  // in strings that nobody else sees
    while (taken < 1000 * kMb && MayAllocate(4096)) {
      if (std::malloc(4096) == nullptr) _exit(1);
      taken += 4096;
    }
    const bool is_over = !MayAllocate(4096);
    const ScopedCancellation none(nullptr);
    End({outside, taken > 100 * kMb, taken < 390 * kMb, is_over, MayAllocate(4096)});
  };
  EXPECT_EXIT(check(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir
