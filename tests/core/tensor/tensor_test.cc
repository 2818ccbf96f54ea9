#include "weir/core/tensor/tensor.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Tensor, DefaultHasNoTypeAndNoElements) {
  const Tensor t;
  EXPECT_FALSE(t.initialized());
  EXPECT_EQ(t.num_elements(), 0);
  EXPECT_FALSE(t.OwnsBufferAlone());
}

TEST(Tensor, MovedFromEqualsDefault) {
  Tensor t = Tensor::Vector<float>({1, 2});
  const Tensor moved = std::move(t);
  EXPECT_FALSE(t.initialized());
  EXPECT_EQ(t.num_elements(), 0);
  EXPECT_EQ(t.raw(), nullptr);
  EXPECT_THAT(moved.flat<float>(), ElementsAre(1, 2));
}

TEST(Tensor, ElementsAreAlignedTo64Bytes) {
  for (const int64_t n : {0, 1, 3, 1000, 5000, 1 << 20}) {
    const Tensor t(DT_FLOAT, Shape({n}));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % 64, 0u) << n;
    EXPECT_EQ(t.num_bytes(), static_cast<size_t>(n) * 4);
  }
}

TEST(Tensor, CopiesShareElementsAndDeepCopiesDoNot) {
  Tensor a = Tensor::Vector<int32_t>({1, 2, 3});
  EXPECT_TRUE(a.OwnsBufferAlone());
  const Tensor shared = a;
  EXPECT_FALSE(a.OwnsBufferAlone());
  EXPECT_TRUE(a.SharesBufferWith(shared));
  const Tensor deep = a.DeepCopy();
  EXPECT_FALSE(a.SharesBufferWith(deep));
  a.flat<int32_t>()[0] = 9;
  EXPECT_EQ(shared.flat<int32_t>()[0], 9);
  EXPECT_EQ(deep.flat<int32_t>()[0], 1);
}

