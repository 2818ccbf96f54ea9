#include "weir/serving/batch_tensors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/io/test_files.h"

namespace weir::serving {
namespace {

using ::testing::ElementsAre;
using weir::testing::PatternStrings;
using weir::testing::PatternTensor;

TEST(BatchTensors, RowsOfAllTypesReturnUnchanged) {
  for (int t = 1; t < 100; ++t) {
    const auto dtype = static_cast<DataType>(t);
    if (!IsKnown(dtype) || (!IsPlain(dtype) && dtype != DT_STRING)) continue;
    const auto pattern = [&](const Shape& shape, int seed) {
      return dtype == DT_STRING ? PatternStrings(shape, seed) : PatternTensor(dtype, shape, seed);
    };
    const NamedTensors a = {{"t", pattern({3, 2, 2}, 1)}}, b = {{"t", pattern({1, 2, 2}, 2)}};
    const auto joined = JoinRows({{&a, 1, 3}, {&b, 0, 1}}, 5);
    ASSERT_TRUE(joined.ok()) << DataTypeName(dtype) << ": " << joined.status();
    ASSERT_EQ(joined->at("t").shape(), Shape({5, 2, 2}));
    const auto row = [](const NamedTensors& from, int64_t i) {
      return SliceRows(from, i, i + 1).at("t");
    };
    EXPECT_TRUE(IdenticalTensors(row(*joined, 0), row(a, 1))) << DataTypeName(dtype);
    EXPECT_TRUE(IdenticalTensors(row(*joined, 1), row(a, 2))) << DataTypeName(dtype);
    for (int64_t i = 2; i < 5; ++i)
      EXPECT_TRUE(IdenticalTensors(row(*joined, i), row(b, 0))) << DataTypeName(dtype);
  }
}

TEST(BatchTensors, PadsEachDimensionWithTheFirstElement) {
  const NamedTensors a = {{"t", Tensor::Of<int32_t>({2, 2, 1}, {1, 2, 3, 4})}};
  const NamedTensors b = {{"t", Tensor::Of<int32_t>({1, 1, 3}, {5, 6, 7})}};
  const auto joined = JoinRows({{&a, 0, 2}, {&b, 0, 1}}, 3);
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_EQ(joined->at("t").shape(), Shape({3, 2, 3}));
  EXPECT_THAT(joined->at("t").flat<int32_t>(), ElementsAre(1, 1, 1, 2, 1, 1,  //
                                                           3, 1, 1, 4, 1, 1,  //
                                                           5, 6, 7, 5, 5, 5));
  const auto second = JoinRows({{&a, 1, 2}, {&b, 0, 1}}, 2);
  EXPECT_THAT(second->at("t").flat<int32_t>(), ElementsAre(3, 1, 1, 4, 1, 1, 5, 6, 7, 5, 5, 5));
}

TEST(BatchTensors, PadsEmptyRowsWithZero) {
  const NamedTensors a = {{"t", Tensor(DT_STRING, Shape({1, 0}))}};
  const NamedTensors b = {{"t", Tensor::Of<std::string>({1, 2}, {"x", "y"})}};
  const auto joined = JoinRows({{&a, 0, 1}, {&b, 0, 1}}, 2);
  EXPECT_THAT(joined->at("t").flat<std::string>(), ElementsAre("", "", "x", "y"));
}

TEST(BatchTensors, BytesCountThePadding) {
  const NamedTensors a = {{"t", Tensor(DT_FLOAT, Shape({1, 100}))}};
  const NamedTensors b = {{"t", Tensor(DT_FLOAT, Shape({9, 1}))}};
  const JoinedBytes bytes = BytesOf({{&a, 0, 1}, {&b, 0, 9}}, 10);
  EXPECT_EQ(bytes.separate, 4 * (100 + 9));
  EXPECT_EQ(bytes.joined, 4 * 100 * 10);
  // The product of the largest dimensions does not fit 64 bits.
  const int64_t huge = int64_t{1} << 40;
  const NamedTensors wide = {{"t", Tensor(DT_FLOAT, Shape({1, 0, huge}))}};
  const NamedTensors high = {{"t", Tensor(DT_FLOAT, Shape({1, huge, 0}))}};
  EXPECT_GT(BytesOf({{&wide, 0, 1}, {&high, 0, 1}}, 2).joined, 1e24);
}

}  // namespace
}  // namespace weir::serving
