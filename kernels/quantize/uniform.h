#ifndef WEIR_KERNELS_QUANTIZE_UNIFORM_H_
#define WEIR_KERNELS_QUANTIZE_UNIFORM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/quantize/quantized_range.h"

// Uniform quantization: an integer q stands for the number (q - zero point) * scale. Scales and
// zero points are scalars, or vectors with one element for each index of the quantization axis. The
// arithmetic is TensorFlow's; where it overflows, ours saturates.
namespace weir {

// The scales and zero points of a tensor.
struct UniformParams {
  const float* scales = nullptr;
  const int32_t* zero_points = nullptr;
  int64_t stride = 0;  // 1 if there is one for each index of the axis

  float scale(int64_t channel) const { return scales[channel * stride]; }
  int32_t zero_point(int64_t channel) const { return zero_points[channel * stride]; }
};

// Reads them from inputs `first` and `first` + 1, for a tensor of this shape that is quantized
// along `axis` (-1: as a whole). Returns INVALID_ARGUMENT if their shapes do not fit.
absl::StatusOr<UniformParams> ReadUniformParams(const KernelContext& c, int first,
                                                const Shape& shape, int64_t axis);
// Returns INVALID_ARGUMENT unless all scales, which are input i, are positive.
absl::Status CheckScales(const KernelContext& c, int i);

// The integers of the result.
struct UniformRange {
  int32_t min = std::numeric_limits<int32_t>::min(), max = std::numeric_limits<int32_t>::max();

  // Reads attributes `prefix`quantization_min_val and `prefix`quantization_max_val.
  static absl::StatusOr<UniformRange> Read(const Node& node, const std::string& prefix);
  int32_t Clamp(int64_t q) const {
    return static_cast<int32_t>(std::max<int64_t>(std::min<int64_t>(q, max), min));
  }
};

inline int32_t SaturateTo32(int64_t q) {
  return static_cast<int32_t>(std::clamp(q, kLowest<qint32>, kHighest<qint32>));
}

// A positive factor as a 32-bit fraction and a shift, and products with it, rounded once.
class FixedPointFactor {
 public:
  FixedPointFactor() = default;
  // INVALID_ARGUMENT unless the factor is positive and finite.
  static absl::StatusOr<FixedPointFactor> Make(double factor);
  int32_t Multiply(int64_t q) const {
    const int64_t product = SaturateTo32(q) * int64_t{fraction_} + (int64_t{1} << (30 - shift_));
    return SaturateTo32(product >> (31 - shift_));
  }

 private:
  int32_t fraction_ = 0;
  int shift_ = 0;  // from -31 to 30
};

// Returns the integer for x: floor(x * inverse_scale + 0.5) + zero_point. NaN becomes the smallest.
inline int32_t QuantizeUniformly(float x, float inverse_scale, int32_t zero_point,
                                 const UniformRange& range) {
  const float q = std::floor(x * inverse_scale + 0.5f);
  if (std::isnan(q)) return range.min;
  return range.Clamp(SaturateTo32(ToInt64(q)) + int64_t{zero_point});
}

void AddUniformCpu(KernelRegistry* r);  // uniform_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_QUANTIZE_UNIFORM_H_
