#ifndef WEIR_KERNELS_QUANTIZE_FIXED_POINT_MAP_H_
#define WEIR_KERNELS_QUANTIZE_FIXED_POINT_MAP_H_

#include <cstdint>

namespace weir {

// An affine map from 32-bit integers to bytes, in fixed-point arithmetic with 16 fraction bits:
//
//   y = clamp((x * scale / 2^32 + offset) / 2^16, 0, 255)
//
// where divisions round down and no intermediate result overflows. This is how TensorFlow
// requantizes to quint8 (kernels/meta_support.cc). Immutable.
class FixedPointMap {
 public:
  // `scale` is in [-2^62, 2^62], `offset` in [-2^64, 2^64].
  FixedPointMap(int64_t scale, __int128 offset);

  // y[i] = the map of x[i] for i < n, with vectors.
  void Apply(const int32_t* x, int64_t n, uint8_t* y) const;

 private:
  // The products of the halves of `scale` and x, and the offset, are computed modulo 2^32 where the
  // sum fits 24 bits: for x in [first_inside_, first_above_). Below and above, y is constant.
  int32_t scale_low_, scale_high_, offset_;
  int64_t first_inside_, first_above_;
  uint8_t below_, above_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_QUANTIZE_FIXED_POINT_MAP_H_
