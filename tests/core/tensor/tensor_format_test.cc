#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/tensor.h"

// The expected strings were printed by NumPy 2.4.
namespace weir {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// 0, step, 2 * step, ...
template <class T>
Tensor Range(const Shape& shape, T step) {
  Tensor t(DataTypeOf<T>::value, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.flat<T>()[i] = static_cast<T>(i) * step;
  return t;
}

TEST(TensorFormat, SmallTensorsMatchNumPy) {
  const struct {
    Tensor tensor;
    const char* text;
  } kCases[] = {
      {Tensor::Of<float>(Shape({}), {1.0f}), "1.0"},
      {Tensor::Of<float>(Shape({}), {0.1f}), "0.1"},
      {Tensor::Of<float>(Shape({}), {-0.0f}), "-0.0"},
      {Tensor::Of<float>(Shape({}), {1e-5f}), "1e-05"},
      {Tensor::Of<float>(Shape({}), {123456.703125f}), "123456.7"},
      {Tensor::Of<float>(Shape({}), {1000000.0f}), "1e+06"},
      {Tensor::Of<double>(Shape({}), {0.1}), "0.1"},
      {Tensor::Of<double>(Shape({}), {1000000000000000.0}), "1000000000000000.0"},
      {Tensor::Of<double>(Shape({}), {1e+16}), "1e+16"},
      {Tensor::Of<half>(Shape({}), {half(0.0999755859375f)}), "0.1"},
      {Tensor::Of<half>(Shape({}), {half(1000.0f)}), "1e+03"},
      {Tensor::Of<float>(Shape({}), {kNan}), "nan"},
      {Tensor::Of<double>(Shape({}), {-kInf}), "-inf"},
      {Tensor::Of<float>(Shape({2, 2}), {1.0f, 2.0f, 3.0f, 4.0f}), "[[1. 2.]\n [3. 4.]]"},
      {Tensor::Of<float>(Shape({3}), {1.5f, -2.25f, 100.0f}), "[  1.5   -2.25 100.  ]"},
      {Tensor::Of<float>(Shape({2}), {1e-3f, 1000.0f}), "[1.e-03 1.e+03]"},
      {Tensor::Of<float>(Shape({2}), {1e-5f, 1.0f}), "[1.e-05 1.e+00]"},
      {Tensor::Of<float>(Shape({2}), {1000000.0f, 1.0f}), "[1.e+06 1.e+00]"},
      {Tensor::Of<float>(Shape({2}), {999999.0f, 1.0f}), "[9.99999e+05 1.00000e+00]"},
      {Tensor::Of<double>(Shape({2}), {100000000.0, 1.0}), "[1.e+08 1.e+00]"},
      {Tensor::Of<double>(Shape({2}), {99999999.0, 100000.0}), "[99999999.   100000.]"},
      {Tensor::Of<double>(Shape({2}), {0.1, 0.123456789012}), "[0.1        0.12345679]"},
      {Tensor::Of<float>(Shape({2}), {1.0f / 3, 2.0f / 3}), "[0.33333334 0.6666667 ]"},
      {Tensor::Of<double>(Shape({2}), {1.0 / 3, 2.0 / 3}), "[0.33333333 0.66666667]"},
      {Tensor::Of<float>(Shape({3}), {kNan, 1.0f, -kInf}), "[ nan   1. -inf]"},
      {Tensor::Of<float>(Shape({2}), {kNan, kInf}), "[nan inf]"},
      {Tensor::Of<float>(Shape({2}), {kNan, -1e-7f}), "[    nan -1.e-07]"},
      {Tensor::Of<double>(Shape({2}), {1e-300, 1e+300}), "[1.e-300 1.e+300]"},
      {Tensor::Of<float>(Shape({2}), {0.0f, 0.0f}), "[0. 0.]"},
      {Tensor::Of<float>(Shape({2}), {-0.0f, 0.0f}), "[-0.  0.]"},
      {Tensor::Of<half>(Shape({2}), {half(1.1920928955078125e-07f), half(2.384185791015625e-07f)}),
       "[1.2e-07 2.4e-07]"},
      {Tensor::Of<half>(Shape({2}), {half(0.0999755859375f), half(2048.0f)}),
       "[9.998e-02 2.048e+03]"},
      {Tensor::Of<half>(Shape({1}), {half(0.015625f)}), "[0.01563]"},
      {Tensor::Of<half>(Shape({3}), {half(1.0f), half(2.5f), half(999.0f)}), "[  1.    2.5 999. ]"},
      {Tensor::Of<float>(Shape({2}), {16777216.0f, 1.0f}), "[1.6777216e+07 1.0000000e+00]"},
      {Tensor::Of<int32_t>(Shape({}), {7}), "7"},
      {Tensor::Of<int32_t>(Shape({3}), {1, -20, 300}), "[  1 -20 300]"},
      {Tensor::Of<int64_t>(Shape({2}), {INT64_MIN, 1}),
       "[-9223372036854775808                    1]"},
      {Tensor::Of<uint64_t>(Shape({1}), {18446744073709551615u}), "[18446744073709551615]"},
      {Tensor::Of<uint8_t>(Shape({2, 2, 2}), {1, 2, 3, 4, 5, 6, 7, 8}),
       "[[[1 2]\n  [3 4]]\n\n [[5 6]\n  [7 8]]]"},
      {Tensor::Of<bool>(Shape({}), {true}), "True"},
      {Tensor::Of<bool>(Shape({2}), {true, false}), "[ True False]"},
      {Tensor::Of<float>(Shape({0}), {}), "[]"},
      {Tensor::Of<float>(Shape({2, 0}), {}), "[]"},
  };
  for (const auto& c : kCases) EXPECT_EQ(c.tensor.ToString(), c.text) << c.tensor.Description();
}

TEST(TensorFormat, ComplexNumbers) {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  EXPECT_EQ(Tensor::Vector<C64>({{1, 2}, {-3.5, -0.25}}).ToString(), "[ 1. +2.j   -3.5-0.25j]");
  EXPECT_EQ(Tensor::Of<C128>(Shape({1, 2}), {{kNan, -kInf}, {0, 1e-5}}).ToString(),
            "[[nan   -infj  0.+1.e-05j]]");
  EXPECT_EQ(Tensor::Scalar(C64(1, -2)).ToString(), "(1-2j)");
  EXPECT_EQ(Tensor::Scalar(C128(0, 2)).ToString(), "2j");
}

TEST(TensorFormat, StringsAreBytesLiterals) {
  const Tensor t =
      Tensor::Of<std::string>(Shape({2, 2}), {"a", "it's", std::string("\0\xff", 2), "\"\n"});
  EXPECT_EQ(t.ToString(), "[[b'a' b\"it's\"]\n [b'\\x00\\xff' b'\"\\n']]");
  EXPECT_EQ(Tensor::Scalar("a'\"").ToString(), "b'a\\'\"'");
}

TEST(TensorFormat, ExtensionTypesAreNotAligned) {
  EXPECT_EQ(Tensor::Scalar(bfloat16(0.1f)).ToString(), "0.100098");
  EXPECT_EQ(Tensor::Vector<bfloat16>({bfloat16(1.0f), bfloat16(0.1f)}).ToString(), "[1 0.100098]");
  EXPECT_EQ(Tensor::Vector<int4>({int4{-8}, int4{7}}).ToString(), "[-8 7]");
  EXPECT_EQ(Tensor::Vector<float8_e5m2>({{0x3c}, {0xc0}, {0x7c}, {0x7e}, {0x01}}).ToString(),
            "[1 -2 inf nan 1.52588e-05]");
  EXPECT_EQ(Tensor::Vector<float8_e4m3fn>({{0x38}, {0x7e}, {0x7f}}).ToString(), "[1 448 nan]");
  EXPECT_EQ(Tensor::Vector<float8_e4m3fnuz>({{0x40}, {0x80}, {0x7f}}).ToString(), "[1 nan 240]");
}

TEST(TensorFormat, LinesWrapAt75Columns) {
  EXPECT_EQ(Range<float>(Shape({30}), 0.5f).ToString(),
            "[ 0.   0.5  1.   1.5  2.   2.5  3.   3.5  4.   4.5  5.   5.5  6.   6.5\n"
            "  7.   7.5  8.   8.5  9.   9.5 10.  10.5 11.  11.5 12.  12.5 13.  13.5\n"
            " 14.  14.5]");
  EXPECT_EQ(Range<double>(Shape({3, 20}), 0.37).ToString(),
            "[[ 0.    0.37  0.74  1.11  1.48  1.85  2.22  2.59  2.96  3.33  3.7   4.07\n"
            "   4.44  4.81  5.18  5.55  5.92  6.29  6.66  7.03]\n"
            " [ 7.4   7.77  8.14  8.51  8.88  9.25  9.62  9.99 10.36 10.73 11.1  11.47\n"
            "  11.84 12.21 12.58 12.95 13.32 13.69 14.06 14.43]\n"
            " [14.8  15.17 15.54 15.91 16.28 16.65 17.02 17.39 17.76 18.13 18.5  18.87\n"
            "  19.24 19.61 19.98 20.35 20.72 21.09 21.46 21.83]]");
}

TEST(TensorFormat, LargeTensorsShowTheirEdges) {
  EXPECT_EQ(Range<int32_t>(Shape({1001}), 1).ToString(), "[   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(Range<int32_t>(Shape({40, 50}), 1).ToString(),
            "[[   0    1    2 ...   47   48   49]\n"
            " [  50   51   52 ...   97   98   99]\n"
            " [ 100  101  102 ...  147  148  149]\n"
            " ...\n"
            " [1850 1851 1852 ... 1897 1898 1899]\n"
            " [1900 1901 1902 ... 1947 1948 1949]\n"
            " [1950 1951 1952 ... 1997 1998 1999]]");
  EXPECT_EQ(Range<float>(Shape({1200}), 0.001f).ToString(),
            "[0.0000000e+00 1.0000000e-03 2.0000001e-03 ... 1.1970000e+00 1.1980001e+00\n"
            " 1.1990000e+00]");
  EXPECT_EQ(Range<int32_t>(Shape({10}), 1).ToString(4), "[0 1 2 ... 7 8 9]");
  EXPECT_EQ(Range<int32_t>(Shape({1000}), 1).ToString().find("..."), std::string::npos);
}

TEST(TensorFormat, BlankLinesSeparateMatrices) {
  EXPECT_EQ(Range<int32_t>(Shape({2, 2, 1, 2}), 1).ToString(),
            "[[[[0 1]]\n\n  [[2 3]]]\n\n\n [[[4 5]]\n\n  [[6 7]]]]");
}

TEST(TensorFormat, Uninitialized) { EXPECT_EQ(Tensor().ToString(), "<uninitialized tensor>"); }

}  // namespace
}  // namespace weir
