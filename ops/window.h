#ifndef WEIR_OPS_WINDOW_H_
#define WEIR_OPS_WINDOW_H_

#include <string>
#include <vector>

#include "weir/core/shape.h"

// The arithmetic of sliding windows (convolution, pooling), shared by shape rules and kernels.
namespace weir {

class Node;

// Where the dimensions of a tensor in one of TensorFlow's data formats lie.
struct DataLayout {
  int rank = 4;
  int batch = 0;
  int channel = 3;
  int spatial = 1;  // the first of rank - 2 spatial dimensions
  bool channels_first() const { return channel == 1; }
  int num_spatial() const { return rank - 2; }
};
// "NHWC", "NCHW", "NDHWC" or "NCDHW"; INVALID_ARGUMENT for others.
absl::StatusOr<DataLayout> ParseDataFormat(absl::string_view data_format);

// A window that slides along one dimension. Unknown sizes are -1, and then the output is unknown
// too.
struct Window {
  int64_t input = -1;
  int64_t size = -1;  // of the window, without dilation
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_before = 0, pad_after = 0;
  int64_t output = -1;
};

// Computes `output`, and for padding "SAME" and "VALID" the pads:
//   SAME   output = ceil(input / stride); what must be padded is split in halves, the bigger one
//   after VALID  output = ceil((input - extent + 1) / stride), extent = (size - 1) * dilation + 1;
//   no padding EXPLICIT  VALID on the input with the pads that the caller has set
// INVALID_ARGUMENT for a stride, dilation or known size out of range, and when the output would be
// negative.
absl::Status Slide(absl::string_view padding, Window* window);

// The same for a shape rule: unless padding is SAME, a window larger than the padded input is
// INVALID_ARGUMENT. TensorFlow's kernels take one that is larger by less than the stride.
absl::Status SlideInside(absl::string_view padding, Window* window);

// What the attributes `strides`, `dilations` (empty: ones) and `explicit_paddings` of a convolution
// or pooling say of dimension `dim` of its input. The lists must have passed CheckWindowAttrs.
Window WindowAlong(int dim, const std::vector<int64_t>& strides,
                   const std::vector<int64_t>& dilations,
                   const std::vector<int64_t>& explicit_paddings);

// Checks lengths and values of window attributes: strides and dilations positive and (with
// `spatial_only`) 1 in the batch and channel dimensions, explicit paddings given exactly if
// `padding` is EXPLICIT, not negative, zero for batch and channel. INVALID_ARGUMENT, or
// UNIMPLEMENTED where TensorFlow says so, in its words.
absl::Status CheckWindowAttrs(const DataLayout& layout, absl::string_view padding,
                              const std::vector<int64_t>& strides,
                              const std::vector<int64_t>& dilations,
                              const std::vector<int64_t>& explicit_paddings);

// The attributes of a node of the Conv2D, DepthwiseConv2dNative or Conv3D family.
struct ConvAttributes {
  DataLayout layout;
  bool depthwise = false;
  std::string padding;
  std::vector<int64_t> strides, dilations, explicit_paddings;

  // Read and checked.
  static absl::StatusOr<ConvAttributes> Read(const Node& node);
};

}  // namespace weir

#endif  // WEIR_OPS_WINDOW_H_
