#ifndef WEIR_KERNELS_AUDIO_MICROFRONTEND_H_
#define WEIR_KERNELS_AUDIO_MICROFRONTEND_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "weir/kernels/audio/fixed_fft.h"

namespace weir {

// The attributes of AudioMicrofrontend; frequencies in Hz.
struct MicrofrontendOptions {
  int sample_rate = 16000;
  int64_t window = 400, step = 160;  // in samples
  int channels = 32;
  float upper_limit = 7500, lower_limit = 125;
  int smoothing_bits = 10;
  float even_smoothing = 0.025f, odd_smoothing = 0.06f, min_signal_remaining = 0.05f;
  bool enable_pcan = false;
  float pcan_strength = 0.95f, pcan_offset = 80;
  int gain_bits = 21;
  bool enable_log = true;
  int scale_shift = 6;
};

// The fixed-point front end of keyword spotters: features of successive windows of samples, with
// the bits of TensorFlow's. Each window is multiplied by a Hann window and transformed; the
// energies are summed in mel-spaced channels; an estimate of the noise in each channel, from the
// windows before, is subtracted; optionally follow per-channel energy normalization (PCAN: Wang et
// al., "Trainable frontend for robust and far-field keyword spotting", 2017) and a logarithm.
class Microfrontend {
 public:
  // INTERNAL, as in TensorFlow, if the options do not make a front end.
  static absl::StatusOr<Microfrontend> Make(const MicrofrontendOptions& options);

  // Computes the features of the next window: options.channels values.
  void Process(const int16_t* samples, uint16_t* features);

 private:
  // The bins of one channel: their first index, and their weights for this channel and for the next
  // one.
  struct Band {
    int64_t begin = 0;
    std::vector<int16_t> weights, unweights;
  };

  Microfrontend(const MicrofrontendOptions& options, int64_t fft_size);
  absl::Status MakeBands();
  void MakeGains();
  int16_t Gain(uint32_t noise) const;
  int16_t InterpolatedGain(uint32_t noise) const;
  uint32_t ReduceNoise(int channel, uint32_t signal);
  uint32_t Normalize(int channel, uint32_t signal) const;
  uint16_t Scale(uint32_t signal) const;
  void SumChannels(absl::Span<const FixedComplex> spectrum, uint64_t* sums) const;

  const MicrofrontendOptions options_;
  FixedFft fft_;
  const int correction_bits_;
  std::vector<int16_t> window_;  // with 12 fractional bits
  std::vector<Band> bands_;      // one more than channels
  std::vector<uint32_t> noise_;  // of each channel, shifted by smoothing_bits
  std::vector<int16_t>
      gains_;  // of PCAN, for noise that is a power of two, or half way to the next
  std::vector<int16_t> scaled_;
  std::vector<uint64_t> sums_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_AUDIO_MICROFRONTEND_H_
