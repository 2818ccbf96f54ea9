#include "weir/tools/lib/image_value.h"

#include <algorithm>
#include <cmath>

#include "weir/core/tensor/convert.h"
#include "weir/kernels/image/image_codec.h"
#include "weir/ops/image/image.h"
#include "weir/ops/lib/array.h"
#include "weir/session/session.h"

namespace weir::tools {

namespace {

// Where a tensor's shape has the parts of an image.
struct ImageLayout {
  bool has_batch = false, has_channels = true, channels_first = false;
  int64_t height = Shape::kUnknown, width = Shape::kUnknown, channels = Shape::kUnknown;
};

bool CanBeChannels(int64_t extent) { return extent == 1 || extent == 3 || extent == 4; }

absl::StatusOr<ImageLayout> LayoutOf(const Shape& shape) {
  ImageLayout layout;
  if (!shape.has_rank()) return layout;
  const int rank = shape.rank();
  // [?,784] and [1,784] are batches of vectors.
  const bool is_batch_of_vectors =
      rank == 2 && (shape.dim(0) == 1 || (shape.dim(0) < 0) != (shape.dim(1) < 0));
  if (rank < 2 || rank > 4 || is_batch_of_vectors) {
    return InvalidArgument(
        "an image is fed to [height,width], [height,width,channels] or a batch "
        "of these, but the tensor's shape is ",
        shape.ToString());
  }
  const int64_t first = shape.dim(rank == 4 ? 1 : 0), last = shape.dim(-1);
  layout.has_batch = rank == 4;
  if (rank == 2) {
    layout.has_channels = false;
  } else if (last != Shape::kUnknown && !CanBeChannels(last)) {
    // One gray image of [?,height,width] is the same as a batch, and with its channels first.
    layout.channels_first = CanBeChannels(first);
    layout.has_channels = layout.channels_first;
    layout.has_batch |= !layout.channels_first && first == Shape::kUnknown;
    if (!layout.channels_first && (rank == 4 || first != Shape::kUnknown)) {
      return InvalidArgument("an image has 1, 3 or 4 channels, but the tensor's shape is ",
                             shape.ToString());
    }
  }
  const int end = layout.has_channels && !layout.channels_first ? rank - 1 : rank;
  layout.height = shape.dim(end - 2);
  layout.width = shape.dim(end - 1);
  layout.channels = !layout.has_channels ? 1 : layout.channels_first ? first : last;
  if (layout.channels != Shape::kUnknown && !CanBeChannels(layout.channels))
    return InvalidArgument("an image has 1, 3 or 4 channels, not ", layout.channels);
  return layout;
}

absl::StatusOr<Tensor> RunOne(const Graph& graph, const Feeds& feeds, const Output& fetch) {
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph, {.num_threads = 1}));
  WEIR_ASSIGN_OR_RETURN(Tensors out, session.Run(feeds, {fetch}));
  return std::move(out[0]);
}

// Decodes to [frames, height, width, channels]. The decoders convert channels where they can.
absl::StatusOr<Tensor> Decode(absl::string_view bytes, DataType dtype, const ImageLayout& layout) {
  const ImageFormat format = ImageFormatOf(bytes);
  const bool converts =
      (format == ImageFormat::kJpeg && layout.channels != 4) || format == ImageFormat::kPng;
  const int channels = converts ? static_cast<int>(std::max<int64_t>(layout.channels, 0)) : 0;
  Graph graph;
  const Output contents = Placeholder(graph, DT_STRING, Shape());
  const Output image =
      DecodeImage(contents, channels, format == ImageFormat::kWebp ? DT_UINT8 : dtype,
                  /*expand_animations=*/layout.has_batch);
  WEIR_ASSIGN_OR_RETURN(const Tensor decoded,
                        RunOne(graph, {{contents, Tensor::Scalar(std::string(bytes))}}, image));
  if (decoded.rank() == 4) return decoded;
  Shape frames = decoded.shape();
  frames.InsertDim(0, 1);
  return decoded.Reshaped(frames);
}

absl::StatusOr<Tensor> ToFloats(const Tensor& image, float scale) {
  WEIR_ASSIGN_OR_RETURN(Tensor floats, ConvertTensor(image, DT_FLOAT));
  if (scale == 1) return floats;
  for (float& value : floats.flat<float>()) value *= scale;
  return floats;
}

