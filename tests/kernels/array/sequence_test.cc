#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Ranges in vectors, rolled lines, and bands of matrices, against plain loops.
namespace weir {
namespace {

template <class T>
void TestRange(T start, T step, int64_t n) {
  SCOPED_TRACE(absl::StrCat(DataTypeName(DataTypeOf<T>::value), " ", n, " from ", start));
  const T limit = static_cast<T>(start + step * static_cast<T>(n));
  const absl::StatusOr<Tensors> out = RunFed(
      "Range", {Tensor::Scalar<T>(start), Tensor::Scalar<T>(limit), Tensor::Scalar<T>(step)});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ((*out)[0].num_elements(), n);
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ((*out)[0].data<T>()[i], static_cast<T>(start + step * static_cast<T>(i)));
}

TEST(Range, IntegersOfAllSizes) {
  for (const int64_t n : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100}) {
    TestRange<int8_t>(-50, 1, n);
    TestRange<int16_t>(1000, -3, n);
    TestRange<int32_t>(-5, 7, n);
    TestRange<int64_t>(int64_t{1} << 40, -(int64_t{1} << 33), n);
  }
  TestRange<int32_t>(3, 2, 1000003);  // on several threads
  TestRange<int64_t>(3, -2, 1000003);
}

TEST(Roll, LinesOfAllLengths) {
  for (const int64_t width : {1, 5, 255, 1000, 1024, 4096}) {
    for (const int32_t shift : {0, 1, 3, 15, 16, 17, -1, -200, 1023}) {
      Tensor in(DT_FLOAT, Shape({9, width}));
      for (int64_t i = 0; i < in.num_elements(); ++i) in.data<float>()[i] = static_cast<float>(i);
      const absl::StatusOr<Tensors> out =
          RunFed("Roll", {in, Tensor::Scalar<int32_t>(shift), Tensor::Scalar<int32_t>(1)});
      ASSERT_TRUE(out.ok()) << out.status();
      for (int64_t r = 0; r < 9; ++r) {
        for (int64_t i = 0; i < width; ++i) {
          const int64_t to = ((i + shift) % width + width) % width;
          ASSERT_EQ((*out)[0].data<float>()[r * width + to], in.data<float>()[r * width + i])
              << width << " by " << shift;
        }
      }
    }
  }
}

template <class T>
void TestBand(int64_t rows, int64_t columns, int64_t below, int64_t above) {
  SCOPED_TRACE(absl::StrCat(rows, " x ", columns, " band ", below, ", ", above));
  Tensor in(DataTypeOf<T>::value, Shape({3, rows, columns}));
  for (int64_t i = 0; i < in.num_elements(); ++i) in.data<T>()[i] = static_cast<T>(i % 100 + 1);
  const absl::StatusOr<Tensors> out = RunFed(
      "MatrixBandPart", {in, Tensor::Scalar<int64_t>(below), Tensor::Scalar<int64_t>(above)});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const int64_t r = i / columns % rows, c = i % columns;
    const bool inside = (below < 0 || r - c <= below) && (above < 0 || c - r <= above);
    ASSERT_EQ((*out)[0].data<T>()[i], inside ? in.data<T>()[i] : T(0)) << r << ", " << c;
  }
}

TEST(MatrixBandPart, MatricesOfAllShapes) {
  for (const int64_t rows : {1, 2, 5, 40}) {
    for (const int64_t columns : {1, 3, 40, 300}) {
      for (const int64_t below : {-1, 0, 1, 2}) {
        for (const int64_t above : {-1, 0, 1, 3}) {
          if (below > rows || above > columns) continue;
          TestBand<float>(rows, columns, below, above);
          TestBand<uint8_t>(rows, columns, below, above);
          TestBand<double>(rows, columns, below, above);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir
