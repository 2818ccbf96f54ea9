#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/image/image_codec.h"

// WebP files by libwebp. Headers are read first, so that nothing is allocated for sizes that are
// too large.
namespace weir {

namespace {

const uint8_t* BytesOf(absl::string_view file) {
  return reinterpret_cast<const uint8_t*>(file.data());
}

// An animation is drawn frame by frame on a canvas with alpha.
absl::Status DecodeAnimation(absl::string_view file, bool first_frame_only,
                             AllocatePixels<uint8_t> allocate) {
  const WebPData data = {BytesOf(file), file.size()};
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&data, nullptr), WebPAnimDecoderDelete);
  WebPAnimInfo info;
  if (decoder == nullptr || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0)
    return InvalidArgument("Failed to decode WebP Animation: failed to decode WebP Animation");
  const int64_t frames = first_frame_only ? 1 : info.frame_count;
  const int64_t size = int64_t{4} * info.canvas_width * info.canvas_height;
  if (frames > kMostPixels / size)
    return InvalidArgument("Failed to decode WebP Animation: the frames are too large");
  WEIR_ASSIGN_OR_RETURN(uint8_t * to, allocate({frames, info.canvas_height, info.canvas_width, 4}));
  for (int64_t i = 0; i < frames; ++i, to += size) {
    ThrowIfCancelled();
    uint8_t* canvas = nullptr;
    int time = 0;
    if (WebPAnimDecoderGetNext(decoder.get(), &canvas, &time) == 0)
      return InvalidArgument("Failed to decode WebP Animation: failed to decode frame: ", i);
    std::memcpy(to, canvas, static_cast<size_t>(size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeWebp(absl::string_view file, int channels, bool first_frame_only,
                        AllocatePixels<uint8_t> allocate) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(BytesOf(file), file.size(), &features) != VP8_STATUS_OK)
    return InvalidArgument("Failed to decode WebP header.");
  const int stored = features.has_alpha != 0 ? 4 : 3;
  if (channels != 0 && channels != stored) {
    return InvalidArgument("Number of channels requested does not match input: ", channels, " vs. ",
                           stored);
  }
  if (int64_t{4} * features.width * features.height > kMostPixels)
    return InvalidArgument("the WebP image is too large: ", features.width, " by ",
                           features.height);
  if (features.has_animation != 0) {
    if (channels == 3) return InvalidArgument("WebP Animation must be 4 channel RGBA");
    return DecodeAnimation(file, first_frame_only, allocate);
  }
  const DecodedSize size = {1, features.height, features.width, stored};
  WEIR_ASSIGN_OR_RETURN(uint8_t* const to, allocate(size));
  const int row = features.width * stored;
  const auto decode = stored == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (decode(BytesOf(file), file.size(), to, static_cast<size_t>(row) * features.height, row) ==
      nullptr) {
    return InvalidArgument("Failed to decode WebP image.");
  }
  return absl::OkStatus();
}

}  // namespace weir
