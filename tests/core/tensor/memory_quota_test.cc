#include "weir/core/tensor/memory_quota.h"

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/exception.h"
#include "weir/core/tensor/heap.h"
#include "weir/core/tensor/host_memory.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMb = int64_t{1} << 20, kPerBlock = MemoryQuota::kBytesPerBlock;

absl::StatusOr<Tensor> Bytes(int64_t count) {
  return Tensor::Allocate(HostAllocator(), DT_UINT8, Shape({count}));
}

TEST(MemoryQuota, LimitsWhatAThreadAllocates) {
  const auto quota = MemoryQuota::New(nullptr, "this test (--test)", 10 * kMb + kPerBlock);
  {
    const ScopedMemoryQuota scope(quota.get());
    absl::StatusOr<Tensor> held = Bytes(6 * kMb);
    ASSERT_TRUE(held.ok());
    EXPECT_EQ(quota->held(), 6 * kMb + kPerBlock);
    EXPECT_EQ(quota->left(), 4 * kMb);
    const absl::Status status = Bytes(5 * kMb).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    for (const char* part : {"by allocator this test (--test)", "5242880 bytes asked for",
                             "6291712 in use", "4194304 free"})
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    held = Tensor();
    EXPECT_EQ(quota->held(), 0);
    EXPECT_TRUE(Bytes(10 * kMb).ok());
  }
  EXPECT_TRUE(Bytes(20 * kMb).ok()) << "outside of the scope";
}

TEST(MemoryQuota, CountsForOuterQuotasToo) {
  const auto client = MemoryQuota::New(nullptr, "client", 10 * kMb);
  auto first = MemoryQuota::New(client, "first", 8 * kMb),
       second = MemoryQuota::New(client, "b", 0);
  Tensor variable;
  {
    const ScopedMemoryQuota scope(first.get());
    variable = *Bytes(6 * kMb);
    EXPECT_THAT(std::string(Bytes(3 * kMb).status().message()), HasSubstr("allocator first"));
  }
  EXPECT_EQ(first->held(), 6 * kMb + kPerBlock) << "what was refused is not counted";
  const ScopedMemoryQuota scope(second.get());
  EXPECT_THAT(std::string(Bytes(5 * kMb).status().message()), HasSubstr("allocator client"));
  EXPECT_EQ(second->held(), 0);
  first = nullptr;  // the variable outlives the session
  EXPECT_EQ(client->held(), 6 * kMb + kPerBlock);
  variable = Tensor();
  EXPECT_EQ(client->held(), 0);
  client->set_limit(4 * kMb);
  EXPECT_FALSE(Bytes(5 * kMb).ok());
}

