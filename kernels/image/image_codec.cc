#include "weir/kernels/image/image_codec.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "weir/kernels/image/image.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// The ops that read and write image files. Each decoding op accepts (nearly) every format,
// regardless of its name: the file's first bytes decide.
namespace weir {

ImageFormat ImageFormatOf(absl::string_view file) {
  if (absl::StartsWith(file, "\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (absl::StartsWith(file, "\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (absl::StartsWith(file, "GIF8")) return ImageFormat::kGif;
  if (absl::StartsWith(file, "BM")) return ImageFormat::kBmp;
  if (absl::StartsWith(file, "RIFF") && file.size() > 12 && file.substr(8, 4) == "WEBP") {
    return ImageFormat::kWebp;
  }
  return ImageFormat::kUnknown;
}

ImageFormat LikelyImageFormat(absl::string_view bytes) {
  const ImageFormat format = ImageFormatOf(bytes);
  if (format != ImageFormat::kBmp) return format;
  // The size of the file, whose high byte is small, and four reserved bytes.
  constexpr size_t kHeader = 26;
  const bool is_bmp = bytes.size() >= kHeader && static_cast<uint8_t>(bytes[5]) < 16 &&
                      bytes.substr(6, 4) == absl::string_view("\0\0\0\0", 4);
  return is_bmp ? format : ImageFormat::kUnknown;
}

const char* ImageFormatName(ImageFormat format) {
  constexpr const char* kNames[] = {"JPEG", "PNG", "GIF", "BMP", "WebP", ""};
  return kNames[static_cast<int>(format)];
}

namespace {

using Format = ImageFormat;

struct DecodeOptions {
  std::string op;
  DataType type = DT_UINT8;
  bool expand_animations = true;
  JpegDecodeOptions jpeg;
  int channels = 0;
};

absl::StatusOr<DecodeOptions> ReadOptions(const KernelInit& init) {
  const Node& n = init.node;
  DecodeOptions o;
  o.op = n.op_name();
  o.type = n.attr_or<DataType>("dtype", DT_UINT8);
  o.expand_animations = n.attr_or<bool>("expand_animations", true);
  const int64_t channels = n.attr_or<int64_t>("channels", o.op == "DecodeGif" ? 3 : 0);
  const int64_t ratio = n.attr_or<int64_t>("ratio", 1);
  const std::string dct = n.attr_or<std::string>("dct_method", "");
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
    return InvalidArgument("`channels` must be 0, 1, 3 or 4 but got ", channels);
  }
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
    return InvalidArgument("ratio must be 1, 2, 4, or 8, got ", ratio);
  }
  if (!dct.empty() && dct != "INTEGER_FAST" && dct != "INTEGER_ACCURATE") {
    return InvalidArgument(
        "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}, got ", dct);
  }
  o.channels = o.jpeg.channels = static_cast<int>(channels);
  o.jpeg.ratio = static_cast<int>(ratio);
  o.jpeg.fancy_upscaling = n.attr_or<bool>("fancy_upscaling", true);
  o.jpeg.recover_truncated = n.attr_or<bool>("try_recover_truncated", false);
  o.jpeg.acceptable_fraction = n.attr_or<float>("acceptable_fraction", 1);
  o.jpeg.accurate_dct = dct == "INTEGER_ACCURATE";
  o.jpeg.crop = o.op == "DecodeAndCropJpeg";
  return o;
}

absl::Status ReadCropWindow(const Tensor& window, JpegDecodeOptions* o) {
  if (window.rank() != 1 || window.dim(0) != 4) {
    return InvalidArgument("crop_window must be 1-D and have four elements, got shape ",
                           window.shape().ToString());
  }
  o->crop_y = window.IntAt(0);
  o->crop_x = window.IntAt(1);
  o->crop_height = window.IntAt(2);
  o->crop_width = window.IntAt(3);
  return absl::OkStatus();
}

// Returns whether the op accepts this format.
absl::Status CheckFormat(const DecodeOptions& o, Format format) {
  if (format == Format::kUnknown) {
    return InvalidArgument("Unknown image file format. One of JPEG, PNG, GIF, BMP, WebP required.");
  }
  if (format == Format::kWebp && o.channels == 1)
    return InvalidArgument("WebP only supports 3 or 4 channels");
  if (format == Format::kWebp && o.type != DT_UINT8)
    return InvalidArgument("WebP only supports uint8 for dtype");
  const char* name = ImageFormatName(format);
  if (o.op == "DecodeAndCropJpeg" && format != Format::kJpeg) {
    return InvalidArgument("DecodeAndCropJpeg operation can run on JPEG only, but detected ", name,
                           ".");
  }
  const bool reads_bmp = o.op == "DecodeBmp" || o.op == "DecodeImage";
  if ((o.op == "DecodeBmp" && format != Format::kBmp) || (format == Format::kBmp && !reads_bmp)) {
    return InvalidArgument("Trying to decode ", name, " format using a wrong op, ", o.op,
                           ". Use the op of the format or `decode_image` instead.");
  }
  if ((format == Format::kJpeg && o.channels == 4) || (format == Format::kBmp && o.channels == 1) ||
      (format == Format::kGif && o.channels != 0 && o.channels != 3)) {
    return InvalidArgument(name, " does not support ", o.channels, " channels");
  }
  return absl::OkStatus();
}

// Returns the result shape. DecodeGif and DecodeWebP, and DecodeImage for GIF and WebP files, have
// a dimension of frames.
absl::StatusOr<Shape> ResultShape(const DecodeOptions& o, Format format, const DecodedSize& size) {
  const bool animated = format == Format::kGif || format == Format::kWebp;
  const bool frames = o.op == "DecodeGif" || (o.op == "DecodeWebP" && format == Format::kWebp) ||
                      (o.op == "DecodeImage" && animated && o.expand_animations);
  if (!frames && size.frames != 1) {
    return InvalidArgument("Got ", size.frames,
                           " frames, but animated gifs can only be decoded by tf.io.decode_gif or "
                           "tf.io.decode_image");
  }
  if (frames) return Shape({size.frames, size.height, size.width, size.channels});
  return Shape({size.height, size.width, size.channels});
}

absl::Status DecodeBytes(absl::string_view file, Format format, const DecodeOptions& o,
                         AllocatePixels<uint8_t> allocate) {
  switch (format) {
    case Format::kJpeg:
      return DecodeJpeg(file, o.jpeg, allocate);
    case Format::kPng:
      return DecodePng(file, o.channels, allocate);
    case Format::kGif:
      return DecodeGif(file, !o.expand_animations, allocate);
    case Format::kWebp:
      return DecodeWebp(file, o.channels, !o.expand_animations, allocate);
    default:
      return DecodeBmp(file, o.channels, allocate);
  }
}

using AllocateResult = absl::FunctionRef<absl::StatusOr<Tensor*>(const DecodedSize&)>;

// Decodes into a temporary, and converts values of type From.
template <class From, class To, class DecodeTo>
absl::Status DecodeAndScale(KernelContext& c, const DecodeTo& decode, AllocateResult allocate,
                            float factor) {
  Tensor pixels;
  Tensor* out = nullptr;
  WEIR_RETURN_IF_ERROR(decode([&](const DecodedSize& size) -> absl::StatusOr<From*> {
    WEIR_ASSIGN_OR_RETURN(out, allocate(size));
    WEIR_ASSIGN_OR_RETURN(pixels, c.AllocateTemp(DataTypeOf<From>::value, out->shape()));
    return pixels.data<From>();
  }));
  const From* from = pixels.data<From>();
  std::transform(from, from + pixels.num_elements(), out->data<To>(),
                 [factor](From v) { return static_cast<To>(static_cast<float>(v) * factor); });
  return absl::OkStatus();
}

absl::Status Decode(KernelContext& c, DecodeOptions o) {
  const Tensor& contents = c.input(0);
  if (contents.rank() != 0) {
    return InvalidArgument("`contents` must be scalar but got shape ", contents.shape().ToString());
  }
  const absl::string_view file = contents.scalar<std::string>();
  if (file.empty()) return InvalidArgument("Input is empty.");
  const Format format = ImageFormatOf(file);
  WEIR_RETURN_IF_ERROR(CheckFormat(o, format));
  if (o.jpeg.crop) WEIR_RETURN_IF_ERROR(ReadCropWindow(c.input(1), &o.jpeg));
  const auto output = [&](const DecodedSize& size) -> absl::StatusOr<Tensor*> {
    WEIR_ASSIGN_OR_RETURN(const Shape shape, ResultShape(o, format, size));
    return c.AllocateOutput(0, shape);
  };
  const auto bytes = [&](AllocatePixels<uint8_t> allocate) {
    return DecodeBytes(file, format, o, allocate);
  };
  const auto words = [&](AllocatePixels<uint16_t> allocate) {
    return DecodePng(file, o.channels, allocate);
  };
  if (o.type == DT_UINT8) {
    return bytes([&](const DecodedSize& size) -> absl::StatusOr<uint8_t*> {
      WEIR_ASSIGN_OR_RETURN(Tensor * out, output(size));
      return out->data<uint8_t>();
    });
  }
  if (o.type == DT_UINT16 && format == Format::kPng) {
    return words([&](const DecodedSize& size) -> absl::StatusOr<uint16_t*> {
      WEIR_ASSIGN_OR_RETURN(Tensor * out, output(size));
      return out->data<uint16_t>();
    });
  }
  if (o.type == DT_UINT16) return DecodeAndScale<uint8_t, uint16_t>(c, bytes, output, 256);
  if (format == Format::kPng) {
    return DecodeAndScale<uint16_t, float>(c, words, output, 1.0f / 65535);
  }
  return DecodeAndScale<uint8_t, float>(c, bytes, output, 1.0f / 255);
}

absl::StatusOr<Kernel> MakeDecode(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const DecodeOptions o, ReadOptions(init));
  return Kernel([o](KernelContext& c) { return Decode(c, o); });
}

absl::Status ExtractShape(KernelContext& c) {
  const Tensor& contents = c.input(0);
  if (contents.rank() != 0) {
    return InvalidArgument("contents must be scalar, got shape ", contents.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const DecodedSize size, ReadJpegSize(contents.scalar<std::string>()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({3})));
  out->SetIntAt(0, size.height);
  out->SetIntAt(1, size.width);
  out->SetIntAt(2, size.channels);
  return absl::OkStatus();
}

// ---- encoding

absl::Status CheckQuality(int64_t quality) {
  if (quality >= 0 && quality <= 100) return absl::OkStatus();
  return InvalidArgument("quality must be in [0,100], got ", quality);
}

// `channels` 0: 1 or 3, as in the image.
absl::Status WriteJpeg(KernelContext& c, const JpegEncodeOptions& o, int64_t channels) {
  const Tensor& image = c.input(0);
  if (image.rank() != 3) {
    return InvalidArgument("image must be 3-dimensional, but has shape ", image.shape().ToString());
  }
  if (image.num_elements() >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Cannot encode images with >= max int32 elements");
  }
  const int64_t depth = image.dim(2);
  if (channels != 0 && depth != channels) {
    return InvalidArgument("format expects ", channels, " channels, got ",
                           image.shape().ToString());
  }
  if (depth != 1 && depth != 3) {
    return InvalidArgument("image must have 1 or 3 channels, got ", image.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(std::string file, EncodeJpeg(image.data<uint8_t>(),
                                                     {1, image.dim(0), image.dim(1), depth}, o));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  out->data<std::string>()[0] = std::move(file);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeEncodeJpeg(const KernelInit& init) {
  const std::string format = init.attr<std::string>("format");
  const int64_t channels = format == "grayscale" ? 1 : format == "rgb" ? 3 : 0;
  const int64_t quality = init.attr<int64_t>("quality");
  WEIR_RETURN_IF_ERROR(CheckQuality(quality));
  JpegEncodeOptions o;
  o.quality = static_cast<int>(quality);
  o.progressive = init.attr<bool>("progressive");
  o.optimize_size = init.attr<bool>("optimize_size");
  o.chroma_downsampling = init.attr<bool>("chroma_downsampling");
  o.density_unit = init.attr<std::string>("density_unit") == "in" ? 1 : 2;
  WEIR_ASSIGN_OR_RETURN(o.x_density, NarrowAttr(init.node, "x_density"));
  WEIR_ASSIGN_OR_RETURN(o.y_density, NarrowAttr(init.node, "y_density"));
  o.xmp_metadata = init.attr<std::string>("xmp_metadata");
  return Kernel([o, channels](KernelContext& c) { return WriteJpeg(c, o, channels); });
}

absl::Status EncodeJpegVariableQuality(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckScalar(c.input(1), "quality"));
  WEIR_RETURN_IF_ERROR(CheckQuality(c.input(1).scalar<int32_t>()));
  JpegEncodeOptions o;
  o.quality = c.input(1).scalar<int32_t>();
  return WriteJpeg(c, o, 0);
}

// The last three dimensions form an image.
absl::Status WritePng(KernelContext& c, int compression) {
  const Tensor& images = c.input(0);
  if (images.rank() < 3) {
    return InvalidArgument("images must be at least rank 3, but have shape ",
                           images.shape().ToString());
  }
  const DecodedSize size = {1, images.dim(-3), images.dim(-2), images.dim(-1)};
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (images.num_elements() >= kMost) {
    return InvalidArgument("image cannot have >= int32 max elements");
  }
  if (size.width >= kMost / 2 / 4 || size.height >= kMost) {
    return InvalidArgument("image too wide to encode");
  }
  if (size.channels < 1 || size.channels > 4) {
    return InvalidArgument("image must have 1, 2, 3, or 4 channels, got ", size.channels);
  }
  const Shape batch = images.shape().Sub(0, -3);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, batch));
  const size_t value = ElementSize(images.dtype());
  const size_t bytes = size.height * size.width * size.channels * value;
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    WEIR_ASSIGN_OR_RETURN(out->data<std::string>()[i],
                          EncodePng(static_cast<const char*>(images.raw()) + i * bytes, size,
                                    static_cast<int>(8 * value), compression));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeEncodePng(const KernelInit& init) {
  const int64_t compression = init.attr<int64_t>("compression");
  if (compression < -1 || compression > 9) {
    return InvalidArgument("compression should be in [-1,9], got ", compression);
  }
  return Kernel(
      [compression](KernelContext& c) { return WritePng(c, static_cast<int>(compression)); });
}

}  // namespace

void AddImageCodecKernels(KernelRegistry* r) {
  for (const char* op : {"DecodeJpeg", "DecodeAndCropJpeg", "DecodePng", "DecodeGif", "DecodeBmp",
                         "DecodeWebP", "DecodeImage"}) {
    r->Add(op, kCpu, MakeDecode);
  }
  r->Add("ExtractJpegShape", kCpu, ExtractShape);
  r->Add("EncodeJpeg", kCpu, MakeEncodeJpeg);
  r->Add("EncodeJpegVariableQuality", kCpu, EncodeJpegVariableQuality);
  r->Add("EncodePng", kCpu, MakeEncodePng);
}

}  // namespace weir
