#include "weir/core/tensor/repeated_tensor.h"

#include <algorithm>
#include <complex>
#include <fstream>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace weir {
namespace {

template <class T>
void ExpectRepeats(T value, const Shape& shape) {
  const absl::StatusOr<Tensor> t = RepeatedTensor(Tensor::Scalar(value), shape);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->shape(), shape);
  const auto all = t->flat<T>();
  EXPECT_EQ(std::count(all.begin(), all.end(), value), shape.num_elements()) << shape.ToString();
}

TEST(RepeatedTensor, HasTheValueEverywhere) {
  for (const int64_t n : {0, 1, 7, 1000, 262143, 262144, 262145, 2621440, 20000003}) {
    ExpectRepeats(0.5f, Shape({n}));
    ExpectRepeats(int8_t{-3}, Shape({n}));
  }
  ExpectRepeats(true, Shape({1 << 21}));
  ExpectRepeats(std::complex<double>(1, -2), Shape({300, 500}));
  ExpectRepeats(int64_t{7}, Shape());
}

// Each tensor has its own elements, like any other tensor.
TEST(RepeatedTensor, CanBeWrittenTo) {
  const Shape shape({3, 1 << 20});
  Tensor a = *RepeatedTensor(Tensor::Scalar(2.f), shape);
  const Tensor b = *RepeatedTensor(Tensor::Scalar(2.f), shape);
  EXPECT_TRUE(a.OwnsBufferAlone());
  a.data<float>()[70000] = 5;
  std::fill_n(a.data<float>() + (1 << 21), 1000, 6.f);
  const absl::Span<const float> of_a = a.flat<float>(), of_b = b.flat<float>();
  EXPECT_EQ(std::count(of_a.begin(), of_a.end(), 2.f), shape.num_elements() - 1001);
  EXPECT_EQ(std::count(of_b.begin(), of_b.end(), 2.f), shape.num_elements());
  EXPECT_EQ(a.data<float>()[70000], 5);
}

// Returns the physical memory of the process: a page that is mapped many times counts once.
int64_t ProportionalKilobytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    int64_t kilobytes = 0;
    if (word == "Pss:" && file >> kilobytes) return kilobytes;
  }
  return -1;
}

TEST(RepeatedTensor, UsesAFractionOfItsSize) {
  const int64_t before = ProportionalKilobytes();
  if (before < 0) GTEST_SKIP() << "this system does not report the memory of a process";
  const Tensor t = *RepeatedTensor(Tensor::Scalar(1.5f), Shape({int64_t{64} << 20}));
  const auto all = t.flat<float>();
  ASSERT_EQ(std::count(all.begin(), all.end(), 1.5f), t.num_elements());
  EXPECT_LT(ProportionalKilobytes() - before, 32 << 10);  // of 256 MiB
}

TEST(RepeatedTensor, RejectsImpossibleSizes) {
  const Tensor value = Tensor::Scalar(1.0);
  EXPECT_TRUE(absl::IsResourceExhausted(RepeatedTensor(value, Shape({int64_t{1} << 42})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      RepeatedTensor(value, Shape({std::numeric_limits<int64_t>::max() / 4})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RepeatedTensor(value, Shape({-1, 2})).status()));
}

}  // namespace
}  // namespace weir
