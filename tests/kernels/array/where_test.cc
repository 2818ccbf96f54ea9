#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Where on tensors of several words and blocks of truth values, against a plain loop.
namespace weir {
namespace {

// One element in `of` is true; 0: none, 1: all.
template <class T>
void ExpectWhere(const Shape& shape, uint32_t of) {
  SCOPED_TRACE(testing::Message() << DataTypeName(DataTypeOf<T>::value) << " " << shape.ToString()
                                  << ", one in " << of);
  std::mt19937 random(of);
  Tensor x = Tensor::Zeros(DataTypeOf<T>::value, shape);
  std::vector<int64_t> want;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (of == 0 || random() % of != 0) continue;
    x.data<T>()[i] = static_cast<T>(1);
    int64_t rest = i;
    std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
    for (int d = shape.rank() - 1; d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % shape.dim(d);
      rest /= shape.dim(d);
    }
    want.insert(want.end(), index.begin(), index.end());
  }
  const auto out = RunFed("Where", {x});
  ASSERT_TRUE(out.ok()) << out.status();
  const auto got = (*out)[0].flat<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(got.begin(), got.end()), want);
  EXPECT_EQ((*out)[0].dim(1), shape.rank());
}

TEST(Where, FindsTheElementsOfVectorsOfAnyLength) {
  for (const uint32_t of : {0, 1, 2, 50}) {
    for (const int64_t n : {0, 1, 7, 8, 9, 63, 64, 65, 130, 4095, 4096, 4097, 9000, 200000}) {
      ExpectWhere<bool>(Shape({n}), of);
      ExpectWhere<float>(Shape({n}), of);
    }
    for (const int64_t n : {1, 65, 5000}) {
      ExpectWhere<int8_t>(Shape({n}), of);
      ExpectWhere<int16_t>(Shape({n}), of);
      ExpectWhere<int32_t>(Shape({n}), of);
      ExpectWhere<int64_t>(Shape({n}), of);
      ExpectWhere<double>(Shape({n}), of);
      ExpectWhere<half>(Shape({n}), of);
      ExpectWhere<std::complex<float>>(Shape({n}), of);
    }
  }
}

TEST(Where, WritesIndexVectorsOfAnyRank) {
  for (const uint32_t of : {0, 1, 3, 700}) {
    ExpectWhere<bool>(Shape({300, 200}), of);
    ExpectWhere<bool>(Shape({5000, 1}), of);
    ExpectWhere<bool>(Shape({1, 5000}), of);
    ExpectWhere<bool>(Shape({20, 30, 40}), of);
    ExpectWhere<float>(Shape({7, 11, 13, 17}), of);
    ExpectWhere<bool>(Shape({3, 0, 5}), of);
  }
}

// Every bit of a byte, and zeros and NaNs of floats.
TEST(Where, TakesWhateverIsNotZeroForTrue) {
  Tensor bytes(DT_UINT8, Shape({256}));
  for (int i = 0; i < 256; ++i) bytes.data<uint8_t>()[i] = static_cast<uint8_t>(i);
  auto out = RunFed("Where", {bytes});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape({255, 1}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  out = RunFed("Where", {Tensor::Vector<float>({0, -0.0f, nan, 1e-30f, -1})});
  ASSERT_TRUE(out.ok()) << out.status();
  const auto got = (*out)[0].flat<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(got.begin(), got.end()), (std::vector<int64_t>{2, 3, 4}));
}

}  // namespace
}  // namespace weir
