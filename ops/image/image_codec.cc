#include "weir/ops/image/image.h"

#include <utility>

#include "weir/ops/image/image_internal.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Reading and writing image files.
namespace weir {

namespace {

// Sets output 0 to `leading` followed by the channels of the attribute `channels`.
absl::Status DecodedShape(ShapeContext& c, Shape leading) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  const int64_t channels = c.node().attr_or<int64_t>("channels", 3);
  if (channels < 0) {
    return InvalidArgument("channels must be non-negative, got ", channels);
  }
  leading.AddDim(channels == 0 ? Shape::kUnknown : channels);
  c.set_output(0, std::move(leading));
  return absl::OkStatus();
}

absl::Status DecodeShape(ShapeContext& c) { return DecodedShape(c, Shape({-1, -1})); }
absl::Status DecodeGifShape(ShapeContext& c) { return DecodedShape(c, Shape({-1, -1, -1})); }

// WebP files have 3 or 4 channels.
absl::Status DecodeWebpShape(ShapeContext& c) {
  const auto channels = c.attr<int64_t>("channels");
  if (channels < 0) return InvalidArgument("channels must be non-negative, got ", channels);
  if (channels != 0 && channels != 3 && channels != 4)
    return InvalidArgument("WebP only supports 3 or 4 channels, or 0 for those of the file, got ",
                           channels);
  return DecodeGifShape(c);
}

// Whether there is a dimension of frames depends on the file.
absl::Status DecodeImageShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(DecodeShape(c));
  if (c.attr<bool>("expand_animations")) c.set_output(0, Shape::UnknownRank());
  return absl::OkStatus();
}

absl::Status DecodeAndCropShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape window, c.WithRank(1, 1));
  WEIR_RETURN_IF_ERROR(CheckDim(window, 0, 4));
  Shape size({-1, -1});
  if (const auto known = KnownInts(c, 1); known.has_value()) {
    for (int i = 0; i < 2; ++i) {
      if ((*known)[2 + i] < 0) {
        return InvalidArgument("crop_window must not be negative, but has ", (*known)[2 + i]);
      }
      size.set_dim(i, (*known)[2 + i]);
    }
  }
  return DecodedShape(c, size);
}

absl::Status ExtractJpegShapeShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  c.set_output(0, Shape({3}));
  return absl::OkStatus();
}

absl::Status EncodeShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 3).status());
  c.set_output(0, Shape());
  return absl::OkStatus();
}

absl::Status EncodePngShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape images, c.WithRankAtLeast(0, 3));
  if (images.has_rank()) c.set_output(0, images.Sub(0, -3));
  return absl::OkStatus();
}

OpSpec DecodeJpegSpec(const char* name, const char* inputs, ShapeFn shape, const char* doc) {
  OpSpec spec(name);
  spec.In(inputs)
      .Out("image: uint8")
      .Attr("channels: int = 0")
      .Attr("ratio: int = 1")
      .Attr("fancy_upscaling: bool = true")
      .Attr("try_recover_truncated: bool = false")
      .Attr("acceptable_fraction: float = 1.0")
      .Attr("dct_method: string = ''")
      .InferShape(shape)
      .NotDifferentiable()
      .Doc(doc);
  return spec;
}

void AddDecoding(OpRegistry* ops) {
  constexpr char kContents[] = "contents: string", kChannels[] = "channels: int = 0";
  ops->Add(DecodeJpegSpec("DecodeJpeg", kContents, DecodeShape,
                          "Decodes a JPEG file (or a PNG, or a GIF of one frame)."));
  ops->Add(DecodeJpegSpec("DecodeAndCropJpeg", "contents: string, crop_window: int32",
                          DecodeAndCropShape, "Decodes a window of a JPEG file."));
  ops->Add(
      OpSpec("ExtractJpegShape")
          .In(kContents)
          .Out("image_shape: output_type")
          .Attr("output_type: {int32, int64} = DT_INT32")
          .InferShape(ExtractJpegShapeShape)
          .NotDifferentiable()
          .Doc("Returns the height, width and channels of a JPEG file, from its header alone."));
  ops->Add(OpSpec("DecodePng")
               .In(kContents)
               .Out("image: dtype")
               .Attr(kChannels)
               .Attr("dtype: {uint8, uint16} = DT_UINT8")
               .InferShape(DecodeShape)
               .NotDifferentiable()
               .Doc("Decodes a PNG file (or a JPEG, or a GIF of one frame)."));
  ops->Add(OpSpec("DecodeBmp")
               .In(kContents)
               .Out("image: uint8")
               .Attr(kChannels)
               .InferShape(DecodeShape)
               .NotDifferentiable()
               .Doc("Decodes a BMP file."));
  ops->Add(OpSpec("DecodeGif")
               .In(kContents)
               .Out("image: uint8")
               .InferShape(DecodeGifShape)
               .NotDifferentiable()
               .Doc("Decodes the frames of a GIF file (or the single frame of a JPEG or PNG)."));
  ops->Add(OpSpec("DecodeWebP")
               .In(kContents)
               .Out("image: dtype")
               .Attr(kChannels)
               .Attr("dtype: {uint8} = DT_UINT8")
               .InferShape(DecodeWebpShape)
               .NotDifferentiable()
               .Doc("Decodes the frames of a WebP file."));
  ops->Add(OpSpec("DecodeImage")
               .In(kContents)
               .Out("image: dtype")
               .Attr(kChannels)
               .Attr("dtype: {uint8, uint16, float} = DT_UINT8")
               .Attr("expand_animations: bool = true")
               .InferShape(DecodeImageShape)
               .NotDifferentiable()
               .Doc("Decodes a JPEG, PNG, GIF, BMP or WebP file. Floats are in [0, 1]."));
}

}  // namespace

void AddImageCodecOps(OpRegistry* ops) {
  AddDecoding(ops);
  ops->Add(OpSpec("EncodeJpeg")
               .In("image: uint8")
               .Out("contents: string")
               .Attr("format: {'', 'grayscale', 'rgb'} = ''")
               .Attr("quality: int = 95")
               .Attr("progressive: bool = false")
               .Attr("optimize_size: bool = false")
               .Attr("chroma_downsampling: bool = true")
               .Attr("density_unit: {'in', 'cm'} = 'in'")
               .Attr("x_density: int = 300")
               .Attr("y_density: int = 300")
               .Attr("xmp_metadata: string = ''")
               .InferShape(EncodeShape)
               .NotDifferentiable()
               .Doc("Encodes a gray or RGB image as a JPEG file."));
  ops->Add(OpSpec("EncodeJpegVariableQuality")
               .In("images: uint8, quality: int32")
               .Out("contents: string")
               .InferShape(EncodeShape)
               .NotDifferentiable()
               .Doc("EncodeJpeg with a quality that is an input."));
  ops->Add(OpSpec("EncodePng")
               .In("image: T")
               .Out("contents: string")
               .Attr("compression: int = -1")
               .Attr("T: {uint8, uint16} = DT_UINT8")
               .InferShape(EncodePngShape)
               .NotDifferentiable()
               .Doc("Encodes images with one to four channels as PNG files, one for each image."));
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
Output DecodeWebp(Output contents, int channels, absl::string_view name) {
  return AddOp("DecodeWebP", {contents}, {{"channels", channels}}, name);
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

}  // namespace weir
