#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// The gradients of SparseSegmentSum and similar ops against a map from rows to sums, for tables
// with few and with many rows for each index, and rows of all lengths.
namespace weir {
namespace {

struct Call {
  int64_t table_rows, count, segments, width;
  bool sorted_ids = true;
};

template <class T>
using Sums = std::map<int64_t, std::vector<T>>;

template <class T>
Sums<T> Expected(const std::string& kind, const Tensor& grad, const std::vector<int64_t>& indices,
                 const std::vector<int32_t>& ids) {
  const int64_t width = grad.dim(1);
  std::vector<int64_t> sizes(grad.dim(0), 0);
  for (const int32_t id : ids) ++sizes[id];
  Sums<T> sums;
  for (size_t i = 0; i < ids.size(); ++i) {
    const double size = static_cast<double>(sizes[ids[i]]);
    const T factor = static_cast<T>(kind == "Sum"    ? 1
                                    : kind == "Mean" ? 1 / size
                                                     : 1 / std::sqrt(size));
    std::vector<T>& row = sums[indices[i]];
    row.resize(width, T(0));
    for (int64_t j = 0; j < width; ++j) row[j] += factor * grad.data<T>()[ids[i] * width + j];
  }
  return sums;
}

template <class T>
void TestGradient(const std::string& kind, const Call& call) {
  SCOPED_TRACE(absl::StrCat(kind, " ", call.table_rows, " ", call.count, " ", call.width));
  std::mt19937_64 random(7);
  std::vector<int64_t> indices(call.count);
  for (int64_t& index : indices) index = static_cast<int64_t>(random() % call.table_rows);
  std::vector<int32_t> ids(call.count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % call.segments);
  if (call.sorted_ids) std::sort(ids.begin(), ids.end());
  Tensor grad(DataTypeOf<T>::value, Shape({call.segments, call.width}));
  for (int64_t i = 0; i < grad.num_elements(); ++i)
    grad.data<T>()[i] = static_cast<T>(random() % 1000) / T(7);
  const Sums<T> want = Expected<T>(kind, grad, indices, ids);

  const Tensors inputs = {grad, Tensor::Vector<int64_t>(indices), Tensor::Vector<int32_t>(ids),
                          Tensor::Scalar<int32_t>(static_cast<int32_t>(call.table_rows))};
  const auto sparse = RunFed(absl::StrCat("SparseSegment", kind, "GradV2"), inputs);
  ASSERT_TRUE(sparse.ok()) << sparse.status();
  ASSERT_EQ((*sparse)[1].num_elements(), static_cast<int64_t>(want.size()));
  int64_t at = 0;
  for (const auto& [row, sums] : want) {
    ASSERT_EQ((*sparse)[1].data<int64_t>()[at], row);
    const T* const got = (*sparse)[0].data<T>() + at++ * call.width;
    ASSERT_TRUE(std::equal(sums.begin(), sums.end(), got)) << "row " << row;
  }
  if (call.table_rows > 10000) return;
  const auto dense = RunFed(absl::StrCat("SparseSegment", kind, "Grad"), inputs);
  ASSERT_TRUE(dense.ok()) << dense.status();
  for (int64_t row = 0; row < call.table_rows; ++row) {
    const auto found = want.find(row);
    const std::vector<T> sums =
        found == want.end() ? std::vector<T>(call.width, T(0)) : found->second;
    const T* const got = (*dense)[0].data<T>() + row * call.width;
    ASSERT_TRUE(std::equal(sums.begin(), sums.end(), got)) << "row " << row;
  }
}

TEST(SparseSegmentGradient, EqualsSumsByRow) {
  for (const char* kind : {"Sum", "Mean", "SqrtN"}) {
    for (const int64_t width : {1, 3, 8, 17, 64}) {
      for (const int64_t table_rows : {1, 63, 64, 65, 5000, 100000000}) {
        TestGradient<float>(kind, {table_rows, 500, 90, width});
        TestGradient<double>(kind, {table_rows, 500, 90, width, false});
      }
    }
    TestGradient<float>(kind, {100, 3000, 1, 16});
    TestGradient<float>(kind, {100, 1, 1, 16});
  }
}

TEST(SparseSegmentGradient, HasNoRowsWithoutIndices) {
  const auto out =
      RunFed("SparseSegmentSumGradV2",
             {Tensor::Vector<float>({1, 2}).Reshaped({1, 2}), Tensor::Vector<int64_t>({}),
              Tensor::Vector<int32_t>({}), Tensor::Scalar<int32_t>(5)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape({0, 2}));
  EXPECT_EQ((*out)[1].num_elements(), 0);
}

}  // namespace
}  // namespace weir
