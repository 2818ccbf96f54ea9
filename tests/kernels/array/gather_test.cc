#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// GatherV2 and GatherNd with so many indices that several threads copy the slices.
namespace weir {
namespace {

using testing::HasSubstr;

Tensor Numbers(const Shape& shape) {
  Tensor x(DT_INT32, shape);
  std::iota(x.flat<int32_t>().begin(), x.flat<int32_t>().end(), 0);
  return x;
}

template <class Index>
Tensor Indices(const Shape& shape, int64_t limit) {
  Tensor x(DataTypeOf<Index>::value, shape);
  for (int64_t i = 0; i < x.num_elements(); ++i)
    x.data<Index>()[i] = static_cast<Index>(i * 7919 % limit);
  return x;
}

template <class Index>
void ExpectGather(int64_t batch, int64_t outer, int64_t limit, int64_t inner, int64_t count) {
  SCOPED_TRACE(testing::Message() << batch << " " << outer << " " << inner << " " << count);
  const Tensor params = Numbers(Shape({batch, outer, limit, inner}));
  const Tensor indices = Indices<Index>(Shape({batch, count}), limit);
  const auto out = RunFed("GatherV2", {params, indices, Tensor::Scalar<int32_t>(2)},
                          {{"batch_dims", int64_t{1}}});
  ASSERT_TRUE(out.ok()) << out.status();
  const int32_t* got = (*out)[0].data<int32_t>();
  for (int64_t b = 0; b < batch * outer; ++b) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t slice = b * limit + indices.IntAt(b / outer * count + k);
      for (int64_t i = 0; i < inner; ++i)
        ASSERT_EQ(*got++, slice * inner + i) << "block " << b << ", index " << k;
    }
  }
}

TEST(Gather, CopiesSlicesOfBatches) {
  for (const int64_t inner : {1, 3}) {
    ExpectGather<int32_t>(1, 1, 1000, inner, 100000);
    ExpectGather<int64_t>(3, 5, 20, inner, 7000);
    ExpectGather<int16_t>(1000, 3, 4, inner, 9);
    ExpectGather<int32_t>(70000, 1, 2, inner, 1);
  }
}

TEST(Gather, NamesTheFirstBadIndex) {
  for (const int64_t bad : {-1, 50, 1 << 30}) {
    Tensor indices = Indices<int64_t>(Shape({200000}), 50);
    indices.data<int64_t>()[123456] = bad;
    indices.data<int64_t>()[199999] = bad;
    const auto out =
        RunFed("GatherV2", {Numbers(Shape({50})), indices, Tensor::Scalar<int32_t>(0)});
    EXPECT_THAT(out.status().message(),
                HasSubstr("indices[123456] = " + std::to_string(bad) + " is not in [0, 50)"));
  }
}

template <class Index>
void ExpectGatherNd(const Shape& shape, int depth, int64_t rows) {
  const Tensor params = Numbers(shape);
  Tensor indices(DataTypeOf<Index>::value, Shape({rows, depth}));
  for (int64_t r = 0; r < rows; ++r) {
    for (int d = 0; d < depth; ++d)
      indices.data<Index>()[r * depth + d] = static_cast<Index>((r * 31 + d) * 17 % shape.dim(d));
  }
  const auto out = RunFed("GatherNd", {params, indices});
  ASSERT_TRUE(out.ok()) << out.status();
  const int32_t* got = (*out)[0].data<int32_t>();
  const int64_t inner = shape.Sub(depth).num_elements();
  for (int64_t r = 0; r < rows; ++r) {
    int64_t slice = 0;
    for (int d = 0; d < depth; ++d) slice = slice * shape.dim(d) + indices.IntAt(r * depth + d);
    for (int64_t i = 0; i < inner; ++i) ASSERT_EQ(*got++, slice * inner + i) << "row " << r;
  }
}

TEST(GatherNd, CopiesScalarsAndSlices) {
  ExpectGatherNd<int32_t>(Shape({100, 70}), 2, 50000);
  ExpectGatherNd<int64_t>(Shape({9, 11, 13}), 3, 50000);
  ExpectGatherNd<int32_t>(Shape({9, 11, 13}), 2, 20000);
  ExpectGatherNd<int16_t>(Shape({9, 11, 13}), 1, 5000);
  ExpectGatherNd<int32_t>(Shape({5}), 0, 40000);
}

TEST(GatherNd, NamesTheFirstBadRow) {
  Tensor indices = Tensor::Zeros(DT_INT32, Shape({100000, 2}));
  indices.data<int32_t>()[2 * 70000 + 1] = 4;
  indices.data<int32_t>()[2 * 99999] = -1;
  const auto out = RunFed("GatherNd", {Numbers(Shape({3, 4})), indices});
  EXPECT_THAT(out.status().message(),
              HasSubstr("indices[70000] = [0, 4] does not index into param shape [3,4]"));
}

}  // namespace
}  // namespace weir
