#include "weir/ops/image.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"
#include "weir/ops/image_internal.h"

namespace weir {

absl::Status SizedImageShape(ShapeContext& c, int size, int64_t batch, int64_t channels) {
  WEIR_ASSIGN_OR_RETURN(const Shape sizes, c.WithRank(size, 1));
  WEIR_RETURN_IF_ERROR(CheckDim(sizes, 0, 2));
  int64_t height = Shape::kUnknown, width = Shape::kUnknown;
  if (const auto known = KnownInts(c, size); known.has_value()) {
    height = (*known)[0];
    width = (*known)[1];
    if (height < 0 || width < 0) {
      return InvalidArgument("Dimension size, given by scalar input ", size,
                             ", must be non-negative but is ", std::min(height, width));
    }
  }
  c.set_output(0, Shape({batch, height, width, channels}));
  return absl::OkStatus();
}

absl::Status CheckDim(const Shape& shape, int i, int64_t want) {
  const int64_t dim = shape.dim(i);
  if (dim < 0 || dim == want) return absl::OkStatus();
  return InvalidArgument("Dimension must be ", want, " but is ", dim);
}

// ---- builders

Output DecodeJpeg(Output contents, const DecodeJpegOptions& o, absl::string_view name) {
  return AddOp("DecodeJpeg", {contents},
               {{"channels", o.channels},
                {"ratio", o.ratio},
                {"fancy_upscaling", o.fancy_upscaling},
                {"try_recover_truncated", o.try_recover_truncated},
                {"acceptable_fraction", o.acceptable_fraction},
                {"dct_method", o.dct_method}},
               name);
}
Output DecodePng(Output contents, int channels, DataType dtype, absl::string_view name) {
  return AddOp("DecodePng", {contents}, {{"channels", channels}, {"dtype", dtype}}, name);
}
Output DecodeBmp(Output contents, int channels, absl::string_view name) {
  return AddOp("DecodeBmp", {contents}, {{"channels", channels}}, name);
}
Output DecodeGif(Output contents, absl::string_view name) {
  return AddOp("DecodeGif", {contents}, {}, name);
}
Output DecodeImage(Output contents, int channels, DataType dtype, bool expand_animations,
                   absl::string_view name) {
  return AddOp("DecodeImage", {contents},
               {{"channels", channels}, {"dtype", dtype}, {"expand_animations", expand_animations}},
               name);
}
Output EncodeJpeg(Output image, int quality, absl::string_view name) {
  return AddOp("EncodeJpeg", {image}, {{"quality", quality}}, name);
}
Output EncodePng(Output image, int compression, absl::string_view name) {
  return AddOp("EncodePng", {image}, {{"compression", compression}}, name);
}

namespace {

Output Resize(const char* op, Output images, const Ints& size, Attrs attrs,
              absl::string_view name) {
  if (!images.valid()) return {};
  const std::string node = name.empty() ? op : std::string(name);
  return AddOp(op, {images, size.In(images.graph(), node + "/size", DT_INT32)}, attrs, node);
}

Attrs GridAttrs(const ResizeOptions& o) {
  return {{"align_corners", o.align_corners}, {"half_pixel_centers", o.half_pixel_centers}};
}

}  // namespace

Output ResizeBilinear(Output images, const Ints& size, const ResizeOptions& options,
                      absl::string_view name) {
  return Resize("ResizeBilinear", images, size, GridAttrs(options), name);
}
Output ResizeBicubic(Output images, const Ints& size, const ResizeOptions& options,
                     absl::string_view name) {
  return Resize("ResizeBicubic", images, size, GridAttrs(options), name);
}
Output ResizeNearestNeighbor(Output images, const Ints& size, const ResizeOptions& options,
                             absl::string_view name) {
  return Resize("ResizeNearestNeighbor", images, size, GridAttrs(options), name);
}
Output ResizeArea(Output images, const Ints& size, bool align_corners, absl::string_view name) {
  return Resize("ResizeArea", images, size, {{"align_corners", align_corners}}, name);
}

Output CropAndResize(Output images, Output boxes, Output box_indices, const Ints& crop_size,
                     const CropAndResizeOptions& o, absl::string_view name) {
  if (!images.valid()) return {};
  const std::string node = name.empty() ? "CropAndResize" : std::string(name);
  return AddOp(
      "CropAndResize",
      {images, boxes, box_indices, crop_size.In(images.graph(), node + "/crop_size", DT_INT32)},
      {{"method", o.method}, {"extrapolation_value", o.extrapolation_value}}, node);
}

Output RgbToHsv(Output images, absl::string_view name) {
  return AddOp("RGBToHSV", {images}, {}, name);
}
Output HsvToRgb(Output images, absl::string_view name) {
  return AddOp("HSVToRGB", {images}, {}, name);
}
Output AdjustContrast(Output images, Output factor, absl::string_view name) {
  return AddOp("AdjustContrastv2", {images, factor}, {}, name);
}
Output AdjustHue(Output images, Output delta, absl::string_view name) {
  return AddOp("AdjustHue", {images, delta}, {}, name);
}
Output AdjustSaturation(Output images, Output factor, absl::string_view name) {
  return AddOp("AdjustSaturation", {images, factor}, {}, name);
}

Output NonMaxSuppression(Output boxes, Output scores, Output max_output_size, float iou_threshold,
                         float score_threshold, absl::string_view name) {
  if (!boxes.valid()) return {};
  const NameScope scope(boxes.graph(), name.empty() ? "non_max_suppression" : name);
  const Output iou = Const(boxes.graph(), iou_threshold, "iou_threshold");
  const Output score = Const(boxes.graph(), score_threshold, "score_threshold");
  return AddOp("NonMaxSuppressionV3", {boxes, scores, max_output_size, iou, score});
}
Output DrawBoundingBoxes(Output images, Output boxes, absl::string_view name) {
  return AddOp("DrawBoundingBoxes", {images, boxes}, {}, name);
}

Output ExtractImagePatches(Output images, const PatchOptions& o, absl::string_view name) {
  return AddOp(
      "ExtractImagePatches", {images},
      {{"ksizes", o.ksizes}, {"strides", o.strides}, {"rates", o.rates}, {"padding", o.padding}},
      name);
}
Output Dilation2D(Output input, Output filter, const DilationOptions& o, absl::string_view name) {
  return AddOp("Dilation2D", {input, filter},
               {{"strides", o.strides}, {"rates", o.rates}, {"padding", o.padding}}, name);
}

}  // namespace weir
