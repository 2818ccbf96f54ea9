#ifndef WEIR_TOOLS_LIB_IMAGE_VALUE_H_
#define WEIR_TOOLS_LIB_IMAGE_VALUE_H_

#include "weir/core/tensor/tensor.h"

// Images as values of tensors.
namespace weir::tools {

// What black and white are in tensors of floating-point numbers.
struct PixelRange {
  float black = 0, white = 1;
};

// Whether bytes begin as a JPEG, PNG, GIF, BMP or WebP file does.
bool IsImage(absl::string_view bytes);

// Decodes an image for a tensor whose shape may be partly known:
//
//   [height, width]             gray; but [?, 784] and [1, 784] are no images
//   [height, width, channels]   of 1 (gray), 3 (RGB) or 4 channels (with opacity)
//   [channels, height, width]   if the last dimension cannot be the channels, but the first can
//   [batch, ...]                one of these; the frames of an animation, or one image
//   unknown                     [height, width, channels] as in the file
//
// Known dimensions decide: the image is resized as by tf.image.resize (bilinear, without regard to
// its proportions), and its channels are converted: to gray as by tf.image.rgb_to_grayscale, gray
// to RGB by repetition. Unknown ones are those of the file. Without a batch, an animation is its
// first frame.
//
// Values are 0 to 255 for integers (0 to 65535 for uint16), rounded to the nearest, and in
// `pixels` for floating-point numbers.
//
// INVALID_ARGUMENT for a file that cannot be decoded, for other shapes and for dtypes that do not
// have these values; RESOURCE_EXHAUSTED for more pixels than there is memory for.
absl::StatusOr<Tensor> DecodeImageFor(absl::string_view bytes, DataType dtype, const Shape& shape,
                                      const PixelRange& pixels);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_IMAGE_VALUE_H_
