#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/tensor/numeric_types.h"
#include "weir/kernels/lib/narrow_floats.h"
#include "weir/tests/evaluate.h"

// Conversions of arrays have the bits of the conversions of one number, whatever the length and
// wherever an element stands.
namespace weir {
namespace {

constexpr int64_t kLongest = 70;  // several vectors and every tail

// All 2^16 numbers, at every position of a vector.
template <class N>
void ExpectExactWidening() {
  std::vector<N> from(1 << 16);
  for (size_t i = 0; i < from.size(); ++i) from[i].bits = static_cast<uint16_t>(i);
  std::vector<float> to(from.size());
  for (int64_t offset = 0; offset < 17; ++offset) {
    const int64_t n = static_cast<int64_t>(from.size()) - offset;
    Widen(from.data() + offset, to.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(to[i]), std::bit_cast<uint32_t>(float(from[i + offset])))
          << from[i + offset].bits;
    }
  }
}

// Every upper half of a float, with lower halves around the ties.
template <class N>
void ExpectExactNarrowing() {
  std::vector<float> from;
  for (uint32_t high = 0; high < 1 << 16; ++high) {
    for (const uint32_t low :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      from.push_back(std::bit_cast<float>(high << 16 | low));
  }
  std::vector<N> to(from.size());
  Narrow(from.data(), to.data(), static_cast<int64_t>(from.size()));
  for (size_t i = 0; i < from.size(); ++i)
    ASSERT_EQ(to[i].bits, N(from[i]).bits) << std::bit_cast<uint32_t>(from[i]);
}

template <class N>
void ExpectExactTails() {
  std::vector<float> x(kLongest);
  for (int64_t i = 0; i < kLongest; ++i)
    x[i] = std::ldexp(1.37f + 0.01f * i, static_cast<int>(i) - 40);
  for (int64_t n = 0; n < kLongest; ++n) {
    std::vector<N> narrow(kLongest, N(7.0f));
    Narrow(x.data(), narrow.data(), n);
    std::vector<float> wide(kLongest, 7);
    Widen(narrow.data(), wide.data(), n);
    for (int64_t i = 0; i < kLongest; ++i) {
      ASSERT_EQ(narrow[i].bits, N(i < n ? x[i] : 7.0f).bits) << n << " " << i;
      ASSERT_EQ(wide[i], i < n ? float(narrow[i]) : 7.0f) << n << " " << i;
    }
  }
}

TEST(Cast, WidensExactly) {
  ExpectExactWidening<half>();
  ExpectExactWidening<bfloat16>();
}
TEST(Cast, RoundsToNarrowFloats) {
  ExpectExactNarrowing<half>();
  ExpectExactNarrowing<bfloat16>();
}
TEST(Cast, WritesNothingBehindTheEnd) {
  ExpectExactTails<half>();
  ExpectExactTails<bfloat16>();
}

template <class From, class To>
void ExpectAsSingleElements(const std::vector<From>& x) {
  const auto cast = [](const std::vector<From>& v) {
    const auto out = RunFed("Cast", {Tensor::Vector<From>(v)}, {{"DstT", DataTypeOf<To>::value}});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Tensor();
  };
  std::vector<From> many;
  while (many.size() < 200) many.insert(many.end(), x.begin(), x.end());
  const Tensor all = cast(many);
  for (size_t i = 0; i < many.size(); ++i) {
    const Tensor one = cast({many[i]});
    ASSERT_EQ(one.data<To>()[0], all.data<To>()[i]) << i;
  }
}

TEST(Cast, IsTheSameInLongArrays) {
  const std::vector<float> floats = {
      0,      -0.f,  1.5f,   -1.5f,   255.f, 256.f, -1.f,     3e9f,      -3e9f,       1e20f,
      -1e20f, 0.99f, 1e-40f, 65520.f, 70000, NAN,   INFINITY, -INFINITY, 2147483647.f};
  ExpectAsSingleElements<float, int8_t>(floats);
  ExpectAsSingleElements<float, uint8_t>(floats);
  ExpectAsSingleElements<float, uint16_t>(floats);
  ExpectAsSingleElements<float, int32_t>(floats);
  ExpectAsSingleElements<float, uint32_t>(floats);
  ExpectAsSingleElements<float, int64_t>(floats);
  ExpectAsSingleElements<float, uint64_t>(floats);
  ExpectAsSingleElements<float, bool>(floats);
  const std::vector<int64_t> integers = {
      0, 1, -1, 255, 256, -129, int64_t{1} << 40, std::numeric_limits<int64_t>::min()};
  ExpectAsSingleElements<int64_t, int8_t>(integers);
  ExpectAsSingleElements<int64_t, uint32_t>(integers);
  ExpectAsSingleElements<int64_t, float>(integers);
  ExpectAsSingleElements<int64_t, double>(integers);
  ExpectAsSingleElements<int64_t, bool>(integers);
}

// As in TensorFlow.
TEST(Cast, OnlyTheRealPartDecidesWhetherAComplexNumberIsTrue) {
  using Complex = std::complex<float>;
  const Tensor x = Tensor::Vector<Complex>({{0, 1}, {1, 0}, {0, 0}, {-2, 3}});
  const auto out = RunFed("Cast", {x}, {{"DstT", DT_BOOL}});
  ASSERT_TRUE(out.ok()) << out.status();
  const bool want[] = {false, true, false, true};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ((*out)[0].data<bool>()[i], want[i]) << i;
}

// ---- 8-bit floats and 4-bit integers, with TensorFlow's results

Tensor CastTo(DataType to, const Tensor& x) {
  const auto r = RunFed("Cast", {x}, {{"DstT", to}});
  EXPECT_TRUE(r.ok()) << r.status();
  return r.ok() ? (*r)[0] : Tensor();
}

template <class T>
Tensor CastTo(DataType to, std::initializer_list<T> values) {
  return CastTo(to, Tensor::Vector<T>(values));
}

constexpr std::initializer_list<float> kNumbers = {
    0,       1,        -1,       0.3f,     1.5f,     3.3f,    -9,     15,    100,
    448,     464,      465,      480,      57344,    61440,   1e6f,   -1e6f, INFINITY,
    0x1p-9f, 0x1p-10f, 0x3p-11f, 0x1p-16f, 0x1p-17f, 1.0625f, 1.1875f};

void ExpectNumbers(DataType type, std::initializer_list<float> want) {
  const Tensor back = CastTo(DT_FLOAT, CastTo<float>(type, kNumbers));
  ASSERT_EQ(back.num_elements(), static_cast<int64_t>(want.size()));
  for (int64_t i = 0; i < back.num_elements(); ++i) {
    const float got = back.data<float>()[i], expected = want.begin()[i];
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << kNumbers.begin()[i] << ": " << got;
    } else {
      EXPECT_EQ(got, expected) << kNumbers.begin()[i];
    }
  }
}

TEST(SmallTypes, FloatsAreRoundedLikeTensorFlows) {
  ExpectNumbers(
      DT_FLOAT8_E5M2,
      {0,       1,        -1,       0.3125f,  1.5f,  3.5f,     -8,       16,        96,
       448,     448,      448,      512,      57344, INFINITY, INFINITY, -INFINITY, INFINITY,
       0x1p-9f, 0x1p-10f, 0x3p-11f, 0x1p-16f, 0,     1,        1.25f});
  ExpectNumbers(DT_FLOAT8_E4M3FN,
                {0,   1,   -1,  0.3125f, 1.5f, 3.25f,   -9, 15,      96, 448, 448, NAN,  NAN,
                 NAN, NAN, NAN, NAN,     NAN,  0x1p-9f, 0,  0x1p-9f, 0,  0,   1,   1.25f});
}

// Each code stands for another number, and is its encoding.
TEST(SmallTypes, CodesSurviveARoundTrip) {
  for (const DataType type : {DT_FLOAT8_E5M2, DT_FLOAT8_E4M3FN}) {
    Tensor codes(DT_UINT8, Shape({256}));
    for (int i = 0; i < 256; ++i) codes.data<uint8_t>()[i] = static_cast<uint8_t>(i);
    const Tensor numbers = CastTo(DT_FLOAT, codes.BitcastTo(type));
    const Tensor back = CastTo(type, numbers).BitcastTo(DT_UINT8);
    for (int i = 0; i < 256; ++i) {
      if (std::isnan(numbers.data<float>()[i])) continue;
      EXPECT_EQ(back.data<uint8_t>()[i], i);
    }
    EXPECT_TRUE(IdenticalTensors(CastTo(type, CastTo(DT_BFLOAT16, numbers)).BitcastTo(DT_UINT8),
                                 CastTo(type, CastTo(DT_DOUBLE, numbers)).BitcastTo(DT_UINT8)));
  }
}

TEST(SmallTypes, IntegersKeepTheLowBits) {
  const std::initializer_list<int32_t> values = {0, 1, -1, 7, 8, -8, -9, 15, 16, 100, -128};
  const Tensor signed4 = CastTo<int32_t>(DT_INT4, values),
               plain4 = CastTo<int32_t>(DT_UINT4, values);
  EXPECT_TRUE(IdenticalTensors(CastTo(DT_INT64, signed4),
                               Tensor::Vector<int64_t>({0, 1, -1, 7, -8, -8, 7, -1, 0, 4, 0})));
  EXPECT_TRUE(IdenticalTensors(CastTo(DT_INT8, plain4),
                               Tensor::Vector<int8_t>({0, 1, 15, 7, 8, 8, 7, 15, 0, 4, 0})));
  EXPECT_TRUE(IdenticalTensors(CastTo(DT_UINT8, signed4),
                               Tensor::Vector<uint8_t>({0, 1, 255, 7, 248, 248, 7, 255, 0, 4, 0})));
}

TEST(SmallTypes, OtherConversionsAreUnimplemented) {
  for (const auto& [x, to] : std::vector<std::pair<Tensor, DataType>>{
           {Tensor::Vector<int32_t>({1}), DT_FLOAT8_E5M2},
           {Tensor::Vector<float>({1}), DT_INT4},
           {Tensor::Vector<float>({1}), DT_FLOAT8_E5M2FNUZ},
           {Tensor::Vector<uint8_t>({1}).BitcastTo(DT_UINT4), DT_FLOAT}}) {
    EXPECT_TRUE(absl::IsUnimplemented(RunFed("Cast", {x}, {{"DstT", to}}).status()));
  }
}

}  // namespace
}  // namespace weir
