#ifndef WEIR_OPS_LIB_WINDOW_H_
#define WEIR_OPS_LIB_WINDOW_H_

#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/shape.h"

// The arithmetic of sliding windows (convolution, pooling), shared by shape functions and kernels.
namespace WEIR_API weir {

class Node;

// The positions of the dimensions of a tensor in one of TensorFlow's data formats.
struct DataLayout {
  int rank = 4;     // 4 or 5
  int batch = 0;    // position of the batch
  int channel = 3;  // position of the channels
  int spatial = 1;  // the first of rank - 2 spatial dimensions
  // Whether the channels come before the spatial dimensions.
  bool channels_first() const { return channel == 1; }
  // The number of spatial dimensions.
  int num_spatial() const { return rank - 2; }
};
// Parses "NHWC", "NCHW", "NDHWC" or "NCDHW". INVALID_ARGUMENT for other formats.
absl::StatusOr<DataLayout> ParseDataFormat(absl::string_view data_format);

// A window that slides along one dimension. Unknown sizes are -1; the output is then unknown too.
struct Window {
  int64_t input = -1;                     // size of the input
  int64_t size = -1;                      // size of the window without dilation
  int64_t stride = 1;                     // between two windows, in elements of the input
  int64_t dilation = 1;                   // between two elements of a window
  int64_t pad_before = 0, pad_after = 0;  // elements added to the input
  int64_t output = -1;                    // number of windows; set by Slide
};

// Computes `output`, and for padding "SAME" and "VALID" the pads:
//
//   SAME      output = ceil(input / stride); the total padding is split in halves, the larger one
//             after
//   VALID     output = ceil((input - extent + 1) / stride), extent = (size - 1) * dilation + 1;
//             no padding
//   EXPLICIT  VALID on the input with the pads that the caller has set
//
// INVALID_ARGUMENT for a stride, dilation or known size out of range, and if the output would be
// negative.
absl::Status Slide(absl::string_view padding, Window* window);

// Does the same for a shape function: unless padding is SAME, a window larger than the padded input
// is INVALID_ARGUMENT. TensorFlow's kernels accept a window that exceeds it by less than the
// stride.
absl::Status SlideInside(absl::string_view padding, Window* window);

// Returns the window along dimension `dim` of the input, from the attributes `strides`, `dilations`
// (empty: ones) and `explicit_paddings` of a convolution or pooling op. The lists must have passed
// CheckWindowAttrs.
Window WindowAlong(int dim, const std::vector<int64_t>& strides,
                   const std::vector<int64_t>& dilations,
                   const std::vector<int64_t>& explicit_paddings);

// Checks lengths and values of window attributes: strides and dilations are positive and (with
// `spatial_only`) 1 in the batch and channel dimensions; explicit paddings are given exactly if
// `padding` is EXPLICIT, are not negative, and are zero for batch and channel. Returns
// INVALID_ARGUMENT, or UNIMPLEMENTED where TensorFlow does, with TensorFlow's text.
absl::Status CheckWindowAttrs(const DataLayout& layout, absl::string_view padding,
                              const std::vector<int64_t>& strides,
                              const std::vector<int64_t>& dilations,
                              const std::vector<int64_t>& explicit_paddings);

// The attributes of a node of the Conv2D, DepthwiseConv2dNative or Conv3D family.
struct ConvAttributes {
  DataLayout layout;       // from data_format
  bool depthwise = false;  // whether each channel has its own filter
  std::string padding;     // "SAME", "VALID" or "EXPLICIT"
  // One per dimension; explicit_paddings: two.
  std::vector<int64_t> strides, dilations, explicit_paddings;

  // Reads and checks the attributes.
  static absl::StatusOr<ConvAttributes> Read(const Node& node);
};

}  // namespace weir

#endif  // WEIR_OPS_LIB_WINDOW_H_
