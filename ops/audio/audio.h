#ifndef WEIR_OPS_AUDIO_AUDIO_H_
#define WEIR_OPS_AUDIO_AUDIO_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// TensorFlow's audio ops. Each builder adds the node of the op of that name; the last argument is
// the name. Audio is float [samples, channels], in [-1, 1]. No op has a gradient.
namespace WEIR_API weir {

// The contents of a WAV file.
struct DecodedWav {
  Output audio;        // float [samples, channels]
  Output sample_rate;  // int32 scalar, in Hz
};
// Decodes a file of 16-bit PCM samples from a string scalar. `desired_channels` and
// `desired_samples` are the sizes of the result, -1 for those of the file: additional channels
// repeat the last one, additional samples are 0, and the rest is cut off. INVALID_ARGUMENT at run
// time for other files.
DecodedWav DecodeWav(Output contents, int desired_channels = -1, int desired_samples = -1,
                     absl::string_view name = {});
// Returns a WAV file with 16-bit samples as a string scalar; values outside [-1, 1] are clamped.
Output EncodeWav(Output audio, Output sample_rate, absl::string_view name = {});

// Returns the magnitudes of the frequencies of windows of `window_size` samples that begin every
// `stride` samples: float [channels, windows, 1 + n / 2], where n is the next power of two of
// `window_size`. Windows are weighted by a Hann window and padded with zeros. `magnitude_squared`
// omits the square root; Mfcc expects this.
Output AudioSpectrogram(Output input, int window_size, int stride, bool magnitude_squared = false,
                        absl::string_view name = {});

// The filters of Mfcc, and how many of its coefficients are kept.
struct MfccOptions {
  float upper_frequency_limit = 4000, lower_frequency_limit = 20;  // in Hz
  int filterbank_channel_count = 40;  // triangular filters, evenly spaced on the mel scale
  int dct_coefficient_count = 13;     // at most as many as channels
};
// Returns the mel-frequency cepstral coefficients of each window of a spectrogram of squared
// magnitudes: float [channels, windows, dct_coefficient_count]. `sample_rate` is an int32 scalar.
Output Mfcc(Output spectrogram, Output sample_rate, const MfccOptions& options = {},
            absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_AUDIO_AUDIO_H_
