#include "weir/core/tensor/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace weir {
namespace {

half HalfBits(uint16_t bits) {
  half h;
  h.bits = bits;
  return h;
}

// The definition of binary16, term by term.
double HalfByDefinition(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  if (exponent == 31) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryValueRoundTripsThroughFloat) {
  for (int bits = 0; bits < 65536; ++bits) {
    const half h = HalfBits(static_cast<uint16_t>(bits));
    const double want = HalfByDefinition(h.bits);
    const float got = h;
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(half(got)))) << bits;
    } else {
      ASSERT_EQ(got, want) << bits;
      ASSERT_EQ(half(got).bits, h.bits);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double low = HalfByDefinition(static_cast<uint16_t>(bits));
    const double high = HalfByDefinition(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);  // exact: 12 bits
    const int even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(half(middle).bits, even) << bits;
    ASSERT_EQ(half(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(half(std::nextafter(middle, 1e9f)).bits, bits + 1) << bits;
  }
}

TEST(Half, OverflowsToInfinityFrom65520) {
  EXPECT_EQ(half(65519.99f).bits, 0x7bff);
  EXPECT_EQ(half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(half(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(Bfloat16, EveryValueRoundTripsThroughFloatExactly) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    bfloat16 b;
    b.bits = static_cast<uint16_t>(bits);
    const uint32_t wide_bits = bits << 16;
    float want;
    std::memcpy(&want, &wide_bits, sizeof(want));
    const float got = b;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got));
      ASSERT_TRUE(std::isnan(static_cast<float>(bfloat16(got))));
    } else {
      ASSERT_EQ(got, want);
      ASSERT_EQ(bfloat16(got).bits, bits);
    }
  }
}

TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(bfloat16(1.0f + 1.0f / 256).bits, 0x3f80);  // midpoint, even below
  EXPECT_EQ(bfloat16(1.0f + 3.0f / 256).bits, 0x3f82);  // midpoint, even above
  EXPECT_EQ(bfloat16(1.0f + 1.01f / 256).bits, 0x3f81);
  EXPECT_EQ(bfloat16(3.4e38f).bits, 0x7f80);  // above the largest finite value
}

TEST(DataType, NamesRoundTripInBothForms) {
  for (int t = DT_FLOAT; t <= DT_UINT4; ++t) {
    const DataType type = static_cast<DataType>(t);
    const std::string name = DataTypeName(type);
    EXPECT_EQ(DataTypeFromName(name), type) << name;
    EXPECT_EQ(DataTypeFromName(DataTypeName(MakeRef(type))), MakeRef(type)) << name;
    EXPECT_TRUE(IsKnown(type));
    EXPECT_TRUE(IsKnown(MakeRef(type)));
    EXPECT_GT(ElementSize(type), 0u);
  }
  EXPECT_EQ(DataTypeName(MakeRef(DT_FLOAT)), "float_ref");
  EXPECT_EQ(DataTypeFromName("DT_COMPLEX64"), DT_COMPLEX64);
  EXPECT_EQ(DataTypeFromName("DT_FLOAT_REF"), MakeRef(DT_FLOAT));
  EXPECT_EQ(DataTypeFromName("float16"), DT_HALF);
  EXPECT_EQ(DataTypeFromName("float32"), DT_FLOAT);
  EXPECT_EQ(DataTypeFromName("float64_ref"), MakeRef(DT_DOUBLE));
}

TEST(DataType, OtherNamesAndValuesAreInvalid) {
  for (const char* name :
       {"", "FLOAT", "DT_float", "float128", "DT_", "invalid", "_ref", "floatx"}) {
    EXPECT_EQ(DataTypeFromName(name), DT_INVALID) << name;
  }
  for (const int t : {0, 31, 99, 100, 131, 255}) {
    EXPECT_FALSE(IsKnown(static_cast<DataType>(t))) << t;
    EXPECT_EQ(ElementSize(static_cast<DataType>(t)), 0u) << t;
  }
}

TEST(DataType, ReferenceTypesAreTheirBasePlus100) {
  EXPECT_EQ(MakeRef(DT_FLOAT), 101);
  EXPECT_EQ(MakeRef(MakeRef(DT_FLOAT)), 101);
  EXPECT_EQ(BaseType(MakeRef(DT_UINT4)), DT_UINT4);
  EXPECT_FALSE(IsRef(DT_UINT4));
}

TEST(DispatchType, CallsTheMemberOfThatTypeOnly) {
  size_t size = 0;
  EXPECT_TRUE(DispatchType(DT_DOUBLE, Floats{}, [&]<class T>() { size = sizeof(T); }));
  EXPECT_EQ(size, sizeof(double));
  EXPECT_FALSE(DispatchType(DT_INT32, Floats{}, [&]<class T>() { size = 0; }));
  EXPECT_EQ(size, sizeof(double));
}

}  // namespace
}  // namespace weir
