#include "weir/kernels/quantize/uniform_product.h"

#include <algorithm>
#include <cmath>

namespace weir {

namespace {

// Quantizes n numbers to 8 bits. The range of the integers is that of the numbers and 0; the zero
// point is the one whose rounding error is smaller (TensorFlow Lite's choice).
void QuantizeRow(const float* x, int64_t n, int8_t* out, float* scale, int32_t* zero_point) {
  constexpr double kMin = kLowest<qint8>, kMax = kHighest<qint8>;
  float low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  const double min = low, max = high;
  *scale = static_cast<float>((max - min) / (kMax - kMin));
  const float inverse = max == min ? 0 : static_cast<float>((kMax - kMin) / (max - min));
  if (*scale == 0 || !std::isfinite(*scale) || !std::isfinite(inverse)) {
    std::fill_n(out, n, static_cast<int8_t>(0));
    *scale = 1;
    *zero_point = 0;
    return;
  }
  const double error_of_min = std::abs(kMin) + std::abs(min / *scale);
  const double error_of_max = std::abs(kMax) + std::abs(max / *scale);
  const double zero = error_of_min < error_of_max ? kMin - min / *scale : kMax - max / *scale;
  *zero_point = static_cast<int32_t>(std::round(std::clamp(zero, kMin, kMax)));
  const UniformRange range{static_cast<int32_t>(kMin), static_cast<int32_t>(kMax)};
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<int8_t>(QuantizeUniformly(x[i], inverse, *zero_point, range));
}

}  // namespace

absl::StatusOr<UniformLeft> QuantizeUniformRows(KernelContext& c, const float* x, int64_t rows,
                                                int64_t elements) {
  UniformLeft left;
  WEIR_ASSIGN_OR_RETURN(left.integers, c.AllocateTemp(DT_INT8, Shape({rows, elements})));
  WEIR_ASSIGN_OR_RETURN(left.scales, c.AllocateTemp(DT_FLOAT, Shape({rows})));
  WEIR_ASSIGN_OR_RETURN(left.zero_points, c.AllocateTemp(DT_INT32, Shape({rows})));
  c.pool().ParallelFor(rows, 4.0 * static_cast<double>(elements), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      QuantizeRow(x + i * elements, elements, left.integers.data<int8_t>() + i * elements,
                  left.scales.data<float>() + i, left.zero_points.data<int32_t>() + i);
    }
  });
  left.data = left.integers.data<int8_t>();
  left.params = {left.scales.data<float>(), left.zero_points.data<int32_t>(), 1};
  return left;
}

absl::Status CheckUniformLeft(const KernelContext& c) {
  const Shape &scales = c.input(2).shape(), &zero_points = c.input(3).shape();
  if (scales.rank() == 0 && zero_points.rank() == 0) return absl::OkStatus();
  return InvalidArgument("lhs scales/zero_points must be all scalar tensors. Given: ",
                         scales.ToString(), zero_points.ToString());
}

absl::StatusOr<UniformResult> QuantizedUniformResult(const KernelContext& c,
                                                     const UniformRange& range,
                                                     const UniformParams& left,
                                                     const UniformParams& right, const Shape& shape,
                                                     int64_t axis, int64_t channels) {
  UniformResult result{.range = range};
  WEIR_ASSIGN_OR_RETURN(result.params, ReadUniformParams(c, 6, shape, axis));
  if (right.stride == 0 && result.params.stride != 0) {
    return InvalidArgument(
        "If rhs is per-tensor quantized, output must be also per-tensor quantized. Given output "
        "scales and zero_points of shape ",
        c.input(6).shape().ToString());
  }
  // At least one, since no factors mean a float result.
  result.factors.resize(std::max<int64_t>(1, channels));
  for (int64_t i = 0; i < channels; ++i) {
    const double factor =
        static_cast<double>(left.scale(0)) * right.scale(i) / result.params.scale(i);
    WEIR_ASSIGN_OR_RETURN(result.factors[i], FixedPointFactor::Make(factor));
  }
  return result;
}

}  // namespace weir
