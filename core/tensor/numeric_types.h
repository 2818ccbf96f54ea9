#ifndef WEIR_CORE_TENSOR_NUMERIC_TYPES_H_
#define WEIR_CORE_TENSOR_NUMERIC_TYPES_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "weir/core/tensor/api.h"

// Element types that C++ lacks: half (IEEE binary16), bfloat16, the quantized integers, the 8-bit
// floats and the 4-bit integers (one value per byte). The first two compute in float and round to
// nearest even; the others are storage-only. nvcc compiles this header too, so it includes nothing
// heavy.

#ifdef __CUDACC__
#define WEIR_HD __host__ __device__
#else
#define WEIR_HD
#endif

namespace WEIR_API weir {

namespace internal {

WEIR_HD inline float FloatFromBits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

WEIR_HD inline uint32_t BitsFromFloat(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return std::bit_cast<uint32_t>(value);
#endif
}

// Binary16 has 10 of float's 23 mantissa bits, and an exponent bias of 15 instead of 127. A
// subnormal is the excess of 2^-14 * 1.mantissa over 2^-14: a difference of normal floats, which
// threads that flush subnormal floats compute too. Infinities and NaNs get the largest exponent.
WEIR_HD inline float HalfToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(h & 0x7fffu) << 13;
  const uint32_t exponent = h & 0x7c00u;
  const uint32_t subnormal =
      BitsFromFloat(FloatFromBits(magnitude + 0x38800000u) - FloatFromBits(0x38800000u));
  const uint32_t normal = magnitude + (exponent == 0x7c00u ? 0x70000000u : 0x38000000u);
  return FloatFromBits(sign | (exponent == 0 ? subnormal : normal));
}

WEIR_HD inline uint16_t FloatToHalf(float f) {
  const uint32_t bits = BitsFromFloat(f);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  uint32_t x = bits & 0x7fffffffu;
  if (x > 0x7f800000u) return sign | 0x7e00u;
  if (x >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above round to infinity
  if (x < 0x38800000u) {                        // subnormal: adding 0.5 rounds in the adder
    const uint32_t rounded = BitsFromFloat(FloatFromBits(x) + 0.5f) - 0x3f000000u;
    return sign | static_cast<uint16_t>(rounded);
  }
  x += 0xc8000fffu + ((x >> 13) & 1u);
  return sign | static_cast<uint16_t>(x >> 13);
}

WEIR_HD inline uint16_t FloatToBfloat16(float f) {
  const uint32_t bits = BitsFromFloat(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace internal

// IEEE 754 binary16: 10 bits of mantissa, largest finite value 65504.
struct half {
  uint16_t bits = 0;  // the encoding
  half() = default;
  // Rounds to nearest even; NaN stays NaN. Numbers of other types are rounded to float first.
  WEIR_HD half(float f) : bits(internal::FloatToHalf(f)) {}
  WEIR_HD explicit half(double f) : half(static_cast<float>(f)) {}
  WEIR_HD explicit half(int f) : half(static_cast<float>(f)) {}
  // Exact.
  WEIR_HD operator float() const { return internal::HalfToFloat(bits); }
  // Each computes in float and rounds.
  WEIR_HD half& operator+=(half o) { return *this = half(float(*this) + float(o)); }
  WEIR_HD half& operator-=(half o) { return *this = half(float(*this) - float(o)); }
  WEIR_HD half& operator*=(half o) { return *this = half(float(*this) * float(o)); }
  WEIR_HD half& operator/=(half o) { return *this = half(float(*this) / float(o)); }
};

// The upper half of a float: 7 bits of mantissa, and float's range.
struct bfloat16 {
  uint16_t bits = 0;  // the encoding
  bfloat16() = default;
  // Rounds to nearest even; NaN stays NaN. Numbers of other types are rounded to float first.
  WEIR_HD bfloat16(float f) : bits(internal::FloatToBfloat16(f)) {}
  WEIR_HD explicit bfloat16(double f) : bfloat16(static_cast<float>(f)) {}
  WEIR_HD explicit bfloat16(int f) : bfloat16(static_cast<float>(f)) {}
  // Exact.
  WEIR_HD operator float() const {
    return internal::FloatFromBits(static_cast<uint32_t>(bits) << 16);
  }
  // Each computes in float and rounds.
  WEIR_HD bfloat16& operator+=(bfloat16 o) { return *this = bfloat16(float(*this) + float(o)); }
  WEIR_HD bfloat16& operator-=(bfloat16 o) { return *this = bfloat16(float(*this) - float(o)); }
  WEIR_HD bfloat16& operator*=(bfloat16 o) { return *this = bfloat16(float(*this) * float(o)); }
  WEIR_HD bfloat16& operator/=(bfloat16 o) { return *this = bfloat16(float(*this) / float(o)); }
};

// A storage-only element type: distinct in the type system, without arithmetic.
template <class Storage, int kTag>
struct StorageOnly {
  Storage value = 0;  // the encoding
  friend bool operator==(StorageOnly a, StorageOnly b) { return a.value == b.value; }
};
// Quantized integers; the range that they stand for is in tensors beside them.
using qint8 = StorageOnly<int8_t, 11>;
using quint8 = StorageOnly<uint8_t, 12>;
using qint32 = StorageOnly<int32_t, 13>;
using qint16 = StorageOnly<int16_t, 15>;
using quint16 = StorageOnly<uint16_t, 16>;
// 8-bit floats, named by their bits of exponent and mantissa; fn: no infinities, uz: no negative
// zero either.
using float8_e5m2 = StorageOnly<uint8_t, 24>;
using float8_e4m3fn = StorageOnly<uint8_t, 25>;
using float8_e4m3fnuz = StorageOnly<uint8_t, 26>;
using float8_e4m3b11fnuz = StorageOnly<uint8_t, 27>;
using float8_e5m2fnuz = StorageOnly<uint8_t, 28>;
// 4-bit integers, one in each byte.
using int4 = StorageOnly<int8_t, 29>;
using uint4 = StorageOnly<uint8_t, 30>;

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_NUMERIC_TYPES_H_
