#include "weir/kernels/lib/hash.h"

#include <bit>
#include <utility>

#include "weir/core/io/coding.h"

namespace weir {

namespace {

// FarmHash's Fingerprint64 is the hash whose values its authors (Geoff Pike and Jyrki Alakuijala,
// Google, 2014) promise not to change: farmhashna::Hash64. It is CityHash64 with different final
// mixes. Strings are processed by length: up to 16, 32 and 64 bytes by a few overlapping loads from
// both ends, longer ones in blocks of 64 bytes that are mixed into a state of 56 bytes (two pairs v
// and w and three words x, y, z); the last block is the last 64 bytes and may overlap its
// predecessor. Every mix is a multiplication by an odd constant, a rotation or a shift-xor, so that
// each is a bijection of a word. The constants k0 to k2 are primes with irregular bit patterns.
constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

uint64_t ShiftMix(uint64_t v) { return v ^ (v >> 47); }

uint64_t RotateRight(uint64_t v, int bits) { return std::rotr(v, bits); }

uint64_t HashPair(uint64_t u, uint64_t v, uint64_t mul) {
  const uint64_t a = ShiftMix((u ^ v) * mul);
  return ShiftMix((v ^ a) * mul) * mul;
}

uint64_t HashUpTo16(const char* s, uint64_t n) {
  const uint64_t mul = k2 + n * 2;
  if (n >= 8) {
    const uint64_t a = LoadFixed64(s) + k2, b = LoadFixed64(s + n - 8);
    return HashPair(RotateRight(b, 37) * mul + a, (RotateRight(a, 25) + b) * mul, mul);
  }
  if (n >= 4) {
    return HashPair(n + (static_cast<uint64_t>(LoadFixed32(s)) << 3), LoadFixed32(s + n - 4), mul);
  }
  if (n == 0) return k2;
  const auto byte = [s](uint64_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(s[i])); };
  const uint32_t y = byte(0) + (byte(n >> 1) << 8);
  const uint32_t z = static_cast<uint32_t>(n) + (byte(n - 1) << 2);
  return ShiftMix((y * k2) ^ (z * k0)) * k2;
}

uint64_t HashUpTo32(const char* s, uint64_t n) {
  const uint64_t mul = k2 + n * 2;
  const uint64_t a = LoadFixed64(s) * k1, b = LoadFixed64(s + 8), c = LoadFixed64(s + n - 8) * mul,
                 d = LoadFixed64(s + n - 16) * k2;
  return HashPair(RotateRight(a + b, 43) + RotateRight(c, 30) + d, a + RotateRight(b + k2, 18) + c,
                  mul);
}

uint64_t HashUpTo64(const char* s, uint64_t n) {
  const uint64_t mul = k2 + n * 2;
  const uint64_t a = LoadFixed64(s) * k2, b = LoadFixed64(s + 8), c = LoadFixed64(s + n - 8) * mul,
                 d = LoadFixed64(s + n - 16) * k2;
  const uint64_t y = RotateRight(a + b, 43) + RotateRight(c, 30) + d;
  const uint64_t z = HashPair(y, a + RotateRight(b + k2, 18) + c, mul);
  const uint64_t e = LoadFixed64(s + 16) * mul, f = LoadFixed64(s + 24);
  const uint64_t g = (y + LoadFixed64(s + n - 32)) * mul;
  const uint64_t h = (z + LoadFixed64(s + n - 24)) * mul;
  return HashPair(RotateRight(e + f, 43) + RotateRight(g, 30) + h, e + RotateRight(f + a, 18) + g,
                  mul);
}

using Pair = std::pair<uint64_t, uint64_t>;

// Mixes 32 bytes and two words into two words.
Pair Mix32(const char* s, uint64_t a, uint64_t b) {
  const uint64_t w = LoadFixed64(s), x = LoadFixed64(s + 8), y = LoadFixed64(s + 16),
                 z = LoadFixed64(s + 24);
  a += w;
  b = RotateRight(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += RotateRight(a, 44);
  return {a + z, b + c};
}

// The state for long strings. `mul` is k1 except in the last block, where two more factors differ.
struct State {
  uint64_t x, y, z;
  Pair v, w;

  void Block(const char* s, uint64_t mul, uint64_t w_factor, uint64_t v_factor) {
    x = RotateRight(x + y + v.first + LoadFixed64(s + 8), 37) * mul;
    y = RotateRight(y + v.second + LoadFixed64(s + 48), 42) * mul;
    x ^= w.second * w_factor;
    y += v.first * v_factor + LoadFixed64(s + 40);
    z = RotateRight(z + w.first, 33) * mul;
    v = Mix32(s, v.second * mul, x + w.first);
    w = Mix32(s + 32, z + w.second, y + LoadFixed64(s + 16));
    std::swap(z, x);
  }
};

uint64_t HashLong(const char* s, uint64_t n) {
  constexpr uint64_t kSeed = 81;
  State state;
  state.y = kSeed * k1 + 113;
  state.z = ShiftMix(state.y * k2 + 113) * k2;
  state.x = kSeed * k2 + LoadFixed64(s);
  const char* const last = s + n - 64;
  const uint64_t tail = (n - 1) & 63;
  for (const char* const end = s + (n - 1) / 64 * 64; s != end; s += 64) state.Block(s, k1, 1, 1);
  const uint64_t mul = k1 + ((state.z & 0xff) << 1);
  state.w.first += tail;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.Block(last, mul, 9, 9);
  return HashPair(HashPair(state.v.first, state.w.first, mul) + ShiftMix(state.y) * k0 + state.z,
                  HashPair(state.v.second, state.w.second, mul) + state.x, mul);
}

// ---- 128 bits
//
// FarmHash's Fingerprint128 is CityHash128 (Pike and Alakuijala, 2011). The first 16 bytes, if
// there are so many, are the seed. Up to 127 further bytes go through a Murmur-like loop of four
// words; more of them in blocks of 128, and the rest in steps of 32 from the end, which may overlap
// them.

uint64_t HashPair(uint64_t u, uint64_t v) {
  constexpr uint64_t kMul = 0x9ddfea08eb382d69;
  return HashPair(u, v, kMul);
}

Pair HashShort128(const char* s, uint64_t n, Pair seed) {
  auto [a, b] = seed;
  uint64_t c = 0, d = 0;
  if (n <= 16) {
    a = ShiftMix(a * k1) * k1;
    c = b * k1 + HashUpTo16(s, n);
    d = ShiftMix(a + (n >= 8 ? LoadFixed64(s) : c));
  } else {
    c = HashPair(LoadFixed64(s + n - 8) + k1, a);
    d = HashPair(b + n, c + LoadFixed64(s + n - 16));
    a += d;
    for (const char* const end = s + n - 16; s < end; s += 16) {
      a = (a ^ ShiftMix(LoadFixed64(s) * k1) * k1) * k1;
      b ^= a;
      c = (c ^ ShiftMix(LoadFixed64(s + 8) * k1) * k1) * k1;
      d ^= c;
    }
  }
  a = HashPair(a, c);
  b = HashPair(d, b);
  return {a ^ b, HashPair(b, a)};
}

Pair HashLong128(const char* s, uint64_t n, Pair seed) {
  State t;
  t.x = seed.first;
  t.y = seed.second;
  t.z = n * k1;
  t.v.first = RotateRight(t.y ^ k1, 49) * k1 + LoadFixed64(s);
  t.v.second = RotateRight(t.v.first, 42) * k1 + LoadFixed64(s + 8);
  t.w.first = RotateRight(t.y + t.z, 35) * k1 + t.x;
  t.w.second = RotateRight(t.x + LoadFixed64(s + 88), 53) * k1;
  for (; n >= 128; n -= 128, s += 128) {
    t.Block(s, k1, 1, 1);
    t.Block(s + 64, k1, 1, 1);
  }
  t.x += RotateRight(t.v.first + t.z, 49) * k0;
  t.y = t.y * k0 + RotateRight(t.w.second, 37);
  t.z = t.z * k0 + RotateRight(t.w.first, 27);
  t.w.first *= 9;
  t.v.first *= k0;
  for (uint64_t done = 0; done < n;) {
    done += 32;
    const char* const at = s + n - done;
    t.y = RotateRight(t.x + t.y, 42) * k0 + t.v.second;
    t.w.first += LoadFixed64(at + 16);
    t.x = t.x * k0 + t.w.first;
    t.z += t.w.second + LoadFixed64(at);
    t.w.second += t.v.first;
    t.v = Mix32(at, t.v.first + t.z, t.v.second);
    t.v.first *= k0;
  }
  t.x = HashPair(t.x, t.v.first);
  t.y = HashPair(t.y + t.z, t.w.first);
  return {HashPair(t.x + t.v.second, t.w.second) + t.y,
          HashPair(t.x + t.w.second, t.y + t.v.second)};
}

// Returns the last up to seven bytes as the low bytes of a word.
uint64_t LoadTail(const char* s, size_t n) {
  uint64_t word = 0;
  for (size_t i = 0; i < n; ++i) {
    word |= static_cast<uint64_t>(static_cast<uint8_t>(s[i])) << (8 * i);
  }
  return word;
}

}  // namespace

uint64_t Fingerprint64(absl::string_view bytes) {
  const char* const s = bytes.data();
  const uint64_t n = bytes.size();
  if (n <= 16) return HashUpTo16(s, n);
  if (n <= 32) return HashUpTo32(s, n);
  if (n <= 64) return HashUpTo64(s, n);
  return HashLong(s, n);
}

std::pair<uint64_t, uint64_t> Fingerprint128(absl::string_view bytes) {
  const char* s = bytes.data();
  uint64_t n = bytes.size();
  Pair seed = {k0, k1};
  if (n >= 16) {
    seed = {LoadFixed64(s), LoadFixed64(s + 8) + k0};
    s += 16;
    n -= 16;
  }
  return n < 128 ? HashShort128(s, n, seed) : HashLong128(s, n, seed);
}

uint64_t MurmurHash64(absl::string_view bytes) { return SeededMurmurHash64(bytes, kMurmurSeed); }

uint64_t SeededMurmurHash64(absl::string_view bytes, uint64_t seed) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  const auto mix = [](uint64_t v) { return v ^ (v >> 47); };
  const char* s = bytes.data();
  size_t n = bytes.size();
  uint64_t h = seed ^ (n * kMul);
  for (; n >= 8; n -= 8, s += 8) h = (h ^ (mix(LoadFixed64(s) * kMul) * kMul)) * kMul;
  if (n > 0) h = (h ^ LoadTail(s, n)) * kMul;
  return mix(mix(h) * kMul);
}

// SipHash-2-4 by Jean-Philippe Aumasson and Daniel J. Bernstein ("SipHash: a fast short-input PRF",
// 2012). Four words are initialized from the key and the text "somepseudorandomlygeneratedbytes".
// Each eight bytes of input are xored into one of them before two rounds of add, rotate and xor,
// and into another one after them. The last word holds the rest of the input and, in its top byte,
// the length; four more rounds finish it. Without the key, colliding inputs can only be found by
// trial.
uint64_t SipHash(uint64_t key0, uint64_t key1, absl::string_view bytes) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575, v1 = key1 ^ 0x646f72616e646f6d,
           v2 = key0 ^ 0x6c7967656e657261, v3 = key1 ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto absorb = [&](uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const char* s = bytes.data();
  size_t n = bytes.size();
  for (; n >= 8; n -= 8, s += 8) absorb(LoadFixed64(s));
  absorb(LoadTail(s, n) | static_cast<uint64_t>(bytes.size()) << 56);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace weir
