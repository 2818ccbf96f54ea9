#ifndef WEIR_OPS_IMAGE_H_
#define WEIR_OPS_IMAGE_H_

#include <limits>
#include <string>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/array.h"

// Images: TensorFlow's image ops. Each builder adds the node of that op; the last argument is the
// name. Images are [batch, height, width, channels]; one alone is [height, width, channels].
namespace weir {

// ---- files. `contents` is a string scalar. Each of those that decode takes JPEG, PNG and GIF
// (DecodeBmp: BMP alone), and gives uint8 unless it says otherwise.

struct DecodeJpegOptions {
  int channels = 0;  // 1 gray, 3 RGB; 0: what the file has
  int ratio = 1;     // shrinks by 1, 2, 4 or 8
  bool fancy_upscaling = true, try_recover_truncated = false;
  float acceptable_fraction = 1;  // of the lines that must be there
  std::string dct_method = {};    // "INTEGER_FAST", "INTEGER_ACCURATE"
};
Output DecodeJpeg(Output contents, const DecodeJpegOptions& options = {},
                  absl::string_view name = {});
// `dtype` is uint8 or uint16.
Output DecodePng(Output contents, int channels = 0, DataType dtype = DT_UINT8,
                 absl::string_view name = {});
Output DecodeBmp(Output contents, int channels = 0, absl::string_view name = {});
// [frames, height, width, 3].
Output DecodeGif(Output contents, absl::string_view name = {});
// Any of the formats. `dtype` is uint8, uint16, or float (from 0 to 1). With `expand_animations`
// a GIF gives rank 4.
Output DecodeImage(Output contents, int channels = 0, DataType dtype = DT_UINT8,
                   bool expand_animations = true, absl::string_view name = {});
Output EncodeJpeg(Output image, int quality = 95, absl::string_view name = {});
// uint8 or uint16, 1 to 4 channels; compression 0 to 9, -1 for the default.
Output EncodePng(Output image, int compression = -1, absl::string_view name = {});

// ---- other sizes: `size` is {height, width}. The results are float, but for the nearest
// neighbor's.

struct ResizeOptions {
  bool align_corners = false;       // corners' centers stay where they are
  bool half_pixel_centers = false;  // pixels are squares around their centers, as elsewhere
};
Output ResizeBilinear(Output images, const Ints& size, const ResizeOptions& options = {},
                      absl::string_view name = {});
Output ResizeBicubic(Output images, const Ints& size, const ResizeOptions& options = {},
                     absl::string_view name = {});
Output ResizeNearestNeighbor(Output images, const Ints& size, const ResizeOptions& options = {},
                             absl::string_view name = {});
Output ResizeArea(Output images, const Ints& size, bool align_corners = false,
                  absl::string_view name = {});
// Boxes [y1, x1, y2, x2] in units of the images' sides, cut out of image box_indices[i] each and
// resized.
struct CropAndResizeOptions {
  std::string method = "bilinear";  // or "nearest"
  float extrapolation_value = 0;
};
Output CropAndResize(Output images, Output boxes, Output box_indices, const Ints& crop_size,
                     const CropAndResizeOptions& options = {}, absl::string_view name = {});

// ---- colors: the last dimension is 3

Output RgbToHsv(Output images, absl::string_view name = {});  // from 0 to 1, all of them
Output HsvToRgb(Output images, absl::string_view name = {});
// `factor` and `delta` are float scalars; a delta of 1 turns the hue once around.
Output AdjustContrast(Output images, Output factor, absl::string_view name = {});
Output AdjustHue(Output images, Output delta, absl::string_view name = {});
Output AdjustSaturation(Output images, Output factor, absl::string_view name = {});

// ---- boxes

// Indices of the boxes that stay, best first: at most `max_output_size`, none of which overlaps a
// better one by more than the threshold.
Output NonMaxSuppression(Output boxes, Output scores, Output max_output_size,
                         float iou_threshold = 0.5f,
                         float score_threshold = -std::numeric_limits<float>::infinity(),
                         absl::string_view name = {});
// Frames around `boxes`, float [batch, boxes, 4] with [y1, x1, y2, x2] each.
Output DrawBoundingBoxes(Output images, Output boxes, absl::string_view name = {});

// ---- windows

struct PatchOptions {
  std::vector<int64_t> ksizes, strides, rates = {1, 1, 1, 1};
  std::string padding = "VALID";
};
// Windows of the images, laid out along the channels.
Output ExtractImagePatches(Output images, const PatchOptions& options, absl::string_view name = {});
// The maximum over each window of input + filter, channel by channel.
struct DilationOptions {
  std::vector<int64_t> strides = {1, 1, 1, 1}, rates = {1, 1, 1, 1};
  std::string padding = "SAME";
};
Output Dilation2D(Output input, Output filter, const DilationOptions& options = {},
                  absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_IMAGE_H_