TEST(Tensor, SlicesAndRowsSeeTheSameElements) {
  const Tensor t = Tensor::Of<int32_t>(Shape({3, 2}), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(t.Slice(1, 3).shape(), Shape({2, 2}));
  EXPECT_THAT(t.Slice(1, 3).flat<int32_t>(), ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(t.Row(2).shape(), Shape({2}));
  EXPECT_THAT(t.Row(2).flat<int32_t>(), ElementsAre(5, 6));
  EXPECT_EQ(t.Slice(3, 3).num_elements(), 0);
  EXPECT_TRUE(t.Row(0).SharesBufferWith(t));
  EXPECT_THAT(t.Reshaped(Shape({2, 3})).Row(1).flat<int32_t>(), ElementsAre(4, 5, 6));
}

TEST(Tensor, BitcastKeepsTheBits) {
  const Tensor t = Tensor::Scalar(1.0f).BitcastTo(DT_INT32);
  EXPECT_EQ(t.scalar<int32_t>(), 0x3f800000);
}

TEST(Tensor, ViewNeverOwnsTheMemory) {
  float values[] = {1, 2};
  Tensor view = Tensor::View(DT_FLOAT, Shape({2}), values);
  EXPECT_FALSE(view.OwnsBufferAlone());
  EXPECT_TRUE(view.host_accessible());
  EXPECT_EQ(view.raw(), values);
}

TEST(Tensor, StringsAreConstructedAndCopied) {
  Tensor t(DT_STRING, Shape({3}));
  EXPECT_THAT(t.flat<std::string>(), ElementsAre("", "", ""));
  t.flat<std::string>()[1] = std::string(100, 'x');
  const Tensor copy = t.DeepCopy();
  t.flat<std::string>()[1] = "y";
  EXPECT_EQ(copy.flat<std::string>()[1], std::string(100, 'x'));
}

TEST(Tensor, ZerosIsZeroFalseAndEmpty) {
  EXPECT_THAT(Tensor::Zeros(DT_INT64, Shape({2})).flat<int64_t>(), ElementsAre(0, 0));
  EXPECT_FALSE(Tensor::Zeros(DT_BOOL, Shape()).scalar<bool>());
  EXPECT_EQ(Tensor::Zeros(DT_STRING, Shape()).scalar<std::string>(), "");
}

TEST(Tensor, IntAtReadsEveryIntegerType) {
  EXPECT_EQ(Tensor::Scalar<int8_t>(-5).IntAt(0), -5);
  EXPECT_EQ(Tensor::Scalar<uint32_t>(4000000000u).IntAt(0), 4000000000);
  EXPECT_EQ(Tensor::Vector<int64_t>({1, -7}).IntAt(1), -7);
}

TEST(TensorDeathTest, ElementsOfAnotherTypeOrNumberAreFatal) {
  const Tensor t = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_DEATH(t.data<int32_t>(), "cannot access the elements of a float\\[2,3\\] as int32");
  EXPECT_DEATH(t.flat<double>(), "as double");
  EXPECT_DEATH(t.IntAt(0), "as int64");
  EXPECT_DEATH(t.scalar<float>(), "float\\[2,3\\] does not have 1 element");
  EXPECT_DEATH(Tensor().data<float>(), "tensor without a value");
  EXPECT_DEATH(Tensor::Of<float>({2, 2}, {1, 2, 3}), "float\\[2,2\\] does not have 3 elements");
  EXPECT_DEATH(t.Reshaped({7}), "does not have 7 elements");
  EXPECT_DEATH(t.Slice(1, 3), "no rows \\[1, 3\\)");
}

TEST(Tensor, AllocateRejectsInvalidShapes) {
  const auto code = [](const Shape& shape) {
    return Tensor::Allocate(HostAllocator(), DT_FLOAT, shape).status().code();
  };
  EXPECT_EQ(code(Shape({2, -1})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Shape::UnknownRank()), absl::StatusCode::kInvalidArgument);
  const int64_t huge = int64_t{1} << 62;
  EXPECT_EQ(code(Shape({huge, huge})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Shape({huge})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Shape({huge, huge, 0})), absl::StatusCode::kOk);
  const auto no_type = Tensor::Allocate(HostAllocator(), DT_INVALID, Shape());
  EXPECT_EQ(no_type.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Tensor, OutOfMemoryErrorHasShapeAndType) {
  const auto t = Tensor::Allocate(HostAllocator(), DT_FLOAT, Shape({int64_t{1} << 50}));
  ASSERT_EQ(t.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(t.status().message(),
              HasSubstr("OOM when allocating tensor with shape [1125899906842624] and type float"));
  EXPECT_THAT(t.status().message(), HasSubstr(" in use, "));
  EXPECT_THAT(t.status().message(), HasSubstr(" free"));
}

TEST(HostAllocator, ReportsFreeBytes) {
  const int64_t before = HostAllocator().bytes_free();
  EXPECT_GT(before, 0);
  void* const cached = HostAllocator().Allocate(1 << 20);
  HostAllocator().Deallocate(cached, 1 << 20);
  EXPECT_GE(HostAllocator().bytes_free(), 1 << 20);
}

TEST(HostAllocator, LimitHolds) {
  SetHostMemoryLimit(HostAllocator().bytes_in_use() + (3 << 20));
  const auto allocate = [] {
    return Tensor::Allocate(HostAllocator(), DT_FLOAT, Shape({int64_t{1} << 19}));  // 2 MiB
  };
  for (int i = 0; i < 3; ++i) {  // a refused tensor does not count
    const auto first = allocate();
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(HostAllocator().bytes_free(), 1 << 20);
    const auto second = allocate();
    EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(second.status().message(), HasSubstr(" 1048576 free"));
  }
  SetHostMemoryLimit(std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(allocate().ok());
}

TEST(Tensor, IdenticalComparesBits) {
  const float nan = std::nanf("");
  EXPECT_TRUE(IdenticalTensors(Tensor::Scalar(nan), Tensor::Scalar(nan)));
  EXPECT_FALSE(IdenticalTensors(Tensor::Scalar(0.0f), Tensor::Scalar(-0.0f)));
  EXPECT_FALSE(IdenticalTensors(Tensor::Scalar(1.0f), Tensor::Vector<float>({1})));
  EXPECT_FALSE(IdenticalTensors(Tensor::Scalar<int32_t>(1), Tensor::Scalar<uint32_t>(1)));
  EXPECT_TRUE(IdenticalTensors(Tensor::Scalar("a"), Tensor::Scalar("a")));
  EXPECT_FALSE(IdenticalTensors(Tensor::Scalar("a"), Tensor::Scalar("b")));
  EXPECT_TRUE(IdenticalTensors(Tensor(DT_FLOAT, Shape({0, 3})), Tensor(DT_FLOAT, Shape({0, 3}))));
}

TEST(Tensor, DescriptionIsTypeAndShape) {
  EXPECT_EQ(Tensor(DT_FLOAT, Shape({2, 3})).Description(), "float[2,3]");
}

TEST(Buffer, WrapCallsReleaseWithTheLastReference) {
  int released = 0;
  float value = 5;
  {
    const auto release = [](void* count) { ++*static_cast<int*>(count); };
    BufferPtr buffer(Buffer::Wrap(&value, sizeof(value), nullptr, release, &released, true));
    const Tensor t(DT_FLOAT, Shape(), buffer, &value);
    EXPECT_FALSE(t.OwnsBufferAlone());
    buffer = BufferPtr();
    EXPECT_FALSE(t.OwnsBufferAlone()) << "transient memory is never owned";
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(HostAllocator, CountsBytesInUse) {
  const int64_t before = HostAllocator().bytes_in_use();
  {
    const Tensor t(DT_FLOAT, Shape({10000}));
    EXPECT_EQ(HostAllocator().bytes_in_use(), before + 40000);
  }
  EXPECT_EQ(HostAllocator().bytes_in_use(), before);
}

#ifndef WEIR_SANITIZED
TEST(HostAllocator, ReusesFreedBlocksOfTheSameClass) {
  Allocator& allocator = HostAllocator();
  void* const first = allocator.Allocate(100000);
  allocator.Deallocate(first, 100000);
  void* const second = allocator.Allocate(99000);
  EXPECT_EQ(first, second);
  allocator.Deallocate(second, 99000);
}
#endif

// Blocks of a deleted model make room for those of the next one.
TEST(HostAllocator, UnusedBlocksAreEvicted) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizer builds cache nothing";
#endif
  Allocator& allocator = HostAllocator();
  constexpr size_t kLarge = size_t{64} << 20, kOther = size_t{5} << 20;
  std::vector<void*> all;
  for (int i = 0; i < 5; ++i) all.push_back(allocator.Allocate(kLarge));
  for (void* block : all) allocator.Deallocate(block, kLarge);  // more than the cache holds
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  auto* const first = static_cast<char*>(allocator.Allocate(kOther));
  std::memset(first, 77, kOther);
  allocator.Deallocate(first, kOther);
  auto* const second = static_cast<char*>(allocator.Allocate(kOther));
  EXPECT_EQ(first, second);
  EXPECT_EQ(second[kOther / 2], 77) << "these are fresh pages";
  allocator.Deallocate(second, kOther);
}

// The pages of a large block are the system's to take, and cost nothing if it has not.
TEST(HostAllocator, LargeBlocksAreReused) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizer builds cache nothing";
#endif
  Allocator& allocator = HostAllocator();
  constexpr size_t kBytes = size_t{100} << 20;
  void* const first = allocator.Allocate(kBytes);
  std::memset(first, 1, kBytes);
  allocator.Deallocate(first, kBytes);
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  void* const second = allocator.Allocate(kBytes);
  EXPECT_EQ(first, second);
  std::memset(second, 2, kBytes);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_minflt - before.ru_minflt, 25) << "of 50 large or 25,600 small pages";
  allocator.Deallocate(second, kBytes);
}

TEST(HostAllocator, BlocksOfAllSizesAreWritableToTheirEnd) {
  Allocator& allocator = HostAllocator();
  for (size_t size = 16384 - 2; size < (1 << 20); size = size * 9 / 8 + 1) {
    for (const size_t bytes : {size, size + 1}) {
      char* const data = static_cast<char*>(allocator.Allocate(bytes));
      data[0] = data[bytes - 1] = 1;
      allocator.Deallocate(data, bytes);
    }
  }
}

TEST(HostAllocator, ThreadsGetDistinctBlocks) {
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([id] {
      for (int i = 0; i < 500; ++i) {
        Tensor t(DT_INT32, Shape({5000 + 100 * (i % 7)}));
        for (int32_t& x : t.flat<int32_t>()) x = id;
        for (const int32_t x : t.flat<int32_t>()) ASSERT_EQ(x, id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weir
