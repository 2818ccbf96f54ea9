#ifndef WEIR_KERNELS_LIB_PHILOX_H_
#define WEIR_KERNELS_LIB_PHILOX_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/numeric_types.h"

// Random numbers: the Philox 4x32-10 generator and the distributions on top of it, number for
// number those of TensorFlow. Source of the generator: Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011.
//
// The generator is a cipher applied to a counter: block i of a stream is the encryption, under the
// stream's key, of counter + i. So any thread can start anywhere, and the contents of a tensor do
// not depend on how the work is split. A distribution turns blocks of four 32-bit words into a
// group of kGroup samples:
//   - most distributions take a fixed number of words: group g of a tensor is made from block g,
//     counted from the call's first block;
//   - a truncated normal rejects samples and so takes words until it accepts one: group g has 256
//     words for each of its samples, from block g * kGroup * 64 on. (On average it needs 1.1.)
// A stateful op advances its stream by 256 blocks for each sample of each call, used or not.
namespace WEIR_API weir {

inline constexpr int64_t kReservedPerSample = 256;

class Philox {
 public:
  Philox() = default;
  // For stateful ops: the seeds are the key and the upper half of the counter.
  WEIR_HD Philox(uint64_t seed, uint64_t seed2) : Philox(seed, 0, seed2) {}
  WEIR_HD Philox(uint64_t key, uint64_t counter_low, uint64_t counter_high)
      : low_(counter_low), high_(counter_high), key_(key) {}

  WEIR_HD uint64_t key() const { return key_; }
  WEIR_HD uint64_t counter_low() const { return low_; }
  WEIR_HD uint64_t counter_high() const { return high_; }

  // Advances by `blocks` blocks.
  WEIR_HD void Skip(uint64_t blocks) {
    low_ += blocks;
    if (low_ < blocks) ++high_;
  }

  // Returns the next block.
  WEIR_HD void operator()(uint32_t out[4]) {
    uint32_t c0 = static_cast<uint32_t>(low_), c1 = static_cast<uint32_t>(low_ >> 32);
    uint32_t c2 = static_cast<uint32_t>(high_), c3 = static_cast<uint32_t>(high_ >> 32);
    uint32_t k0 = static_cast<uint32_t>(key_), k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(b);
      c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(a);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
    Skip(1);
  }

