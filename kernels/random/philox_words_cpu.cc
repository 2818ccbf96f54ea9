#include "weir/kernels/random/philox_words.h"

#include <limits>

#include "weir/kernels/lib/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/philox_words_cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Vector lane i computes block i. The rounds are those of Philox::operator(); stores interleave the
// four words of all lanes.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR  // with one lane, the scalar loop computes all blocks

int64_t Blocks(const Philox&, int64_t, uint32_t*) { return 0; }
int64_t UnitFloats(const Philox&, int64_t, float*) { return 0; }

#else

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<uint32_t>;
using V = hn::Vec<D>;

// Computes the 64-bit products of all lanes, as their upper and lower halves.
HWY_INLINE void Multiply(V x, V m, V* high, V* low) {
  const D d;
  const hn::Repartition<uint64_t, D> wide;
  const auto even = hn::MulEven(x, m);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), m);
  *high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  *low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

// Calls store(i, w0, w1, w2, w3) for blocks [i, i + lanes). Returns the number of blocks computed.
template <class Store>
HWY_INLINE int64_t Rounds(const Philox& stream, int64_t blocks, const Store& store) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  const V high2 = hn::Set(d, static_cast<uint32_t>(stream.counter_high()));
  const V high3 = hn::Set(d, static_cast<uint32_t>(stream.counter_high() >> 32));
  const V step = hn::Iota(d, 0);
  int64_t i = 0;
  for (; i + lanes <= blocks; i += lanes) {
    const uint64_t counter = stream.counter_low() + static_cast<uint64_t>(i);
    const V start = hn::Set(d, static_cast<uint32_t>(counter));
    V c0 = hn::Add(start, step);
    const V carry = hn::IfThenElseZero(hn::Lt(c0, start), hn::Set(d, 1));
    V c1 = hn::Add(hn::Set(d, static_cast<uint32_t>(counter >> 32)), carry);
    V c2 = high2, c3 = high3;
    uint32_t k0 = static_cast<uint32_t>(stream.key()),
             k1 = static_cast<uint32_t>(stream.key() >> 32);
    for (int round = 0; round < 10; ++round) {
      V a_high, a_low, b_high, b_low;
      Multiply(c0, m0, &a_high, &a_low);
      Multiply(c2, m1, &b_high, &b_low);
      c0 = hn::Xor(hn::Xor(b_high, c1), hn::Set(d, k0));
      c1 = b_low;
      c2 = hn::Xor(hn::Xor(a_high, c3), hn::Set(d, k1));
      c3 = a_low;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    store(i, c0, c1, c2, c3);
  }
  return i;
}

int64_t Blocks(const Philox& stream, int64_t blocks, uint32_t* out) {
  return Rounds(stream, blocks, [out](int64_t i, V w0, V w1, V w2, V w3) HWY_ATTR {
    hn::StoreInterleaved4(w0, w1, w2, w3, D(), out + 4 * i);
  });
}

int64_t UnitFloats(const Philox& stream, int64_t blocks, float* out) {
  return Rounds(stream, blocks, [out](int64_t i, V w0, V w1, V w2, V w3) HWY_ATTR {
    const D d;
    const hn::Repartition<float, D> f;
    const auto unit = [&](V w) HWY_ATTR {
      const V bits = hn::Or(hn::And(w, hn::Set(d, 0x7fffffu)), hn::Set(d, 0x3f800000u));
      return hn::Sub(hn::BitCast(f, bits), hn::Set(f, 1.0f));
    };
    hn::StoreInterleaved4(unit(w0), unit(w1), unit(w2), unit(w3), f, out + 4 * i);
  });
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(Blocks);
HWY_EXPORT(UnitFloats);

namespace {

// The vectors do not carry into the counter's upper half; a carry happens once in 2^64 blocks.
bool Carries(const Philox& stream, int64_t blocks) {
  return stream.counter_low() >
         std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(blocks);
}

// The tail loop computes the remaining blocks one by one.
template <class T, class Convert>
void TailBlocks(Philox stream, int64_t done, int64_t blocks, T* out, const Convert& convert) {
  stream.Skip(static_cast<uint64_t>(done));
  for (int64_t i = done; i < blocks; ++i) {
    uint32_t block[4];
    stream(block);
    for (int j = 0; j < 4; ++j) out[4 * i + j] = convert(block[j]);
  }
}

}  // namespace

void PhiloxBlocks(const Philox& stream, int64_t blocks, uint32_t* out) {
  const int64_t done =
      Carries(stream, blocks) ? 0 : HWY_DYNAMIC_DISPATCH(Blocks)(stream, blocks, out);
  TailBlocks(stream, done, blocks, out, [](uint32_t x) { return x; });
}

void PhiloxUnitFloats(const Philox& stream, int64_t blocks, float* out) {
  const int64_t done =
      Carries(stream, blocks) ? 0 : HWY_DYNAMIC_DISPATCH(UnitFloats)(stream, blocks, out);
  TailBlocks(stream, done, blocks, out, [](uint32_t x) { return UnitFloat(x); });
}

}  // namespace weir
#endif  // HWY_ONCE
