#ifndef WEIR_OPS_IMAGE_IMAGE_H_
#define WEIR_OPS_IMAGE_IMAGE_H_

#include <limits>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// TensorFlow's image ops. Each builder adds the node of the op of that name; the last argument is
// the name. Images are [batch, height, width, channels]; a single image is [height, width,
// channels].
namespace WEIR_API weir {

// ---- files. `contents` is a string scalar. Each decoder accepts JPEG, PNG and GIF (DecodeBmp: BMP
// only) and returns uint8 unless stated otherwise.

struct DecodeJpegOptions {
  int channels = 0;  // 1: gray, 3: RGB, 0: as in the file
  int ratio = 1;     // downscaling factor: 1, 2, 4 or 8
  // Smooth chroma; decode what a truncated file has.
  bool fancy_upscaling = true, try_recover_truncated = false;
  float acceptable_fraction = 1;  // minimum fraction of the lines that must be present
  std::string dct_method = {};    // "INTEGER_FAST" or "INTEGER_ACCURATE"
};
// Returns [height, width, channels]. INVALID_ARGUMENT at run time for files that cannot be decoded,
// as for all decoders.
Output DecodeJpeg(Output contents, const DecodeJpegOptions& options = {},
                  absl::string_view name = {});
// `dtype` is uint8 or uint16.
Output DecodePng(Output contents, int channels = 0, DataType dtype = DT_UINT8,
                 absl::string_view name = {});
Output DecodeBmp(Output contents, int channels = 0, absl::string_view name = {});
// Returns [frames, height, width, 3].
Output DecodeGif(Output contents, absl::string_view name = {});
// Returns [frames, height, width, channels]. `channels` is that of the file, 3 or 4, or 0;
// animations have 4.
Output DecodeWebp(Output contents, int channels = 0, absl::string_view name = {});
// Decodes any of the formats. `dtype` is uint8, uint16, or float (in [0, 1]); WebP files are uint8.
// With `expand_animations` a GIF or WebP file has rank 4.
Output DecodeImage(Output contents, int channels = 0, DataType dtype = DT_UINT8,
                   bool expand_animations = true, absl::string_view name = {});
Output EncodeJpeg(Output image, int quality = 95, absl::string_view name = {});
// Encodes uint8 or uint16 images with 1 to 4 channels. `compression` is 0 to 9, or -1 for the
// default.
Output EncodePng(Output image, int compression = -1, absl::string_view name = {});

// ---- resizing. `size` is {height, width}. The results are float, except for
// ResizeNearestNeighbor.

struct ResizeOptions {
  bool align_corners = false;       // the centers of the corner pixels are aligned
  bool half_pixel_centers = false;  // pixel centers are at half-integer coordinates
};
// Return images of that size: by linear or cubic interpolation between the nearest pixels, their
// nearest pixel, or the mean of the area that a pixel covers. ResizeNearestNeighbor keeps the
// dtype.
Output ResizeBilinear(Output images, const Ints& size, const ResizeOptions& options = {},
                      absl::string_view name = {});
// See ResizeBilinear.
Output ResizeBicubic(Output images, const Ints& size, const ResizeOptions& options = {},
                     absl::string_view name = {});
// See ResizeBilinear.
Output ResizeNearestNeighbor(Output images, const Ints& size, const ResizeOptions& options = {},
                             absl::string_view name = {});
// See ResizeBilinear.
Output ResizeArea(Output images, const Ints& size, bool align_corners = false,
                  absl::string_view name = {});
// Options of CropAndResize.
struct CropAndResizeOptions {
  std::string method = "bilinear";  // or "nearest"
  float extrapolation_value = 0;    // of pixels outside the image
};
// Crops boxes [y1, x1, y2, x2], in normalized coordinates, from image box_indices[i] each, and
// resizes the crops. Returns float [boxes, crop height, crop width, channels].
Output CropAndResize(Output images, Output boxes, Output box_indices, const Ints& crop_size,
                     const CropAndResizeOptions& options = {}, absl::string_view name = {});

// ---- colors. The last dimension is 3.

Output RgbToHsv(Output images, absl::string_view name = {});  // all values are in [0, 1]
Output HsvToRgb(Output images, absl::string_view name = {});
// `factor` and `delta` are float scalars. A delta of 1 rotates the hue once around.
Output AdjustContrast(Output images, Output factor, absl::string_view name = {});
Output AdjustHue(Output images, Output delta, absl::string_view name = {});
Output AdjustSaturation(Output images, Output factor, absl::string_view name = {});

// ---- boxes

// Returns the indices of the selected boxes, best first: at most `max_output_size`, none of which
// overlaps a better one by more than the threshold.
Output NonMaxSuppression(Output boxes, Output scores, Output max_output_size,
                         float iou_threshold = 0.5f,
                         float score_threshold = -std::numeric_limits<float>::infinity(),
                         absl::string_view name = {});
// Draws the outlines of `boxes`, float [batch, boxes, 4] with [y1, x1, y2, x2] each.
Output DrawBoundingBoxes(Output images, Output boxes, absl::string_view name = {});

// ---- windows

// Options of ExtractImagePatches. `ksizes` (sizes of windows), `strides` and `rates` (distances of
// the pixels of a window) have one number per dimension of the images, 1 for batch and channels.
struct PatchOptions {
  std::vector<int64_t> ksizes, strides, rates = {1, 1, 1, 1};
  std::string padding = "VALID";  // or "SAME"
};
// Extracts windows of the images and flattens each into the channel dimension.
Output ExtractImagePatches(Output images, const PatchOptions& options, absl::string_view name = {});
// Options of Dilation2D: `strides` and `rates` as in PatchOptions.
struct DilationOptions {
  std::vector<int64_t> strides = {1, 1, 1, 1}, rates = {1, 1, 1, 1};
  std::string padding = "SAME";  // or "VALID"
};
// Computes the maximum of input + filter over each window, channel by channel. The filter is
// [height, width, channels].
Output Dilation2D(Output input, Output filter, const DilationOptions& options = {},
                  absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_IMAGE_IMAGE_H_
