#ifndef WEIR_KERNELS_QUANTIZE_UNIFORM_PRODUCT_H_
#define WEIR_KERNELS_QUANTIZE_UNIFORM_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "weir/kernels/quantize/uniform.h"

// Products and convolutions of uniformly quantized tensors: sums of products of 8-bit integers
// minus their zero points, in 32 bits, that are requantized to the scale of the result. The hybrid
// ops first quantize each row (each image) of a float operand to its own range, and return floats.
namespace weir {

// The left operand: 8-bit integers, with one scale and zero point, or (hybrid) one for each index
// of the batch.
struct UniformLeft {
  const int8_t* data = nullptr;
  UniformParams params;
  Tensor integers, scales, zero_points;  // of a float operand that has been quantized
};

inline const int8_t* UniformIntegers(const Tensor& x) {
  return static_cast<const int8_t*>(x.raw());
}
// Quantizes each row of a tensor [rows, elements].
absl::StatusOr<UniformLeft> QuantizeUniformRows(KernelContext& c, const float* x, int64_t rows,
                                                int64_t elements);
// Returns INVALID_ARGUMENT unless inputs 2 and 3, of the left operand, are scalars.
absl::Status CheckUniformLeft(const KernelContext& c);

// A term of a sum. Sums wrap around.
inline uint32_t UniformProduct(int8_t x, uint32_t x_zero, int8_t y, uint32_t y_zero) {
  return (static_cast<uint32_t>(x) - x_zero) * (static_cast<uint32_t>(y) - y_zero);
}

// What becomes of a sum: an integer of the output's scale, or (hybrid) a float.
struct UniformResult {
  // For quantized results, by output channel.
  std::vector<FixedPointFactor> factors;
  UniformParams params;
  UniformRange range;
  // For floats.
  UniformParams left, right;

  void Write(int32_t sum, int64_t batch, int64_t channel, void* out, int64_t at) const {
    if (factors.empty()) {
      static_cast<float*>(out)[at] =
          static_cast<float>(sum) * left.scale(batch) * right.scale(channel);
    } else {
      static_cast<int32_t*>(out)[at] =
          range.Clamp(int64_t{factors[channel].Multiply(sum)} + params.zero_point(channel));
    }
  }
};

// Reads inputs 6 and 7, the scales and zero points of a result of this shape with `channels` output
// channels.
absl::StatusOr<UniformResult> QuantizedUniformResult(const KernelContext& c,
                                                     const UniformRange& range,
                                                     const UniformParams& left,
                                                     const UniformParams& right, const Shape& shape,
                                                     int64_t axis, int64_t channels);

void AddUniformConvolutionCpu(KernelRegistry* r);  // uniform_convolution_cpu.cc
void AddUniformDotCpu(KernelRegistry* r);          // uniform_dot_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_QUANTIZE_UNIFORM_PRODUCT_H_
