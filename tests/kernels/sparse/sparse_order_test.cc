#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Sorting and merging of the rows of sparse tensors, against the standard library.
namespace weir {
namespace {

using Row = std::vector<int64_t>;

Tensor IndicesOf(const std::vector<Row>& rows, int64_t rank) {
  Tensor t(DT_INT64, Shape({static_cast<int64_t>(rows.size()), rank}));
  int64_t* to = t.data<int64_t>();
  for (const Row& row : rows) to = std::copy(row.begin(), row.end(), to);
  return t;
}

void TestReorder(const std::vector<Row>& rows, int64_t rank) {
  SCOPED_TRACE(absl::StrCat(rows.size(), " rows of ", rank));
  std::vector<int32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  const Tensor shape = Tensor::Vector<int64_t>(std::vector<int64_t>(rank, INT64_MAX));
  const absl::StatusOr<Tensors> out =
      RunFed("SparseReorder", {IndicesOf(rows, rank), Tensor::Vector<int32_t>(order), shape});
  ASSERT_TRUE(out.ok()) << out.status();
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return rows[a] < rows[b]; });
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ((*out)[1].data<int32_t>()[i], order[i]) << "at " << i;
    ASSERT_TRUE(std::equal(rows[order[i]].begin(), rows[order[i]].end(),
                           (*out)[0].data<int64_t>() + static_cast<int64_t>(i) * rank));
  }
}

// Equal rows stay in order. Ranges of 2^60 in two columns do not fit the keys of the radix sort.
TEST(SparseReorder, SortsRowsOfAnySizeAndRange) {
  std::mt19937_64 random(3);
  for (const int64_t rank : {1, 2, 3, 5}) {
    for (const size_t count : {0, 1, 2, 255, 256, 257, 3000}) {
      for (const int64_t range : {int64_t{1}, int64_t{7}, int64_t{300}, int64_t{1} << 20,
                                  int64_t{1} << 40, int64_t{1} << 60}) {
        std::vector<Row> rows(count, Row(rank));
        for (Row& row : rows) {
          for (int64_t& x : row) x = static_cast<int64_t>(random() % range);
        }
        TestReorder(rows, rank);
      }
    }
  }
}

TEST(SparseReorder, SortsIndicesBelowZeroAndAtTheEndsOfTheType) {
  std::vector<Row> rows;
  for (int64_t i = 0; i < 400; ++i) rows.push_back({i % 5 - 3, i * 7919 % 400});
  TestReorder(rows, 2);
  for (int64_t i = 0; i < 400; ++i) rows.push_back({i % 2 == 0 ? INT64_MIN : INT64_MAX, i % 3});
  TestReorder(rows, 2);
}

TEST(SparseAdd, MergesSortedTensors) {
  std::mt19937 random(4);
  for (const int64_t range : {2, 10, 60}) {
    for (const size_t count : {0, 1, 50, 2500}) {
      std::map<Row, float> parts[2], sum;
      for (auto& part : parts) {
        for (size_t i = 0; i < count; ++i)
          part[{static_cast<int64_t>(random() % range), static_cast<int64_t>(random() % range)}] =
              static_cast<float>(random() % 5) - 2;
      }
      Tensors inputs;
      const Tensor shape = Tensor::Vector<int64_t>({range, range});
      for (const auto& part : parts) {
        std::vector<Row> rows;
        std::vector<float> values;
        for (const auto& [row, value] : part) {
          rows.push_back(row);
          values.push_back(value);
        }
        inputs.insert(inputs.end(), {IndicesOf(rows, 2), Tensor::Vector<float>(values), shape});
      }
      inputs.push_back(Tensor::Scalar<float>(1));
      for (const auto& [row, value] : parts[0]) sum[row] = value;
      for (const auto& [row, value] : parts[1]) {
        const auto [at, is_new] = sum.emplace(row, value);
        if (is_new) continue;
        at->second += value;
        if (std::abs(at->second) < 1) sum.erase(at);
      }
      const absl::StatusOr<Tensors> out = RunFed("SparseAdd", inputs);
      ASSERT_TRUE(out.ok()) << out.status();
      ASSERT_EQ((*out)[1].num_elements(), static_cast<int64_t>(sum.size()));
      int64_t i = 0;
      for (const auto& [row, value] : sum) {
        EXPECT_EQ((*out)[0].data<int64_t>()[2 * i], row[0]);
        EXPECT_EQ((*out)[0].data<int64_t>()[2 * i + 1], row[1]);
        EXPECT_EQ((*out)[1].data<float>()[i++], value);
      }
    }
  }
}

}  // namespace
}  // namespace weir