TEST(MemoryQuota, CountsStringsUntilTheirBufferIsFreed) {
  const auto quota = MemoryQuota::New(nullptr, "quota", kMb);
  const ScopedMemoryQuota scope(quota.get());
  Tensor texts = Tensor::Vector<std::string>({std::string(600'000, 'a'), "short"});
  EXPECT_LT(quota->held(), 1000);
  ASSERT_TRUE(MemoryQuota::ChargeStrings(texts).ok());
  ASSERT_TRUE(MemoryQuota::ChargeStrings(texts).ok()) << "again, the same";
  EXPECT_GE(quota->held(), 600'000);
  EXPECT_LT(quota->held(), 601'000);
  const Tensor more = Tensor::Vector<std::string>({std::string(600'000, 'b')});
  EXPECT_TRUE(absl::IsResourceExhausted(MemoryQuota::ChargeStrings(more)));
  texts = Tensor();
  EXPECT_LT(quota->held(), 1000);
  EXPECT_TRUE(MemoryQuota::ChargeStrings(more).ok());
}

TEST(MemoryQuota, CountsAdoptedMemory) {
  const auto quota = MemoryQuota::New(nullptr, "quota", kMb);
  std::vector<uint8_t> memory(600'000);
  const auto wrap = [&] {
    BufferPtr buffer(Buffer::Wrap(memory.data(), memory.size(), nullptr, nullptr, nullptr));
    return Tensor(DT_UINT8, Shape({600'000}), std::move(buffer), memory.data());
  };
  absl::StatusOr<Tensor> adopted = quota->Adopt(wrap());
  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(adopted->raw(), memory.data());
  EXPECT_EQ(quota->held(), 600'000);
  EXPECT_TRUE(absl::IsResourceExhausted(quota->Adopt(wrap()).status()));
  adopted = Tensor();
  EXPECT_EQ(quota->held(), 0);
}

TEST(MemoryQuota, HoldsOnTheThreadsOfALoop) {
  ThreadPool pool(4);
  const auto quota = MemoryQuota::New(nullptr, "quota", 0);
  const ScopedMemoryQuota scope(quota.get());
  std::atomic<int> without{0};
  pool.ParallelFor(1000, 1e5, [&](int64_t, int64_t) {
    if (MemoryQuota::Current() != quota.get()) ++without;
  });
  EXPECT_EQ(without, 0);
}

// Does as an operator new. Returns false if the allocation is refused.
bool Take(size_t bytes) {
  if (!MayAllocate(bytes)) return false;
  NoteAllocated(bytes);
  return true;
}

TEST(MemoryQuota, LimitsTheHeapOfKernels) {
  const auto quota = MemoryQuota::New(nullptr, "quota", 10 * kMb);
  const ScopedMemoryQuota scope(quota.get());
  const Cancellation step;
  const ScopedCancellation of_step(&step);
  const ScopedHeapCount of_kernel;
  EXPECT_TRUE(Take(9 * kMb));
  EXPECT_FALSE(Take(5 * kMb));
  EXPECT_EQ(WhyNotAllocated(), ": 5242880 bytes, but the quota leaves 1048576 more");
  EXPECT_EQ(WhyNotAllocated(), "") << "it is told once";
  NoteFreed(6 * kMb);
  EXPECT_TRUE(Take(5 * kMb));
  CountHeapAnew();
  EXPECT_TRUE(Take(9 * kMb));
  {
    const ScopedHeapCount of_another;
    EXPECT_TRUE(Take(9 * kMb));
  }
  EXPECT_FALSE(Take(5 * kMb));
  const ScopedUnlimitedHeap unlimited;
  EXPECT_TRUE(Take(5 * kMb));
}

// Not counted is what was refused, and what nobody could have allocated; and what was freed of
// others' memory, which counts for their quotas, is no credit.
TEST(MemoryQuota, HeapIsCountedFromZeroUpwards) {
  const auto quota = MemoryQuota::New(nullptr, "quota", 10 * kMb);
  const ScopedMemoryQuota scope(quota.get());
  const Cancellation step;
  const ScopedCancellation of_step(&step);
  const ScopedHeapCount of_kernel;
  for (const size_t bytes : {size_t{11} << 20, size_t{1} << 62, SIZE_MAX, SIZE_MAX - 4096})
    EXPECT_FALSE(Take(bytes)) << bytes;
  NoteFreed(100 * kMb);
  EXPECT_TRUE(Take(9 * kMb));
  EXPECT_FALSE(Take(5 * kMb));
  NoteFreed(9 * kMb);
  EXPECT_TRUE(Take(9 * kMb));
}

// While a refusal is turned into a message, nothing is refused: another exception would end the
// program.
TEST(MemoryQuota, AMessageOfARefusalCanBeMade) {
  const auto quota = MemoryQuota::New(nullptr, "quota", kMb);
  const ScopedMemoryQuota scope(quota.get());
  const Cancellation step;
  const ScopedCancellation of_step(&step);
  const ScopedHeapCount of_kernel;
  bool may = false;
  const auto call = [&]() -> absl::Status {
    if (!MayAllocate(5 * kMb)) throw std::bad_alloc();
    return absl::OkStatus();
  };
  absl::Status status;
  try {
    status = call();
  } catch (...) {
    status = ExceptionToStatus("The kernel", [&] { may = MayAllocate(5 * kMb); });
  }
  EXPECT_TRUE(may);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel scratch space: 5242880 bytes"));
}

TEST(MemoryQuota, ScalarsCanAlwaysBeMade) {
  const auto quota = MemoryQuota::New(nullptr, "quota", 1);
  const ScopedMemoryQuota scope(quota.get());
  EXPECT_EQ(Tensor::Scalar(2.5).scalar<double>(), 2.5);
  EXPECT_EQ(Tensor::Scalar("a string that is allocated elsewhere").scalar<std::string>().size(),
            36);
  EXPECT_FALSE(Bytes(2).ok());
}

}  // namespace
}  // namespace weir
