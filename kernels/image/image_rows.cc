#include "weir/kernels/image/image_rows.h"

#include <algorithm>
#include <type_traits>

#include "weir/kernels/image/image.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/image/image_rows.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir::image_rows {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether elements of type T are converted to vectors of V; others are converted one by one.
template <class T, class V>
inline constexpr bool kInVectors = std::is_same_v<T, V> ||
                                   (std::is_same_v<V, float> && std::is_integral_v<T> &&
                                    sizeof(T) <= sizeof(int32_t));

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadAs(D d, const T* x) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return hn::LoadU(d, x);
  } else {
    const hn::Rebind<int32_t, D> ints;
    if constexpr (sizeof(T) == sizeof(int32_t)) {
      return hn::ConvertTo(d, hn::LoadU(ints, x));
    } else {
      return hn::ConvertTo(d, hn::PromoteTo(ints, hn::LoadU(hn::Rebind<T, D>(), x)));
    }
  }
}

template <class D>
HWY_INLINE hn::Vec<D> Between(hn::Vec<D> low, hn::Vec<D> high, hn::Vec<D> fraction) {
  return hn::Add(low, hn::Mul(hn::Sub(high, low), fraction));
}
inline float Between(float low, float high, float fraction) {
  return low + (high - low) * fraction;
}

template <class T>
void WidenRow(const T* HWY_RESTRICT row, int64_t n, float* HWY_RESTRICT out) {
  int64_t i = 0;
  if constexpr (kInVectors<T, float>) {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) hn::StoreU(LoadAs(d, row + i), d, out + i);
  }
  for (; i < n; ++i) out[i] = static_cast<float>(row[i]);
}

// A vector of pixels of one channel at a time.
void LerpGray(const Lerp& columns, const float* HWY_RESTRICT row, float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> ints;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = columns.size();
  int64_t x = 0;
  for (; x + lanes <= width; x += lanes) {
    const auto low = hn::GatherIndex(d, row, hn::LoadU(ints, columns.low.data() + x));
    const auto high = hn::GatherIndex(d, row, hn::LoadU(ints, columns.high.data() + x));
    const auto fraction = hn::LoadU(d, columns.fraction.data() + x);
    hn::StoreU(Between<decltype(d)>(low, high, fraction), d, out + x);
  }
  for (; x < width; ++x) {
    out[x] = Between(row[columns.low[x]], row[columns.high[x]], columns.fraction[x]);
  }
}

void LerpAlong(const Lerp& columns, int64_t channels, const float* HWY_RESTRICT row,
               float* HWY_RESTRICT out) {
  if (channels == 1) return LerpGray(columns, row, out);
  const hn::CappedTag<float, 4> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = columns.size();
  for (int64_t x = 0; x < width; ++x, out += channels) {
    const float* const low = row + columns.low[x] * channels;
    const float* const high = row + columns.high[x] * channels;
    const auto fraction = hn::Set(d, columns.fraction[x]);
    for (int64_t c = 0; c < channels; c += lanes) {
      hn::StoreU(Between<decltype(d)>(hn::LoadU(d, low + c), hn::LoadU(d, high + c), fraction), d,
                 out + c);
    }
  }
}

void LerpAcross(const float* HWY_RESTRICT top, const float* HWY_RESTRICT bottom, float fraction,
                int64_t n, float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, fraction);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(Between<decltype(d)>(hn::LoadU(d, top + i), hn::LoadU(d, bottom + i), f), d,
               out + i);
  }
  for (; i < n; ++i) out[i] = Between(top[i], bottom[i], fraction);
}

// The four pixels around a position, and where it is between them.
struct Corners {
  const float *top_left, *top_right, *bottom_left, *bottom_right;
  float x, y;
};

// Interpolates channels from `begin` on in whole vectors; returns the channel after the last.
template <class D>
HWY_INLINE int64_t LerpChannels(D d, const Corners& k, int64_t begin, int64_t channels, bool stream,
                                float* HWY_RESTRICT out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto x = hn::Set(d, k.x), y = hn::Set(d, k.y);
  int64_t c = begin;
  for (; c + lanes <= channels; c += lanes) {
    const auto top = Between<D>(hn::LoadU(d, k.top_left + c), hn::LoadU(d, k.top_right + c), x);
    const auto bottom =
        Between<D>(hn::LoadU(d, k.bottom_left + c), hn::LoadU(d, k.bottom_right + c), x);
    const auto value = Between<D>(top, bottom, y);
    if (stream) {
      hn::Stream(value, d, out + c);
    } else {
      hn::StoreU(value, d, out + c);
    }
  }
  return c;
}

