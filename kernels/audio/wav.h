#ifndef WEIR_KERNELS_AUDIO_WAV_H_
#define WEIR_KERNELS_AUDIO_WAV_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// WAV files of 16-bit PCM samples, the only kind that TensorFlow's ops read and write.
namespace weir {

// What the header of a file says, and its samples: frames * channels little-endian int16, in the
// bytes of the file.
struct WavFile {
  int64_t channels = 0, frames = 0;
  uint32_t sample_rate = 0;
  absl::string_view samples;

  // Returns sample `channel` of frame `frame`, in [-1, 1).
  float Sample(int64_t frame, int64_t channel) const;
};

// Finds the samples of a file. INVALID_ARGUMENT if it is not a WAV file of 16-bit PCM samples, or
// if it ends early. Allocates nothing; the result refers to `file`.
absl::StatusOr<WavFile> ReadWav(absl::string_view file);

// Returns a file with these samples, [frames][channels]. Values are rounded to multiples of 2^-15
// and clamped to [-1, 1); NaN becomes 0. INVALID_ARGUMENT if the sample rate or the number of
// channels is 0, or if the samples do not fit the format.
absl::StatusOr<std::string> WriteWav(const float* samples, int64_t sample_rate, int64_t channels,
                                     int64_t frames);

}  // namespace weir

#endif  // WEIR_KERNELS_AUDIO_WAV_H_
