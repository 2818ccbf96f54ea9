#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/dtype.h"
#include "weir/tests/evaluate.h"

// Reversals in vectors: pixels of all sizes, lines with and without tails, compared byte for byte.
namespace weir {
namespace {

Tensor Numbered(DataType type, const Shape& shape) {
  Tensor t(type, shape);
  auto* bytes = static_cast<uint8_t*>(t.raw());
  const size_t size = t.num_elements() * ElementSize(type);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 73 + i / 256);
  return t;
}

// Reverses dimensions 1 and, if `rows`, 0 of a tensor of rank 3.
void TestReverse(DataType type, const Shape& shape, bool rows) {
  SCOPED_TRACE(absl::StrCat(DataTypeName(type), " ", shape.ToString(), rows ? " rows" : ""));
  const Tensor in = Numbered(type, shape);
  const Tensor axes =
      rows ? Tensor::Of<int32_t>(Shape({2}), {-2, 0}) : Tensor::Of<int32_t>(Shape({1}), {1});
  const auto out = RunFed("ReverseV2", {in, axes});
  ASSERT_TRUE(out.ok()) << out.status();
  const size_t pixel = shape.dim(2) * ElementSize(type);
  const auto* from = static_cast<const char*>(in.raw());
  const auto* got = static_cast<const char*>((*out)[0].raw());
  for (int64_t y = 0; y < shape.dim(0); ++y) {
    for (int64_t x = 0; x < shape.dim(1); ++x, got += pixel) {
      const int64_t row = rows ? shape.dim(0) - 1 - y : y, column = shape.dim(1) - 1 - x;
      ASSERT_EQ(std::memcmp(got, from + (row * shape.dim(1) + column) * pixel, pixel), 0)
          << "pixel " << y << ", " << x;
    }
  }
}

TEST(Reverse, LinesOfPixels) {
  for (const DataType type : {DT_UINT8, DT_INT16, DT_FLOAT, DT_DOUBLE, DT_COMPLEX128}) {
    for (const int64_t channels : {1, 2, 3, 4, 5}) {
      for (const int64_t n : {1, 7, 8, 15, 16, 31, 33, 64, 65, 130}) {
        TestReverse(type, Shape({3, n, channels}), false);
        TestReverse(type, Shape({3, n, channels}), true);
      }
    }
  }
}

// Lines that threads divide.
TEST(Reverse, LongLines) {
  for (const int64_t n : {4095, 4096, 4097, 100000}) {
    TestReverse(DT_UINT8, Shape({2, n, 3}), true);
    TestReverse(DT_FLOAT, Shape({1, n, 1}), false);
  }
}

}  // namespace
}  // namespace weir
