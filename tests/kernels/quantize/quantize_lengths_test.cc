#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/tensor/numeric_types.h"
#include "weir/tests/evaluate.h"

// QuantizeV2 and Dequantize of many lengths: rounding is that of the C library, and an element's
// result does not depend on where it stands (of the ordinary numbers, a sample).
namespace weir {
namespace {

// Numbers around halves, around 2^22 and 2^23, around the bounds of integers, and no numbers.
std::vector<float> Numbers() {
  std::vector<float> x = {
      NAN,        INFINITY,   -INFINITY,  0,       3e9f,         -3e9f,         1e20f,
      4194303.5f, 4194304.5f, 8388607.5f, 8388609, 2147483520.f, -2147483648.f, 0x1.fffffep-2f};
  for (int k = -300; k < 300; ++k) {
    const float half = 0.5f * static_cast<float>(k);
    for (const float v : {std::nextafter(half, -1e9f), half, std::nextafter(half, 1e9f)})
      x.push_back(v);
  }
  return x;
}

absl::StatusOr<Tensors> Quantize(DataType type, const std::vector<float>& x, float low, float high,
                                 const std::string& mode, const std::string& round) {
  return RunFed("QuantizeV2",
                {Tensor::Vector<float>(x), Tensor::Scalar<float>(low), Tensor::Scalar<float>(high)},
                {{"T", type}, {"mode", mode}, {"round_mode", round}});
}

// With the range [-127, 127] and 8 bits the factor of SCALED is 1.
TEST(QuantizeLengths, RoundAsTheLibrary) {
  const std::vector<float> x = Numbers();
  for (const bool even : {false, true}) {
    const auto got =
        Quantize(DT_QINT8, x, -127, 127, "SCALED", even ? "HALF_TO_EVEN" : "HALF_AWAY_FROM_ZERO");
    ASSERT_TRUE(got.ok()) << got.status();
    const float low = (*got)[1].data<float>()[0], high = (*got)[2].data<float>()[0];
    for (size_t i = 0; i < x.size(); ++i) {
      const float v = std::max(std::min(x[i], high), low);
      const float want = std::isnan(v) ? -128 : even ? std::nearbyint(v) : std::round(v);
      ASSERT_EQ((*got)[0].data<qint8>()[i].value, want) << x[i] << " " << even;
    }
  }
}

template <class T>
void ExpectSameAnywhere(const std::string& mode, const std::string& round) {
  const std::vector<float> x = Numbers();
  constexpr DataType kType = DataTypeOf<T>::value;
  const auto all = Quantize(kType, x, -100, 90, mode, round);
  ASSERT_TRUE(all.ok()) << all.status();
  const auto back = RunFed("Dequantize", {(*all)[0], (*all)[1], (*all)[2]}, {{"mode", mode}});
  ASSERT_TRUE(back.ok()) << back.status();
  for (size_t i = 0; i < x.size(); i += i < 14 ? 1 : 37) {
    const auto one = Quantize(kType, {x[i]}, -100, 90, mode, round);
    ASSERT_EQ((*one)[0].data<T>()[0].value, (*all)[0].data<T>()[i].value) << mode << " " << x[i];
    const auto number = RunFed("Dequantize", {(*one)[0], (*one)[1], (*one)[2]}, {{"mode", mode}});
    ASSERT_EQ((*number)[0].data<float>()[0], (*back)[0].data<float>()[i]) << mode << " " << x[i];
  }
}

TEST(QuantizeLengths, AreTheSameAnywhere) {
  for (const auto& [mode, round] : {std::pair("MIN_COMBINED", "HALF_AWAY_FROM_ZERO"),
                                    {"MIN_FIRST", "HALF_AWAY_FROM_ZERO"},
                                    {"SCALED", "HALF_AWAY_FROM_ZERO"},
                                    {"SCALED", "HALF_TO_EVEN"}}) {
    ExpectSameAnywhere<qint8>(mode, round);
    ExpectSameAnywhere<quint8>(mode, round);
    ExpectSameAnywhere<qint16>(mode, round);
    ExpectSameAnywhere<quint16>(mode, round);
    ExpectSameAnywhere<qint32>(mode, round);
  }
}

}  // namespace
}  // namespace weir
