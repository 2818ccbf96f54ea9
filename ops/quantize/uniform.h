#ifndef WEIR_OPS_QUANTIZE_UNIFORM_H_
#define WEIR_OPS_QUANTIZE_UNIFORM_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Uniform quantization, as StableHLO and TensorFlow Lite define it: an integer q stands for the
// number (q - zero point) * scale.
namespace WEIR_API weir {

// How the integers of a tensor represent numbers.
struct UniformQuantization {
  // The scales (float, positive) and the zero points (int32): scalars, or one for each index of the
  // axis.
  Output scales, zero_points;
  int64_t axis = -1;  // the quantization axis; -1: the whole tensor
  // The smallest and the largest integer in use.
  int64_t min_val = std::numeric_limits<int32_t>::min();
  int64_t max_val = std::numeric_limits<int32_t>::max();
};

// Quantizes floats to qint8, quint8 or qint32: floor(input / scale + 0.5) + zero point, clamped.
Output UniformQuantize(Output input, const UniformQuantization& q, DataType type,
                       absl::string_view name = {});
// Converts integers (qint8, quint8 or qint32) back to float.
Output UniformDequantize(Output input, const UniformQuantization& q, absl::string_view name = {});
// Converts integers (qint8 or qint32) of one quantization to qint8 of another one, in fixed-point
// arithmetic. If both have an axis, it is the same one.
Output UniformRequantize(Output input, const UniformQuantization& from,
                         const UniformQuantization& to, absl::string_view name = {});

// Returns the sum of qint32 tensors, which broadcast. The axes are -1 or the same dimension of the
// result.
Output UniformQuantizedAdd(Output lhs, const UniformQuantization& lhs_q, Output rhs,
                           const UniformQuantization& rhs_q, const UniformQuantization& output_q,
                           absl::string_view name = {});
// Clamps qint32; `min` and `max` have the shape of the scales.
Output UniformQuantizedClipByValue(Output operand, Output min, Output max,
                                   const UniformQuantization& q, absl::string_view name = {});

// Returns the product of qint8 matrices as qint32. The left one is quantized as a whole, the others
// as a whole or by column (axis 1).
Output UniformQuantizedDot(Output lhs, const UniformQuantization& lhs_q, Output rhs,
                           const UniformQuantization& rhs_q, const UniformQuantization& output_q,
                           absl::string_view name = {});
// Quantizes each row of a float matrix to 8 bits of its own range, and returns the product with a
// qint8 matrix as floats.
Output UniformQuantizedDotHybrid(Output lhs, Output rhs, const UniformQuantization& rhs_q,
                                 absl::string_view name = {});

// Options of convolutions. Empty lists mean 1 for each spatial dimension.
struct UniformConvolutionOptions {
  std::vector<int64_t> window_strides;    // of the output, in elements of the padded input
  std::string padding = "VALID";          // or SAME, EXPLICIT
  std::vector<int64_t> explicit_padding;  // before and after each spatial dimension, alternately
  std::vector<int64_t> lhs_dilation, rhs_dilation;  // distances of elements that are neighbors
  // The convolution is split into groups of images, or of input features.
  int64_t batch_group_count = 1, feature_group_count = 1;
  // A serialized UniformQuantizedConvolutionDimensionNumbersAttr. Empty: [batch, feature, spatial
  // dimensions], and [output feature, input feature, spatial dimensions] for the kernel.
  std::string dimension_numbers;
};
// Returns the convolution of qint8 tensors as qint32. The input is quantized as a whole, the others
// as a whole or by output feature.
Output UniformQuantizedConvolution(Output lhs, const UniformQuantization& lhs_q, Output rhs,
                                   const UniformQuantization& rhs_q,
                                   const UniformQuantization& output_q,
                                   const UniformConvolutionOptions& options = {},
                                   absl::string_view name = {});
// Quantizes each image of a float batch to 8 bits of its own range, and returns the convolution
// with a qint8 kernel as floats.
Output UniformQuantizedConvolutionHybrid(Output lhs, Output rhs, const UniformQuantization& rhs_q,
                                         const UniformConvolutionOptions& options = {},
                                         absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_QUANTIZE_UNIFORM_H_