 private:
  uint64_t low_ = 0, high_ = 0, key_ = 0;
};

// The words of a stream, one by one.
class PhiloxWords {
 public:
  WEIR_HD explicit PhiloxWords(const Philox& stream) : stream_(stream) {}
  WEIR_HD uint32_t operator()() {
    if (used_ == 4) {
      stream_(block_);
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  Philox stream_;
  uint32_t block_[4] = {};
  int used_ = 4;
};

// Returns the stream of a stateless op's seed. Both halves are scrambled, so that it does not
// matter which one varies.
WEIR_HD inline Philox PhiloxFromSeed(uint64_t seed0, uint64_t seed1) {
  uint32_t mix[4];
  Philox(uint64_t{0x02461e293ec8f720}, seed0, seed1)(mix);
  return Philox(mix[0] | uint64_t{mix[1]} << 32, 0, mix[2] | uint64_t{mix[3]} << 32);
}

// ---- numbers in [0, 1): random mantissa bits under the exponent of 1, minus 1.

WEIR_HD inline float UnitFloat(uint32_t x) {
  return internal::FloatFromBits(0x3f800000u | (x & 0x7fffffu)) - 1.0f;
}
WEIR_HD inline double UnitDouble(uint32_t high, uint32_t low) {
  const uint64_t bits = uint64_t{0x3ff} << 52 | uint64_t{high & 0xfffffu} << 32 | low;
#ifdef __CUDA_ARCH__
  return __longlong_as_double(static_cast<long long>(bits)) - 1.0;
#else
  return std::bit_cast<double>(bits) - 1.0;
#endif
}
WEIR_HD inline half UnitHalf(uint32_t x) {
  half h;
  h.bits = static_cast<uint16_t>(0x3c00u | (x & 0x3ffu));
  return half(float(h) - 1.0f);
}
WEIR_HD inline bfloat16 UnitBfloat16(uint32_t x) {
  bfloat16 b;
  b.bits = static_cast<uint16_t>(0x3f80u | (x & 0x7fu));
  return bfloat16(float(b) - 1.0f);
}

// ---- pairs of normal numbers. Source: Box and Muller, 1958. The argument of the logarithm is
// bounded away from zero.

WEIR_HD inline void NormalPair(uint32_t x0, uint32_t x1, float out[2]) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  const float u1 = fmaxf(UnitFloat(x0), 1.0e-7f);
  const float v1 = static_cast<float>(kTwoPi * UnitFloat(x1));
  const float radius = sqrtf(-2.0f * logf(u1));
  sincosf(v1, &out[0], &out[1]);
  out[0] *= radius;
  out[1] *= radius;
}

WEIR_HD inline void NormalPair(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3, double out[2]) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  const double u1 = fmax(UnitDouble(x0, x1), 1.0e-7);
  const double v1 = kTwoPi * UnitDouble(x2, x3);
  const double radius = sqrt(-2.0 * log(u1));
  sincos(v1, &out[0], &out[1]);
  out[0] *= radius;
  out[1] *= radius;
}

// ---- distributions: operator() turns one block (or, kRejects, a stream of words) into kGroup
// samples of type Sample.

enum class RandomKind : uint8_t { kUniform, kInteger, kNormal, kTruncatedNormal };

template <class T>
struct UniformSamples {
  using Sample = T;
  static constexpr RandomKind kKind = RandomKind::kUniform;
  static constexpr int kGroup = 4;
  static constexpr bool kRejects = false;
  static constexpr double kCost = 4;  // nanoseconds per group
  WEIR_HD void operator()(const uint32_t block[4], T* out) const {
    for (int i = 0; i < 4; ++i) out[i] = Convert(block[i], T());
  }
  WEIR_HD static float Convert(uint32_t x, float) { return UnitFloat(x); }
  WEIR_HD static half Convert(uint32_t x, half) { return UnitHalf(x); }
  WEIR_HD static bfloat16 Convert(uint32_t x, bfloat16) { return UnitBfloat16(x); }
};
template <>
struct UniformSamples<double> {
  using Sample = double;
  static constexpr RandomKind kKind = RandomKind::kUniform;
  static constexpr int kGroup = 2;
  static constexpr bool kRejects = false;
  static constexpr double kCost = 4;
  WEIR_HD void operator()(const uint32_t block[4], double* out) const {
    out[0] = UnitDouble(block[0], block[1]);
    out[1] = UnitDouble(block[2], block[3]);
  }
};

// Integers of 32 or 64 bits: all of them, or (if range > 0) those in [low, low + range).
template <class T>
struct IntegerSamples {
  using Sample = T;
  using Word = std::make_unsigned_t<T>;
  static constexpr RandomKind kKind = RandomKind::kInteger;
  static constexpr int kGroup = 16 / sizeof(T);
  static constexpr bool kRejects = false;
  static constexpr double kCost = 8;
  Word low = 0, range = 0;
  WEIR_HD void operator()(const uint32_t block[4], T* out) const {
    for (int i = 0; i < kGroup; ++i) {
      Word word;
      if constexpr (sizeof(T) == 4) {
        word = block[i];
      } else {
        word = block[2 * i] | uint64_t{block[2 * i + 1]} << 32;
      }
      out[i] = static_cast<T>(range == 0 ? word : low + word % range);
    }
  }
};

template <class T>
struct NormalSamples {
  using Sample = T;
  static constexpr RandomKind kKind = RandomKind::kNormal;
  static constexpr int kGroup = 4;
  static constexpr bool kRejects = false;
  static constexpr double kCost = 60;
  WEIR_HD void operator()(const uint32_t block[4], T* out) const {
    for (int i = 0; i < 4; i += 2) {
      float pair[2];
      NormalPair(block[i], block[i + 1], pair);
      out[i] = T(pair[0]);
      out[i + 1] = T(pair[1]);
    }
  }
};
template <>
struct NormalSamples<double> {
  using Sample = double;
  static constexpr RandomKind kKind = RandomKind::kNormal;
  static constexpr int kGroup = 2;
  static constexpr bool kRejects = false;
  static constexpr double kCost = 60;
  WEIR_HD void operator()(const uint32_t block[4], double* out) const {
    NormalPair(block[0], block[1], block[2], block[3], out);
  }
};

template <class T>
struct TruncatedNormalSamples {
  using Sample = T;
  static constexpr bool kIsDouble = sizeof(T) == 8;
  static constexpr RandomKind kKind = RandomKind::kTruncatedNormal;
  static constexpr int kGroup = kIsDouble ? 2 : 4;
  static constexpr bool kRejects = true;
  static constexpr double kCost = 90;
  WEIR_HD void operator()(PhiloxWords& words, T* out) const {
    constexpr int kLimit = 2;  // standard deviations
    for (int n = 0; n < kGroup;) {
      std::conditional_t<kIsDouble, double, float> pair[2];
      const uint32_t x0 = words(), x1 = words();
      if constexpr (kIsDouble) {
        const uint32_t x2 = words(), x3 = words();
        NormalPair(x0, x1, x2, x3, pair);
      } else {
        NormalPair(x0, x1, pair);
      }
      for (int i = 0; i < 2 && n < kGroup; ++i) {
        if (fabs(pair[i]) < kLimit) out[n++] = T(pair[i]);
      }
    }
  }
};

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_PHILOX_H_