void LerpBoth(const Lerp& columns, int64_t channels, const float* HWY_RESTRICT top,
              const float* HWY_RESTRICT bottom, float fraction, bool stream,
              float* HWY_RESTRICT out) {
  for (int64_t x = 0; x < columns.size(); ++x, out += channels) {
    const int64_t low = columns.low[x] * channels, high = columns.high[x] * channels;
    const Corners k = {top + low,     top + high,          bottom + low,
                       bottom + high, columns.fraction[x], fraction};
    int64_t c = LerpChannels(hn::ScalableTag<float>(), k, 0, channels, stream, out);
    c = LerpChannels(hn::CappedTag<float, 4>(), k, c, channels, false, out);
    for (; c < channels; ++c) {
      out[c] = Between(Between(k.top_left[c], k.top_right[c], k.x),
                       Between(k.bottom_left[c], k.bottom_right[c], k.x), k.y);
    }
  }
}

// Adds multiples of channels from `begin` on, in whole vectors, to two pixels, which may be the
// same; returns the channel after the last.
template <class D>
HWY_INLINE int64_t AddChannels(D d, const float* HWY_RESTRICT grads, float low_weight,
                               float high_weight, int64_t begin, int64_t channels, float* low,
                               float* high) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto to_low = hn::Set(d, low_weight), to_high = hn::Set(d, high_weight);
  int64_t c = begin;
  for (; c + lanes <= channels; c += lanes) {
    const auto grad = hn::LoadU(d, grads + c);
    hn::StoreU(hn::Add(hn::LoadU(d, low + c), hn::Mul(to_low, grad)), d, low + c);
    hn::StoreU(hn::Add(hn::LoadU(d, high + c), hn::Mul(to_high, grad)), d, high + c);
  }
  return c;
}

void AddAlong(const Lerp& columns, int64_t channels, const float* HWY_RESTRICT grads, float weight,
              float* row) {
  for (int64_t x = 0; x < columns.size(); ++x, grads += channels) {
    float* const low = row + columns.low[x] * channels;
    float* const high = row + columns.high[x] * channels;
    const float low_weight = weight * (1 - columns.fraction[x]),
                high_weight = weight * columns.fraction[x];
    int64_t c = AddChannels(hn::ScalableTag<float>(), grads, low_weight, high_weight, 0, channels,
                            low, high);
    c = AddChannels(hn::CappedTag<float, 4>(), grads, low_weight, high_weight, c, channels, low,
                    high);
    for (; c < channels; ++c) {
      low[c] += low_weight * grads[c];
      high[c] += high_weight * grads[c];
    }
  }
}

// Calls add(k) for k from begin to end, in order.
template <class F>
HWY_INLINE void ForTaps(int64_t begin, int64_t end, const F& add) {
  int64_t k = begin;
  for (; k + 4 <= end; k += 4) {
    add(k);
    add(k + 1);
    add(k + 2);
    add(k + 3);
  }
  for (; k < end; ++k) add(k);
}

template <class T, class V>
void Mix(const T* HWY_RESTRICT image, int64_t n, const int32_t* HWY_RESTRICT indices,
         const float* HWY_RESTRICT weights, int64_t taps, V* HWY_RESTRICT out) {
  int64_t i = 0;
  if constexpr (kInVectors<T, V>) {
    const hn::ScalableTag<V> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) {
      auto sum = hn::Zero(d);
      ForTaps(0, taps, [&](int64_t k) HWY_ATTR {
        const auto weight = hn::Set(d, static_cast<V>(weights[k]));
        sum = hn::Add(sum, hn::Mul(weight, LoadAs(d, image + indices[k] * n + i)));
      });
      hn::StoreU(sum, d, out + i);
    }
  }
  for (; i < n; ++i) {
    V sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      sum += static_cast<V>(weights[k]) *
             static_cast<V>(static_cast<float>(image[indices[k] * n + i]));
    }
    out[i] = sum;
  }
}

// The taps of one pixel, as pointers that stores to the result do not change.
struct PixelTaps {
  const int32_t* indices;
  const float* weights;
  int64_t count;
};
HWY_INLINE PixelTaps TapsOf(const int64_t* begins, const Taps& columns, int64_t x) {
  return {columns.indices.data() + begins[x], columns.weights.data() + begins[x],
          begins[x + 1] - begins[x]};
}

// The weighted sum of a vector of channels, those from `row` on.
template <class D>
HWY_INLINE hn::Vec<D> SumTaps(D d, const PixelTaps& taps, int64_t channels,
                              const hn::TFromD<D>* row) {
  auto sum = hn::Zero(d);
  ForTaps(0, taps.count, [&](int64_t k) HWY_ATTR {
    const auto weight = hn::Set(d, static_cast<hn::TFromD<D>>(taps.weights[k]));
    sum = hn::Add(sum, hn::Mul(weight, hn::LoadU(d, row + taps.indices[k] * channels)));
  });
  return sum;
}

// Pixels of at most a vector D.
template <class D, class V>
HWY_INLINE void MixFew(D d, const Taps& columns, int64_t channels, const V* HWY_RESTRICT row,
                       V* HWY_RESTRICT out) {
  const int64_t* const begins = columns.begins.data();
  const int64_t width = columns.size();
  for (int64_t x = 0; x + 1 < width; ++x, out += channels) {
    hn::StoreU(SumTaps(d, TapsOf(begins, columns, x), channels, row), d, out);
  }
  HWY_ALIGN V last[hn::MaxLanes(d)];  // a whole vector might reach beyond the end
  hn::Store(SumTaps(d, TapsOf(begins, columns, width - 1), channels, row), d, last);
  std::copy_n(last, channels, out);
}

