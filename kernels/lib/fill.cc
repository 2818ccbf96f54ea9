#include <cstdint>
#include <cstring>

#include "weir/kernels/lib/strided_copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lib/fill.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Fills memory with one element. Fused nodes expand one number per row into their tiles, a few
// hundred times, so the latency before the first store matters: the element is moved directly to a
// register, not through memory.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE void FillElement(const void* value, void* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T element;
  std::memcpy(&element, value, sizeof element);
  const auto v = hn::Set(d, element);
  T* const to = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    for (int64_t k = 0; k < 4; ++k) hn::StoreU(v, d, to + i + k * lanes);
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(v, d, to + i);
  if (i == n) return;
  if (n >= lanes) return hn::StoreU(v, d, to + n - lanes);
  HWY_ALIGN T rest[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, rest);
  std::memcpy(to, rest, static_cast<size_t>(n) * sizeof(T));
}

void Fill(void* to, const void* value, size_t size, int64_t n) {
  switch (size) {
    case 1:
      return FillElement<uint8_t>(value, to, n);
    case 2:
      return FillElement<uint16_t>(value, to, n);
    case 4:
      return FillElement<uint32_t>(value, to, n);
    case 8:
      return FillElement<uint64_t>(value, to, n);
    default:  // 16
      for (char* out = static_cast<char*>(to); n > 0; --n, out += size)
        std::memcpy(out, value, size);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

namespace {
HWY_EXPORT(Fill);
}  // namespace

void FillElements(void* to, const void* value, size_t size, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Fill)(to, value, size, n);
}

}  // namespace weir
#endif  // HWY_ONCE
