#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "weir/kernels/audio/wav.h"
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

absl::Status AddAudio(const Tensor& tags, const Tensor& sounds, float rate, int64_t max_outputs,
                      proto::Summary* summary) {
  WEIR_ASSIGN_OR_RETURN(const std::string tag, ScalarTag(tags));
  if (sounds.rank() != 2 && sounds.rank() != 3) {
    return InvalidArgument("Tensor must be 3-D or 2-D, got: ", sounds.shape().ToString());
  }
  if (!(rate > 0 && rate < 1e9f)) return InvalidArgument("sample_rate must be one number > 0");
  const int64_t frames = sounds.dim(1), channels = sounds.rank() == 3 ? sounds.dim(2) : 1;
  if (channels < 1 || channels > 65535)
    return InvalidArgument("num_channels must be in (0, 2^16), got: ", channels);
  if (frames * channels >= (int64_t{1} << 30)) {
    return InvalidArgument("sounds of shape ", sounds.shape().ToString(),
                           " do not fit the WAV format");
  }
  for (int64_t i = 0; i < std::min(sounds.dim(0), max_outputs); ++i) {
    proto::Summary::Value* value = summary->add_value();
    value->set_tag(PartTag(tag, "audio", i, max_outputs));
    proto::Summary::Audio* audio = value->mutable_audio();
    audio->set_sample_rate(rate);
    audio->set_num_channels(channels);
    audio->set_length_frames(frames);
    audio->set_content_type("audio/wav");
    WEIR_ASSIGN_OR_RETURN(*audio->mutable_encoded_audio_string(),
                          WriteWav(sounds.data<float>() + i * frames * channels, std::lround(rate),
                                   channels, frames));
  }
  return absl::OkStatus();
}

absl::StatusOr<float> RateInput(const Tensor& rate) {
  if (rate.num_elements() != 1) return InvalidArgument("sample_rate must be one number > 0");
  return *rate.data<float>();
}

// AudioSummary has an attribute for the sample rate, the other ops an input.
template <SummarySink kSink>
absl::StatusOr<Kernel> MakeAudioSummary(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t max_outputs, NarrowAttr(init.node, "max_outputs"));
  std::optional<float> fixed_rate;
  if (init.node.FindAttr("sample_rate") != nullptr) fixed_rate = init.attr<float>("sample_rate");
  return Kernel([max_outputs, fixed_rate](KernelContext& ctx) -> absl::Status {
    proto::Summary summary;
    const int first = FirstInput(kSink);
    float rate = fixed_rate.value_or(0);
    if (!fixed_rate.has_value()) {
      WEIR_ASSIGN_OR_RETURN(rate, RateInput(ctx.input(first + 2)));
    }
    WEIR_RETURN_IF_ERROR(
        AddAudio(ctx.input(first), ctx.input(first + 1), rate, max_outputs, &summary));
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
  r->Add("AudioSummary", kCpu, MakeAudioSummary<SetSummary>);
  r->Add("AudioSummaryV2", kCpu, MakeAudioSummary<SetSummary>);
  r->Add("WriteAudioSummary", kCpu, MakeAudioSummary<WriteSummaryEvent>);
}

}  // namespace weir