template <class V>
void MixMany(const Taps& columns, int64_t channels, const V* HWY_RESTRICT row,
             V* HWY_RESTRICT out) {
  const hn::ScalableTag<V> d;
  const hn::CappedTag<V, 4> few;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)),
                step = static_cast<int64_t>(hn::Lanes(few));
  for (int64_t x = 0; x < columns.size(); ++x, out += channels) {
    const PixelTaps taps = TapsOf(columns.begins.data(), columns, x);
    int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) {
      hn::StoreU(SumTaps(d, taps, channels, row + c), d, out + c);
    }
    for (; c + step <= channels; c += step) {
      hn::StoreU(SumTaps(few, taps, channels, row + c), few, out + c);
    }
    for (; c < channels; ++c) {
      out[c] = hn::GetLane(SumTaps(hn::CappedTag<V, 1>(), taps, channels, row + c));
    }
  }
}

template <class V>
void MixAlong(const Taps& columns, int64_t channels, const V* HWY_RESTRICT row,
              V* HWY_RESTRICT out) {
  const hn::CappedTag<V, 4> four;
  if (channels == 1) return MixFew(hn::CappedTag<V, 1>(), columns, channels, row, out);
  if (channels <= static_cast<int64_t>(hn::Lanes(four))) {
    return MixFew(four, columns, channels, row, out);
  }
  MixMany(columns, channels, row, out);
}

// The elements of images, by type.
void WidenAny(DataType type, const void* row, int64_t n, float* out) {
  DispatchType(type, PixelTypes{},
               [&]<class T>() { WidenRow(static_cast<const T*>(row), n, out); });
}
void MixAny(DataType type, const void* image, int64_t n, const int32_t* indices,
            const float* weights, int64_t taps, float* out) {
  DispatchType(type, PixelTypes{}, [&]<class T>() {
    Mix(static_cast<const T*>(image), n, indices, weights, taps, out);
  });
}
void MixDoubles(const float* image, int64_t n, const int32_t* indices, const float* weights,
                int64_t taps, double* out) {
  Mix(image, n, indices, weights, taps, out);
}
void MixAlongF32(const Taps& columns, int64_t channels, const float* row, float* out) {
  MixAlong(columns, channels, row, out);
}
void MixAlongF64(const Taps& columns, int64_t channels, const double* row, double* out) {
  MixAlong(columns, channels, row, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::image_rows
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::image_rows {

HWY_EXPORT(WidenAny);
HWY_EXPORT(MixAny);
HWY_EXPORT(MixDoubles);
HWY_EXPORT(MixAlongF32);
HWY_EXPORT(MixAlongF64);
HWY_EXPORT(LerpAlong);
HWY_EXPORT(LerpAcross);
HWY_EXPORT(LerpBoth);
HWY_EXPORT(AddAlong);

void Widen(DataType type, const void* row, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(WidenAny)(type, row, n, out);
}

void LerpColumns(const Lerp& columns, int64_t channels, const float* row, float* out) {
  HWY_DYNAMIC_DISPATCH(LerpAlong)(columns, channels, row, out);
}
void LerpRows(const float* top, const float* bottom, float fraction, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(LerpAcross)(top, bottom, fraction, n, out);
}
void LerpPixels(const Lerp& columns, int64_t channels, const float* top, const float* bottom,
                float fraction, bool stream, float* out) {
  HWY_DYNAMIC_DISPATCH(LerpBoth)(columns, channels, top, bottom, fraction, stream, out);
}

void AddToColumns(const Lerp& columns, int64_t channels, const float* grads, float weight,
                  float* row) {
  HWY_DYNAMIC_DISPATCH(AddAlong)(columns, channels, grads, weight, row);
}

void MixRows(DataType type, const void* image, int64_t n, const Taps& rows, int64_t y, float* out) {
  const int64_t begin = rows.begins[y], taps = rows.begins[y + 1] - begin;
  HWY_DYNAMIC_DISPATCH(MixAny)
  (type, image, n, rows.indices.data() + begin, rows.weights.data() + begin, taps, out);
}
void MixRows(DataType, const void* image, int64_t n, const Taps& rows, int64_t y, double* out) {
  const int64_t begin = rows.begins[y], taps = rows.begins[y + 1] - begin;
  HWY_DYNAMIC_DISPATCH(MixDoubles)
  (static_cast<const float*>(image), n, rows.indices.data() + begin, rows.weights.data() + begin,
   taps, out);
}

void MixColumns(const Taps& columns, int64_t channels, const float* row, float* out) {
  HWY_DYNAMIC_DISPATCH(MixAlongF32)(columns, channels, row, out);
}
void MixColumns(const Taps& columns, int64_t channels, const double* row, double* out) {
  HWY_DYNAMIC_DISPATCH(MixAlongF64)(columns, channels, row, out);
}

}  // namespace weir::image_rows
#endif  // HWY_ONCE
