#ifndef WEIR_KERNELS_NN_PADDED_IMAGES_H_
#define WEIR_KERNELS_NN_PADDED_IMAGES_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

// What FusedPadConv2D and FusedResizeAndPadConv2D do to images before they convolve them.
struct PaddedImageOptions {
  bool resizes = false;  // bilinearly, to the size in input 1; the other inputs follow
  bool align_corners = false;
  int offset = 0;  // 1: mirrors the borders without their first pixels (REFLECT); 0: with them

  static PaddedImageOptions Read(const Node& node);
  int paddings_input() const { return resizes ? 2 : 1; }
  int filter_input() const { return resizes ? 3 : 2; }
};

// Returns the images at input 0, resized and padded: [batch, height, width, channels] of type T.
// INVALID_ARGUMENT, with TensorFlow's message, if sizes or paddings are not valid.
template <class T>
absl::StatusOr<Tensor> ReadPaddedImages(KernelContext& ctx, const PaddedImageOptions& options);

}  // namespace weir

#endif  // WEIR_KERNELS_NN_PADDED_IMAGES_H_