// Returns the images with other channels. `opaque` is the opacity of pixels that have none.
absl::StatusOr<Tensor> ConvertChannels(const Tensor& images, int64_t channels, float opaque) {
  const int64_t from = images.dim(-1);
  if (channels == Shape::kUnknown || channels == from) return images;
  Shape shape = images.shape();
  shape.set_dim(shape.rank() - 1, channels);
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), DT_FLOAT, shape));
  const float* in = images.data<float>();
  float* to = out.data<float>();
  for (int64_t n = images.num_elements() / from; n > 0; --n, in += from, to += channels) {
    const bool is_gray = from < 3;
    const float red = in[0], green = is_gray ? red : in[1], blue = is_gray ? red : in[2];
    if (channels == 1) {
      to[0] = is_gray ? red : 0.2989f * red + 0.587f * green + 0.114f * blue;
      continue;
    }
    to[0] = red;
    to[1] = green;
    to[2] = blue;
    if (channels == 4) to[3] = opaque;
  }
  return out;
}

constexpr int64_t kLargestSide = 1 << 24;  // the kernels' limit

absl::StatusOr<Tensor> Resize(const Tensor& images, const ImageLayout& layout) {
  const int64_t height = layout.height < 0 ? images.dim(1) : layout.height;
  const int64_t width = layout.width < 0 ? images.dim(2) : layout.width;
  if (height == images.dim(1) && width == images.dim(2)) return images;
  if (std::min(height, width) < 1 || std::max(height, width) > kLargestSide)
    return InvalidArgument("an image cannot be resized to ", height, " by ", width);
  Graph graph;
  const Output in = Placeholder(graph, DT_FLOAT, images.shape());
  return RunOne(graph, {{in, images}},
                ResizeBilinear(in, {height, width}, {.half_pixel_centers = true}));
}

// Moves the channels before height and width.
absl::StatusOr<Tensor> ChannelsFirst(const Tensor& images) {
  Graph graph;
  const Output in = Placeholder(graph, DT_FLOAT, images.shape());
  return RunOne(graph, {{in, images}}, Transpose(in, {0, 3, 1, 2}));
}

// Returns the images with the dimensions that the tensor has.
Tensor WithDimensions(const Tensor& images, const ImageLayout& layout) {
  Shape shape = images.shape();
  if (!layout.has_channels) shape.RemoveDim(3);
  if (!layout.has_batch) shape.RemoveDim(0);
  return images.Reshaped(shape);
}

}  // namespace

bool IsImage(absl::string_view bytes) { return LikelyImageFormat(bytes) != ImageFormat::kUnknown; }

absl::StatusOr<Tensor> DecodeImageFor(absl::string_view bytes, DataType dtype, const Shape& shape,
                                      const PixelRange& pixels) {
  if (!IsFloating(dtype) && !IsInteger(dtype))
    return InvalidArgument("an image cannot be fed to a tensor of type ", DataTypeName(dtype));
  WEIR_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(shape));
  const bool is_real = IsFloating(dtype);
  const DataType decoded = is_real ? DT_FLOAT : dtype == DT_UINT16 ? DT_UINT16 : DT_UINT8;
  const float white = is_real ? 1 : dtype == DT_UINT16 ? 65535 : 255;
  WEIR_ASSIGN_OR_RETURN(Tensor images, Decode(bytes, decoded, layout));
  // libwebp gives bytes only.
  const bool needs_scale = images.dtype() != decoded;
  WEIR_ASSIGN_OR_RETURN(images, ToFloats(images, needs_scale ? white / 255 : 1));
  WEIR_ASSIGN_OR_RETURN(images, ConvertChannels(images, layout.channels, white));
  WEIR_ASSIGN_OR_RETURN(images, Resize(images, layout));
  if (layout.channels_first) {
    WEIR_ASSIGN_OR_RETURN(images, ChannelsFirst(images));
  }
  if (is_real && (pixels.black != 0 || pixels.white != 1)) {
    images = images.DeepCopy();
    for (float& value : images.flat<float>())
      value = value * (pixels.white - pixels.black) + pixels.black;
  }
  return ConvertTensor(WithDimensions(images, layout), dtype, Rounding::kAllowed);
}

}  // namespace weir::tools
