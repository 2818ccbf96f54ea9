#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "weir/kernels/data/summary_writer.h"
#include "weir/kernels/image/image_codec.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/proto/summary.pb.h"

// Summaries of images and audio, as PNG and WAV.
namespace weir {
namespace {

// Maps the finite values to bytes: from [0, max] to [0, 255], or, if there are negative ones, from
// [-m, m] to [1, 255] with 0 at 128. A pixel with a channel that is not finite gets the bad color.
std::vector<uint8_t> ToBytes(const std::vector<float>& image, int64_t depth,
                             const uint8_t* bad_color) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (int64_t i = 0; i < static_cast<int64_t>(image.size()); i += depth) {
    const bool finite =
        std::all_of(&image[i], &image[i] + depth, [](float v) { return std::isfinite(v); });
    for (int64_t c = 0; finite && c < depth; ++c) {
      low = std::min(low, image[i + c]);
      high = std::max(high, image[i + c]);
    }
  }
  constexpr float kAlmostZero = 1e-6f;
  const bool has_negative = low < 0;
  const float largest = has_negative ? std::max(std::abs(low), std::abs(high)) : high;
  const float scale = largest < kAlmostZero ? 0 : (has_negative ? 127.0f : 255.0f) / largest;
  const float offset = has_negative ? 128.0f : 0.0f;
  std::vector<uint8_t> out(image.size());
  for (int64_t i = 0; i < static_cast<int64_t>(image.size()); i += depth) {
    const bool finite =
        std::all_of(&image[i], &image[i] + depth, [](float v) { return std::isfinite(v); });
    for (int64_t c = 0; c < depth; ++c) {
      const float v = finite ? std::clamp(image[i + c] * scale + offset, 0.0f, 255.0f) : 0.0f;
      out[i + c] = finite ? static_cast<uint8_t>(v) : bad_color[c];
    }
  }
  return out;
}

// Returns "tag/image/3", or "tag/image" if there is at most one image.
std::string PartTag(const std::string& tag, absl::string_view kind, int64_t i, int64_t max) {
  return max > 1 ? absl::StrCat(tag, "/", kind, "/", i) : absl::StrCat(tag, "/", kind);
}

template <class T>
absl::Status AddImages(const Tensor& tags, const Tensor& images, int64_t max_images,
                       const Tensor& bad_color, proto::Summary* summary) {
  WEIR_ASSIGN_OR_RETURN(const std::string tag, ScalarTag(tags));
  const int64_t depth = images.rank() == 4 ? images.dim(3) : 0;
  if (depth != 1 && depth != 3 && depth != 4) {
    return InvalidArgument("Tensor must be 4-D with last dim 1, 3, or 4, not ",
                           images.shape().ToString());
  }
  if (bad_color.rank() != 1 || bad_color.num_elements() < depth)
    return InvalidArgument(
        "bad_color must be a vector with as many elements as the images channels: ", depth);
  const int64_t height = images.dim(1), width = images.dim(2), size = height * width * depth;
  if (size == 0 || size >= (int64_t{1} << 29)) {
    return InvalidArgument("images of shape ", images.shape().ToString(),
                           " are empty or too large for a summary");
  }
  for (int64_t i = 0; i < std::min(images.dim(0), max_images); ++i) {
    const T* from = images.data<T>() + i * size;
    std::vector<uint8_t> bytes;
    if constexpr (std::is_same_v<T, uint8_t>) {
      bytes.assign(from, from + size);
    } else {
      bytes = ToBytes(std::vector<float>(from, from + size), depth, bad_color.data<uint8_t>());
    }
    proto::Summary::Value* value = summary->add_value();
    value->set_tag(PartTag(tag, "image", i, max_images));
    value->mutable_image()->set_height(static_cast<int32_t>(height));
    value->mutable_image()->set_width(static_cast<int32_t>(width));
    value->mutable_image()->set_colorspace(static_cast<int32_t>(depth));
    WEIR_ASSIGN_OR_RETURN(*value->mutable_image()->mutable_encoded_image_string(),
                          EncodePng(bytes.data(), {1, height, width, depth}, 8, -1));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MaxImages(const Node& node) {
  const auto most = node.attr<int64_t>("max_images");
  if (most <= std::numeric_limits<int32_t>::max()) return most;
  return InvalidArgument("max_images must be < 2^31");
}

template <class T>
absl::StatusOr<Kernel> MakeImageSummary(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t max_images, MaxImages(init.node));
  Tensor bad_color = init.attr<Tensor>("bad_color");
  if (bad_color.dtype() != DT_UINT8 || bad_color.rank() != 1) {
    return InvalidArgument("expected bad_color to be a uint8 vector, but it is ",
                           bad_color.Description());
  }
  return Kernel([max_images, bad_color](KernelContext& ctx) -> absl::Status {
    proto::Summary summary;
    WEIR_RETURN_IF_ERROR(AddImages<T>(ctx.input(0), ctx.input(1), max_images, bad_color, &summary));
    return SetSummary(ctx, summary);
  });
}

template <class T>
absl::StatusOr<Kernel> MakeWriteImageSummary(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t max_images, MaxImages(init.node));
  return Kernel([max_images](KernelContext& ctx) -> absl::Status {
    proto::Summary summary;
    WEIR_RETURN_IF_ERROR(
        AddImages<T>(ctx.input(2), ctx.input(3), max_images, ctx.input(4), &summary));
    return WriteSummaryEvent(ctx, summary);
  });
}

// ---- audio

void AppendLittleEndian(uint32_t v, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(v >> (8 * i)));
}

