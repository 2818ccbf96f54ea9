#include <vector>

#include "weir/core/tensor/status.h"
#include "weir/kernels/audio/wav.h"
#include "weir/kernels/image/image_codec.h"
#include "weir/tests/fuzz/targets.h"

// Files of sound and of pictures. Samples and pixels are as many as the header says.
namespace weir::fuzz {

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 22;  // keeps an input fast

}  // namespace

void Wav(absl::string_view bytes) {
  const auto wav = ReadWav(bytes);
  if (!wav.ok()) {
    Require(absl::IsInvalidArgument(wav.status()), "a file that is not one is an invalid argument");
    return;
  }
  Require(wav->channels >= 1 && wav->frames >= 0, "there are channels");
  std::vector<float> samples;
  for (int64_t frame = 0; frame < wav->frames; ++frame) {
    for (int64_t channel = 0; channel < wav->channels; ++channel)
      samples.push_back(wav->Sample(frame, channel));
  }
  const auto written = WriteWav(samples.data(), wav->sample_rate, wav->channels, wav->frames);
  Require(written.ok() == (wav->sample_rate > 0), "samples are written");
  if (!written.ok()) return;
  const auto again = ReadWav(*written);
  Require(again.ok() && again->samples == wav->samples, "with the same bits");
}

// The first byte selects the channels, the rest is the file.
void Webp(absl::string_view bytes) {
  Input in(bytes);
  const uint8_t selector = in.Byte();
  const int channels = selector % 3 == 0 ? 0 : 2 + selector % 3;
  std::vector<uint8_t> pixels;
  const auto allocate = [&](const DecodedSize& size) -> absl::StatusOr<uint8_t*> {
    Require(size.frames >= 1 && size.height >= 1 && size.width >= 1, "there are pixels");
    Require(size.channels == 3 || size.channels == 4, "of 3 or 4 channels");
    const int64_t bytes_of_image = size.frames * size.height * size.width * size.channels;
    Require(bytes_of_image <= kMostPixels, "the size has a bound");
    if (bytes_of_image > kMostBytes) return InvalidArgument("too large for a test");
    pixels.resize(static_cast<size_t>(bytes_of_image));
    return pixels.data();
  };
  const absl::Status status = DecodeWebp(in.RemainingBytes(), channels, selector >= 128, allocate);
  Require(status.ok() || absl::IsInvalidArgument(status), "the error is an invalid argument");
}

std::vector<Row> Rows() { return {{"wav", Wav, 4000}, {"webp", Webp, 4000}}; }

}  // namespace weir::fuzz
