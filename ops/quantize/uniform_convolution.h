#ifndef WEIR_OPS_QUANTIZE_UNIFORM_CONVOLUTION_H_
#define WEIR_OPS_QUANTIZE_UNIFORM_CONVOLUTION_H_

#include <string>
#include <vector>

#include "weir/core/graph/graph.h"

// Convolutions of uniformly quantized tensors: their attributes and sizes, for shape functions and
// kernels.
namespace weir {

// The positions of the dimensions of a tensor.
struct ConvolutionDimensions {
  int64_t batch = 0, feature = 1;  // of a kernel: its output features and its input features
  std::vector<int64_t> spatial;
};

// A convolution of an input with a kernel. Vectors have one element for each spatial dimension.
struct UniformConvolution {
  ConvolutionDimensions input, kernel, output;
  std::vector<int64_t> strides, input_dilation, kernel_dilation;
  std::vector<int64_t> padding;  // before and after each spatial dimension, alternately
  int64_t batch_groups = 1, feature_groups = 1;
  std::string padding_kind;  // "EXPLICIT", "SAME" or "VALID"

  // Reads the attributes of a node. What they leave out is empty.
  static absl::StatusOr<UniformConvolution> Read(const Node& node);
  // Completes what is left out for operands of these shapes, which are fully defined. Returns
  // INVALID_ARGUMENT if the attributes or the shapes do not fit.
  absl::Status Complete(const Shape& input_shape, const Shape& kernel_shape);
  // Returns the shape of the result. Complete has been called for these shapes.
  absl::StatusOr<Shape> OutputShape(const Shape& input_shape, const Shape& kernel_shape) const;

  // Returns the extent with `dilation` - 1 zeros between the elements.
  static int64_t Dilated(int64_t extent, int64_t dilation) {
    return extent == 0 ? 0 : (extent - 1) * dilation + 1;
  }
};

}  // namespace weir

#endif  // WEIR_OPS_QUANTIZE_UNIFORM_CONVOLUTION_H_
