#include "weir/kernels/text/fixed_notation.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>

namespace weir {

namespace {

constexpr std::array<uint64_t, kMaxFixedDecimals + 1> PowersOfTen() {
  std::array<uint64_t, kMaxFixedDecimals + 1> powers{1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}

constexpr auto kPowersOfTen = PowersOfTen();

// Computes mantissa * scale / 2^shift, rounded to nearest, ties to even; false if it is 2^63 or
// more. The mantissa has at most 53 bits, the scale at most 60; shift > 0.
bool ScaleAndRound(uint64_t mantissa, uint64_t scale, int shift, uint64_t* result) {
  constexpr int kProductBits = 53 + 60;
  *result = 0;
  if (shift > kProductBits + 1) return true;  // less than a half
  const unsigned __int128 product = static_cast<unsigned __int128>(mantissa) * scale;
  const unsigned __int128 quotient = product >> shift;
  if (quotient >> 63 != 0) return false;
  const unsigned __int128 rest = product - (quotient << shift);
  const unsigned __int128 half = static_cast<unsigned __int128>(1) << (shift - 1);
  *result = static_cast<uint64_t>(quotient);
  if (rest > half || (rest == half && *result % 2 == 1)) ++*result;
  return true;
}

}  // namespace

// Fixed notation in integer arithmetic. A double is m / 2^s with integers m < 2^53 and s. Its
// digits up to d decimals are those of the integer m * 10^d / 2^s. For d <= 18 the product has at
// most 113 bits and is exact in two machine words, the quotient is a shift, and the bits that the
// shift drops are the exact remainder: comparing them with one half rounds as printf does, ties to
// even, however long the decimal expansion is. So one multiplication and a shift replace the
// general algorithms, which find digit after digit of numbers of any size in multiple precision
// (Guy Steele and Jon White, "How to print floating-point numbers accurately", 1990) or look up
// powers of two in tables of ten kilobytes (Ulf Adams, "Ryu revisited: printf floating point
// conversion", 2019). What remains is to print two integers, the part before the point and the
// decimals. The decimals have leading zeros: printed with 10^d added, whose digit 1 then makes
// place for the point.
bool PrintFixed(double value, int decimals, std::string* text) {
  constexpr int kFractionBits = 52,
                kPointOfMantissa = 1075;  // the value is m * 2^(exponent - 1075)
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<int>(bits >> kFractionBits & 0x7FF);
  const int shift = kPointOfMantissa - exponent;
  if (shift <= 0) return false;
  // Zero and subnormal numbers (exponent 0) have no hidden bit, but are zeros with or without it.
  const uint64_t hidden = uint64_t{1} << kFractionBits, mantissa = (bits & (hidden - 1)) | hidden;
  const uint64_t scale = kPowersOfTen[decimals];
  uint64_t scaled;
  if (!ScaleAndRound(mantissa, scale, shift, &scaled)) return false;
  char buffer[2 * 20 + 2];  // a sign, two integers of at most 20 digits, and room
  char* const end = buffer + sizeof(buffer);
  char* at = buffer;
  if (bits >> 63 != 0) *at++ = '-';
  const uint64_t whole = scaled / scale;
  at = std::to_chars(at, end, whole).ptr;
  const auto point = static_cast<size_t>(at - buffer);
  // The leading 1 of scale keeps the zeros of the fraction, and is overwritten by the point.
  if (decimals > 0) at = std::to_chars(at, end, scaled - whole * scale + scale).ptr;
  text->assign(buffer, static_cast<size_t>(at - buffer));
  if (decimals > 0) (*text)[point] = '.';
  return true;
}

}  // namespace weir
