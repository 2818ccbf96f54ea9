#include "weir/ops/audio/audio.h"

#include <bit>

#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

namespace weir {

// ---- shape functions

namespace {

// -1 is an unknown dimension.
absl::Status CheckWanted(absl::string_view what, int64_t size) {
  if (size >= -1) return absl::OkStatus();
  return InvalidArgument(what, " must be non-negative, got ", size);
}

absl::Status DecodeWavShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  const auto channels = c.attr<int64_t>("desired_channels");
  const auto samples = c.attr<int64_t>("desired_samples");
  WEIR_RETURN_IF_ERROR(CheckWanted("channels", channels));
  WEIR_RETURN_IF_ERROR(CheckWanted("samples", samples));
  c.set_output(0, Shape({samples, channels}));
  c.set_output(1, Shape());
  return absl::OkStatus();
}

absl::Status EncodeWavShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, Shape());
  return absl::OkStatus();
}

// The number of windows of `size` samples, a new one every `stride`; -1 if unknown.
int64_t CountWindows(int64_t samples, int64_t size, int64_t stride) {
  if (samples < 0) return Shape::kUnknown;
  return samples < size ? 0 : 1 + (samples - size) / stride;
}

absl::Status SpectrogramShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, 2));
  const auto size = c.attr<int64_t>("window_size"), stride = c.attr<int64_t>("stride");
  constexpr int64_t kMost = int64_t{1} << 31;
  if (size < 2 || size > kMost)
    return InvalidArgument("window_size must be > 1 and < 2^31, got ", size);
  if (stride < 1) return InvalidArgument("stride must be strictly positive, got ", stride);
  const auto fft_size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
  c.set_output(0,
               Shape({input.dim(1), CountWindows(input.dim(0), size, stride), 1 + fft_size / 2}));
  return absl::OkStatus();
}

absl::Status MfccShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape spectrogram, c.WithRank(0, 3));
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  const auto coefficients = c.attr<int64_t>("dct_coefficient_count");
  if (coefficients < 0)
    return InvalidArgument("dct_coefficient_count must not be negative, got ", coefficients);
  c.set_output(0, Shape({spectrogram.dim(0), spectrogram.dim(1), coefficients}));
  return absl::OkStatus();
}

absl::Status MicrofrontendShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape audio, c.WithRank(0, 1));
  const auto rate = c.attr<int64_t>("sample_rate"), stride = c.attr<int64_t>("frame_stride");
  WEIR_ASSIGN_OR_RETURN(int64_t window, MulDims(c.attr<int64_t>("window_size"), rate));
  WEIR_ASSIGN_OR_RETURN(int64_t step, MulDims(c.attr<int64_t>("window_step"), rate));
  window /= 1000;
  step /= 1000;
  if (audio.rank() == 1 && audio.dim(0) >= 0 && step <= 0)
    return InvalidArgument("Divisor must be positive but is ", step);
  WEIR_ASSIGN_OR_RETURN(int64_t stack,
                        AddDims(c.attr<int64_t>("left_context"), c.attr<int64_t>("right_context")));
  WEIR_ASSIGN_OR_RETURN(stack, AddDims(stack, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t features, MulDims(c.attr<int64_t>("num_channels"), stack));
  const bool valid = window > 0 && step > 0 && stride > 0;
  const int64_t frames = valid ? CountWindows(audio.dim(0), window, step) : Shape::kUnknown;
  c.set_output(0, Shape({frames <= 0 ? frames : (frames - 1) / stride + 1, features}));
  return absl::OkStatus();
}