// 16-bit PCM.
std::string EncodeWav(const float* samples, uint32_t rate, int64_t channels, int64_t frames) {
  const uint32_t bytes = static_cast<uint32_t>(2 * channels * frames);
  std::string wav = "RIFF";
  AppendLittleEndian(36 + bytes, 4, &wav);
  wav += "WAVEfmt ";
  AppendLittleEndian(16, 4, &wav);
  AppendLittleEndian(1, 2, &wav);
  AppendLittleEndian(static_cast<uint32_t>(channels), 2, &wav);
  AppendLittleEndian(rate, 4, &wav);
  AppendLittleEndian(static_cast<uint32_t>(2 * channels * rate), 4, &wav);
  AppendLittleEndian(static_cast<uint32_t>(2 * channels), 2, &wav);
  AppendLittleEndian(16, 2, &wav);
  wav += "data";
  AppendLittleEndian(bytes, 4, &wav);
  for (int64_t i = 0; i < channels * frames; ++i) {
    const float v = std::isnan(samples[i])
                        ? 0
                        : std::clamp(std::round(samples[i] * 32768.0f), -32768.0f, 32767.0f);
    AppendLittleEndian(static_cast<uint32_t>(static_cast<int32_t>(v)), 2, &wav);
  }
  return wav;
}

absl::Status AddAudio(const Tensor& tags, const Tensor& sounds, const Tensor& rate,
                      int64_t max_outputs, proto::Summary* summary) {
  WEIR_ASSIGN_OR_RETURN(const std::string tag, ScalarTag(tags));
  if (sounds.rank() != 2 && sounds.rank() != 3) {
    return InvalidArgument("Tensor must be 3-D or 2-D, got: ", sounds.shape().ToString());
  }
  if (rate.num_elements() != 1 || !(*rate.data<float>() > 0 && *rate.data<float>() < 1e9f)) {
    return InvalidArgument("sample_rate must be one number > 0");
  }
  const int64_t frames = sounds.dim(1), channels = sounds.rank() == 3 ? sounds.dim(2) : 1;
  if (channels < 1 || channels > 65535 || frames * channels >= (int64_t{1} << 30)) {
    return InvalidArgument("sounds of shape ", sounds.shape().ToString(),
                           " do not fit the WAV format");
  }
  for (int64_t i = 0; i < std::min(sounds.dim(0), max_outputs); ++i) {
    proto::Summary::Value* value = summary->add_value();
    value->set_tag(PartTag(tag, "audio", i, max_outputs));
    proto::Summary::Audio* audio = value->mutable_audio();
    audio->set_sample_rate(*rate.data<float>());
    audio->set_num_channels(channels);
    audio->set_length_frames(frames);
    audio->set_content_type("audio/wav");
    audio->set_encoded_audio_string(
        EncodeWav(sounds.data<float>() + i * frames * channels,
                  static_cast<uint32_t>(std::lround(*rate.data<float>())), channels, frames));
  }
  return absl::OkStatus();
}

template <SummarySink kSink>
absl::StatusOr<Kernel> MakeAudioSummary(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t max_outputs, NarrowAttr(init.node, "max_outputs"));
  return Kernel([max_outputs](KernelContext& ctx) -> absl::Status {
    proto::Summary summary;
    const int first = FirstInput(kSink);
    WEIR_RETURN_IF_ERROR(AddAudio(ctx.input(first), ctx.input(first + 1), ctx.input(first + 2),
                                  max_outputs, &summary));
    return kSink(ctx, summary);
  });
}

template <class... Ts>
void AddImageKernels(KernelRegistry* r, List<Ts...>) {
  (r->Add("ImageSummary", kCpu, DataTypeOf<Ts>::value, MakeImageSummary<Ts>), ...);
  (r->Add("WriteImageSummary", kCpu, DataTypeOf<Ts>::value, MakeWriteImageSummary<Ts>), ...);
}

}  // namespace

void AddSummaryMedia(KernelRegistry* r) {
  AddImageKernels(r, List<uint8_t, float, half, double>());
  r->Add("AudioSummaryV2", kCpu, MakeAudioSummary<SetSummary>);
  r->Add("WriteAudioSummary", kCpu, MakeAudioSummary<WriteSummaryEvent>);
}

}  // namespace weir
