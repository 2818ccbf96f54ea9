#ifndef WEIR_ONNX_WINDOW_H_
#define WEIR_ONNX_WINDOW_H_

#include <optional>
#include <vector>

#include "weir/onnx/node_context.h"

namespace weir::onnx {

// What convolutions and pools say of the windows that slide over the spatial dimensions: all
// dimensions but batch and channels, in their order. Each vector has one number for each.
struct Window {
  int rank() const { return static_cast<int>(kernel.size()); }
  // The size of the window with its dilation.
  int64_t Extent(int i) const { return (kernel[i] - 1) * dilations[i] + 1; }

  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads_begin, pads_end;  // may be negative in a transposed convolution
};

// Reads the attributes kernel_shape, strides, dilations, pads and auto_pad of a node. `kernel` is
// what kernel_shape is if it is not given. INVALID_ARGUMENT for lists of the wrong length and for
// numbers that are not positive; UNIMPLEMENTED if auto_pad needs a size that is not known.
absl::StatusOr<Window> WindowOf(NodeContext& c, const std::vector<int64_t>& kernel);

// Returns {1, 1, ...}: `spatial` in the order of NCHW.
std::vector<int64_t> WithBatchAndChannels(const std::vector<int64_t>& spatial);

// Pads the spatial dimensions of x by `begin` and `end`, which are not negative, with `value`.
Output PadSpatial(const Output& x, const std::vector<int64_t>& begin,
                  const std::vector<int64_t>& end, const Output& value);

}  // namespace weir::onnx

#endif  // WEIR_ONNX_WINDOW_H_
