#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/dtype.h"
#include "weir/tests/evaluate.h"

// Concatenation and splitting of narrow and wide parts, single columns and mixtures, byte for byte.
namespace weir {
namespace {

Tensor Numbered(DataType type, const Shape& shape) {
  Tensor t(type, shape);
  auto* const bytes = static_cast<uint8_t*>(t.raw());
  const size_t size = static_cast<size_t>(t.num_elements()) * ElementSize(type);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 73 + i / 256);
  return t;
}

// Expects the part to be columns [begin, begin + width) of a matrix of `row` elements.
void ExpectColumns(const Tensor& matrix, int64_t row, int64_t begin, const Tensor& part,
                   int64_t width) {
  const size_t size = ElementSize(matrix.dtype());
  const int64_t rows = matrix.num_elements() / row;
  ASSERT_EQ(part.num_elements(), rows * width);
  for (int64_t r = 0; r < rows; ++r) {
    const char* const want = static_cast<const char*>(matrix.raw()) + (r * row + begin) * size;
    const char* const got = static_cast<const char*>(part.raw()) + r * width * size;
    ASSERT_EQ(std::memcmp(want, got, width * size), 0) << "row " << r << " of column " << begin;
  }
}

void TestPack(DataType type, int64_t rows, int64_t parts, int64_t width) {
  SCOPED_TRACE(absl::StrCat(DataTypeName(type), " ", rows, " x ", parts, " x ", width));
  const Tensor matrix = Numbered(type, Shape({rows, parts, width}));
  const auto split = RunFed("Unpack", {matrix}, {{"num", parts}, {"axis", int64_t{1}}});
  ASSERT_TRUE(split.ok()) << split.status();
  ASSERT_EQ(static_cast<int64_t>(split->size()), parts);
  for (int64_t p = 0; p < parts; ++p)
    ExpectColumns(matrix, parts * width, p * width, (*split)[p], width);
  const auto joined = RunFed("Pack", *split, {{"axis", int64_t{1}}}, split->size());
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_EQ((*joined)[0].shape(), matrix.shape());
  ExpectColumns(matrix, parts * width, 0, (*joined)[0], parts * width);
}

TEST(ColumnParts, UnpackAndPack) {
  for (const DataType type : {DT_UINT8, DT_HALF, DT_FLOAT, DT_INT64, DT_COMPLEX128}) {
    for (const int64_t rows : {1, 7, 8, 9, 63, 64, 65, 200}) {
      for (const int64_t parts : {1, 2, 7, 8, 15, 16, 17, 65, 100}) TestPack(type, rows, parts, 1);
      for (const int64_t width : {2, 8, 9, 100}) TestPack(type, rows, 5, width);
    }
  }
  TestPack(DT_FLOAT, 3000, 64, 1);
  TestPack(DT_FLOAT, 3000, 9, 3);
  TestPack(DT_FLOAT, 20, 2, 5000);
}

TEST(ColumnParts, SplitAndConcatOfUnequalParts) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
           {1, 2, 3}, {5, 0, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 300, 1, 17}, {2000, 3000}}) {
    for (const int64_t rows : {1, 8, 100}) {
      int64_t row = 0;
      for (const int64_t size : sizes) row += size;
      SCOPED_TRACE(absl::StrCat(rows, " x ", row));
      const Tensor matrix = Numbered(DT_FLOAT, Shape({rows, row}));
      const auto split =
          RunFed("SplitV", {matrix, Tensor::Vector<int64_t>(sizes), Tensor::Scalar<int32_t>(1)},
                 {{"num_split", static_cast<int64_t>(sizes.size())}});
      ASSERT_TRUE(split.ok()) << split.status();
      int64_t begin = 0;
      for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
        ExpectColumns(matrix, row, begin, (*split)[i], sizes[i]);
      Tensors inputs = *split;
      inputs.push_back(Tensor::Scalar<int32_t>(1));
      const auto joined = RunFed("ConcatV2", inputs, {}, sizes.size());
      ASSERT_TRUE(joined.ok()) << joined.status();
      ExpectColumns(matrix, row, 0, (*joined)[0], row);
    }
  }
}

}  // namespace
}  // namespace weir