OpSpec MicrofrontendSpec() {
  return OpSpec("AudioMicrofrontend")
      .In("audio: int16")
      .Out("filterbanks: out_type")
      .Attr("sample_rate: int = 16000")
      .Attr("window_size: int = 25")
      .Attr("window_step: int = 10")
      .Attr("num_channels: int = 32")
      .Attr("upper_band_limit: float = 7500.0")
      .Attr("lower_band_limit: float = 125.0")
      .Attr("smoothing_bits: int = 10")
      .Attr("even_smoothing: float = 0.025")
      .Attr("odd_smoothing: float = 0.06")
      .Attr("min_signal_remaining: float = 0.05")
      .Attr("enable_pcan: bool = false")
      .Attr("pcan_strength: float = 0.95")
      .Attr("pcan_offset: float = 80.0")
      .Attr("gain_bits: int = 21")
      .Attr("enable_log: bool = true")
      .Attr("scale_shift: int = 6")
      .Attr("left_context: int = 0")
      .Attr("right_context: int = 0")
      .Attr("frame_stride: int = 1")
      .Attr("zero_padding: bool = false")
      .Attr("out_scale: int = 1")
      .Attr("out_type: {uint16, float} = DT_UINT16")
      .InferShape(MicrofrontendShape)
      .NotDifferentiable()
      .Doc(
          "Computes features of windows of speech in fixed point, as keyword spotters use them: "
          "mel-spaced channels, with less noise, normalized gain and as logarithms.");
}

}  // namespace

// ---- op definitions

void AddAudioOps(OpRegistry* ops) {
  ops->Add(OpSpec("DecodeWav")
               .In("contents: string")
               .Out("audio: float, sample_rate: int32")
               .Attr("desired_channels: int = -1")
               .Attr("desired_samples: int = -1")
               .InferShape(DecodeWavShape)
               .NotDifferentiable()
               .Doc("Decodes a WAV file of 16-bit PCM samples to floats in [-1, 1]."));
  ops->Add(OpSpec("EncodeWav")
               .In("audio: float, sample_rate: int32")
               .Out("contents: string")
               .InferShape(EncodeWavShape)
               .NotDifferentiable()
               .Doc("Encodes audio as a WAV file of 16-bit PCM samples."));
  ops->Add(OpSpec("AudioSpectrogram")
               .In("input: float")
               .Out("spectrogram: float")
               .Attr("window_size: int")
               .Attr("stride: int")
               .Attr("magnitude_squared: bool = false")
               .InferShape(SpectrogramShape)
               .NotDifferentiable()
               .Doc("Computes the magnitudes of the frequencies of successive windows of audio."));
  ops->Add(OpSpec("Mfcc")
               .In("spectrogram: float, sample_rate: int32")
               .Out("output: float")
               .Attr("upper_frequency_limit: float = 4000.0")
               .Attr("lower_frequency_limit: float = 20.0")
               .Attr("filterbank_channel_count: int = 40")
               .Attr("dct_coefficient_count: int = 13")
               .InferShape(MfccShape)
               .NotDifferentiable()
               .Doc("Computes the mel-frequency cepstral coefficients of a spectrogram of squared "
                    "magnitudes."));
  ops->Add(MicrofrontendSpec());
}

// ---- builders

DecodedWav DecodeWav(Output contents, int desired_channels, int desired_samples,
                     absl::string_view name) {
  Node* const node =
      AddNode("DecodeWav", {contents},
              {{"desired_channels", desired_channels}, {"desired_samples", desired_samples}}, name);
  if (node == nullptr) return {};
  return {node->output(0), node->output(1)};
}

Output EncodeWav(Output audio, Output sample_rate, absl::string_view name) {
  return AddOp("EncodeWav", {audio, sample_rate}, {}, name);
}

Output AudioSpectrogram(Output input, int window_size, int stride, bool magnitude_squared,
                        absl::string_view name) {
  return AddOp(
      "AudioSpectrogram", {input},
      {{"window_size", window_size}, {"stride", stride}, {"magnitude_squared", magnitude_squared}},
      name);
}

Output Mfcc(Output spectrogram, Output sample_rate, const MfccOptions& o, absl::string_view name) {
  return AddOp("Mfcc", {spectrogram, sample_rate},
               {{"upper_frequency_limit", o.upper_frequency_limit},
                {"lower_frequency_limit", o.lower_frequency_limit},
                {"filterbank_channel_count", o.filterbank_channel_count},
                {"dct_coefficient_count", o.dct_coefficient_count}},
               name);
}

}  // namespace weir
