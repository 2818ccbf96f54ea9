#include <limits>

#include "weir/kernels/audio/audio.h"
#include "weir/kernels/audio/wav.h"
#include "weir/kernels/lib/arguments.h"

// The ops that read and write WAV files.
namespace weir {

namespace {

// -1: as in the file.
struct WantedSize {
  int channels = -1, samples = -1;
};

// Missing channels repeat the last one; missing frames are silent.
absl::Status DecodeWav(KernelContext& c, const WantedSize& wanted) {
  const Tensor& contents = c.input(0);
  if (contents.rank() != 0) {
    return InvalidArgument("contents must be scalar, got shape ", contents.shape().ToString());
  }
  const std::string& file = contents.scalar<std::string>();
  if (file.size() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("WAV contents are too large for int: ", file.size());
  }
  WEIR_ASSIGN_OR_RETURN(const WavFile wav, ReadWav(file));
  if (wanted.channels < -1) {
    return InvalidArgument("desired_channels must be >= -1, got ", wanted.channels);
  }
  if (wanted.samples < -1) {
    return InvalidArgument("desired_samples must be >= -1, got ", wanted.samples);
  }
  const int64_t frames = wanted.samples < 0 ? wav.frames : wanted.samples;
  const int64_t channels = wanted.channels < 0 ? wav.channels : wanted.channels;
  WEIR_ASSIGN_OR_RETURN(Tensor * audio, c.AllocateOutput(0, Shape({frames, channels})));
  float* to = audio->data<float>();
  for (int64_t frame = 0; frame < frames; ++frame) {
    ThrowIfCancelledAt(frame);
    for (int64_t channel = 0; channel < channels; ++channel) {
      *to++ = frame < wav.frames ? wav.Sample(frame, std::min(channel, wav.channels - 1)) : 0.0f;
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * rate, c.AllocateOutput(1, Shape()));
  *rate->data<int32_t>() = static_cast<int32_t>(wav.sample_rate);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeDecodeWav(const KernelInit& init) {
  WantedSize wanted;
  WEIR_ASSIGN_OR_RETURN(wanted.channels, NarrowAttr(init.node, "desired_channels"));
  WEIR_ASSIGN_OR_RETURN(wanted.samples, NarrowAttr(init.node, "desired_samples"));
  return Kernel([wanted](KernelContext& c) { return DecodeWav(c, wanted); });
}

absl::Status EncodeWav(KernelContext& c) {
  const Tensor& audio = c.input(0);
  if (audio.rank() != 2) {
    return InvalidArgument("audio must be 2-dimensional, but has shape ", audio.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const int32_t rate, ReadSampleRate(c.input(1)));
  if (audio.num_elements() >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Cannot encode audio with >= max int32 elements");
  }
  WEIR_ASSIGN_OR_RETURN(std::string file,
                        WriteWav(audio.data<float>(), rate, audio.dim(1), audio.dim(0)));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<std::string>() = std::move(file);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int32_t> ReadSampleRate(const Tensor& t) {
  if (t.rank() != 0) {
    return InvalidArgument("Input sample_rate should be a scalar tensor, got ",
                           t.shape().ToString(), " instead.");
  }
  return t.scalar<int32_t>();
}

void AddWavCpu(KernelRegistry* r) {
  r->Add("DecodeWav", kCpu, MakeDecodeWav);
  r->Add("EncodeWav", kCpu, EncodeWav);
}

}  // namespace weir
