#include "weir/kernels/array/reverse_lines.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/array/reverse_lines.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway reverses lanes of two bytes and more: pairs of bytes are reversed, then each in itself.
template <class D>
HWY_INLINE hn::Vec<D> Reversed(D d, hn::Vec<D> v) {
  if constexpr (sizeof(hn::TFromD<D>) > 1) {
    return hn::Reverse(d, v);
  } else if constexpr (hn::MaxLanes(D()) == 1) {
    return v;
  } else {
    const hn::Repartition<uint16_t, D> pairs;
    const auto reversed = hn::Reverse(pairs, hn::BitCast(pairs, v));
    return hn::BitCast(d, hn::Or(hn::ShiftLeft<8>(reversed), hn::ShiftRight<8>(reversed)));
  }
}

// Pixels that are one lane each.
template <class T>
void ReverseLanes(const T* HWY_RESTRICT from, int64_t n, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(Reversed(d, hn::LoadU(d, from + n - lanes - i)), d, to + i);
  }
  for (; i < n; ++i) to[i] = from[n - 1 - i];
}

// Pixels of three elements: separates the channels and reverses each.
template <class T>
void ReverseTriples(const T* HWY_RESTRICT from, int64_t n, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> a, b, c;
    hn::LoadInterleaved3(d, from + 3 * (n - lanes - i), a, b, c);
    hn::StoreInterleaved3(Reversed(d, a), Reversed(d, b), Reversed(d, c), d, to + 3 * i);
  }
  for (; i < n; ++i) std::memcpy(to + 3 * i, from + 3 * (n - 1 - i), 3 * sizeof(T));
}

// Pixels of 16 bytes.
void ReverseBlocks(const uint8_t* HWY_RESTRICT from, int64_t n, uint8_t* HWY_RESTRICT to) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + 16 * i, from + 16 * (n - 1 - i), 16);
}

template <class T>
void ReverseAs(int64_t channels, const void* from, int64_t n, void* to) {
  if (channels == 3) return ReverseTriples(static_cast<const T*>(from), n, static_cast<T*>(to));
  ReverseLanes(static_cast<const T*>(from), n, static_cast<T*>(to));
}

void ReversePixels(size_t size, const void* from, int64_t n, void* to) {
  if (size == 16) {
    return ReverseBlocks(static_cast<const uint8_t*>(from), n, static_cast<uint8_t*>(to));
  }
  const int64_t channels = size % 3 == 0 ? 3 : 1;
  switch (size / channels) {
    case 1:
      return ReverseAs<uint8_t>(channels, from, n, to);
    case 2:
      return ReverseAs<uint16_t>(channels, from, n, to);
    case 4:
      return ReverseAs<uint32_t>(channels, from, n, to);
    default:
      return ReverseAs<uint64_t>(channels, from, n, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(ReversePixels);

bool CanReverse(size_t size) {
  for (const size_t known : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    if (size == known) return true;
  }
  return false;
}

void ReverseLine(size_t size, const void* from, int64_t n, void* to) {
  HWY_DYNAMIC_DISPATCH(ReversePixels)(size, from, n, to);
}

}  // namespace weir
#endif  // HWY_ONCE
