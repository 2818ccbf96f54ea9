#include "weir/kernels/audio/microfrontend.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "weir/core/tensor/status.h"

// All steps are in integers. Weights and windows have 12 fractional bits, the coefficients of
// smoothing 14. float and double alternate where tables are made as they do in TensorFlow, whose
// rounding decides about bits of the features.
namespace weir {

namespace {

constexpr int kWeightBits = 12, kSmoothingBits = 14, kSnrBits = 12, kPcanOutputBits = 6;
constexpr int64_t kMostSamples = 32768;  // positions of bins are int16 in TensorFlow
constexpr int kMostChannels = 1 << 16;

float MelOf(float hertz) { return static_cast<float>(1127.0 * std::log1p(hertz / 700.0)); }

// The square root, rounded; numbers of 32 bits are rounded to 16 bits.
template <class Word>
uint32_t RoundedSqrt(Word number) {
  constexpr int kBits = 8 * sizeof(Word);
  if (number == 0) return 0;
  const int leading = std::countl_zero(number) | 1;
  Word bit = Word{1} << (kBits - 1 - leading), root = 0;
  for (; bit != 0; bit >>= 2) {
    if (number >= root + bit) {
      number -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  constexpr Word kLargest = (Word{1} << (kBits / 2)) - 1;
  if (number > root && root != kLargest) ++root;
  return static_cast<uint32_t>(root);
}

uint32_t SqrtOf(uint64_t number) {
  return number >> 32 == 0 ? RoundedSqrt(static_cast<uint32_t>(number)) : RoundedSqrt(number);
}

// log2(1 + x) - x for x = k / 128, with 16 fractional bits.
constexpr int kSegments = 128;
constexpr uint16_t kLogCorrection[kSegments + 1] = {
    0,    224,  442,  654,  861,  1063, 1259, 1450, 1636, 1817, 1992, 2163, 2329, 2490, 2646,
    2797, 2944, 3087, 3224, 3358, 3487, 3611, 3732, 3848, 3960, 4068, 4172, 4272, 4368, 4460,
    4549, 4633, 4714, 4791, 4864, 4934, 5001, 5063, 5123, 5178, 5231, 5280, 5326, 5368, 5408,
    5444, 5477, 5507, 5533, 5557, 5578, 5595, 5610, 5622, 5631, 5637, 5640, 5641, 5638, 5633,
    5626, 5615, 5602, 5586, 5568, 5547, 5524, 5498, 5470, 5439, 5406, 5370, 5332, 5291, 5249,
    5203, 5156, 5106, 5054, 5000, 4944, 4885, 4825, 4762, 4697, 4630, 4561, 4490, 4416, 4341,
    4264, 4184, 4103, 4020, 3935, 3848, 3759, 3668, 3575, 3481, 3384, 3286, 3186, 3084, 2981,
    2875, 2768, 2659, 2549, 2437, 2323, 2207, 2090, 1971, 1851, 1729, 1605, 1480, 1353, 1224,
    1094, 963,  830,  695,  559,  421,  282,  142,  0};

// The natural logarithm of x > 1, times 2^scale_shift: the integer part of log2 is the position of
// the highest bit, the fraction is interpolated linearly.
uint32_t ScaledLog(uint32_t x, int scale_shift) {
  constexpr int kBits = 16, kSegmentBits = 7;
  constexpr uint32_t kLn2 = 45426, kHalf = 1u << 15;  // with 16 fractional bits
  const int integer = std::bit_width(x) - 1;
  const uint32_t rest = x - (1u << integer);
  const auto fraction =
      static_cast<int32_t>(integer < kBits ? rest << (kBits - integer) : rest >> (integer - kBits));
  const int segment = fraction >> (kBits - kSegmentBits);
  const int32_t low = kLogCorrection[segment], high = kLogCorrection[segment + 1];
  const int32_t from_segment = fraction - (segment << (kBits - kSegmentBits));
  const int32_t fraction_log = fraction + low + (((high - low) * from_segment) >> kBits);
  const uint32_t log2 = (static_cast<uint32_t>(integer) << kBits) + fraction_log;
  const auto log = static_cast<uint32_t>((uint64_t{kLn2} * log2 + kHalf) >> kBits);
  return ((log << scale_shift) + kHalf) >> kBits;
}

uint32_t FixedSmoothing(float smoothing) {
  return static_cast<uint16_t>(std::clamp(smoothing * (1 << kSmoothingBits), 0.0f, 65535.0f));
}

absl::Status Refuse(absl::string_view reason) {
  return Internal("failed to populate frontend state: ", reason);
}

}  // namespace

Microfrontend::Microfrontend(const MicrofrontendOptions& options, int64_t fft_size)
    : options_(options),
      fft_(fft_size),
      correction_bits_(std::bit_width(static_cast<uint32_t>(fft_size)) - 1 - kWeightBits / 2),
      noise_(options.channels),
      scaled_(fft_size),
      sums_(options.channels + 1) {
  const auto step = static_cast<float>(std::numbers::pi * 2.0 / static_cast<float>(options.window));
  for (int64_t i = 0; i < options.window; ++i) {
    const auto value =
        static_cast<float>(0.5 - 0.5 * std::cos(step * (static_cast<double>(i) + 0.5)));
    window_.push_back(static_cast<int16_t>(std::floor(value * (1 << kWeightBits) + 0.5)));
  }
}

absl::StatusOr<Microfrontend> Microfrontend::Make(const MicrofrontendOptions& o) {
  const auto is_shift = [](int bits, int most) { return bits >= 0 && bits <= most; };
  if (o.window < 2 || o.window > kMostSamples || o.step < 1 || o.step > o.window)
    return Refuse("the window must have 2 to 32768 samples, and the step must not be longer");
  if (o.channels < 1 || o.channels > kMostChannels)
    return Refuse("num_channels must be in [1, 65536]");
  if (!(o.lower_limit >= 0) || !(o.upper_limit > o.lower_limit))
    return Refuse("the limits of the band must satisfy 0 <= lower < upper");
  if (!is_shift(o.smoothing_bits, 31) || !is_shift(o.scale_shift, 31))
    return Refuse("smoothing_bits and scale_shift must be in [0, 31]");
  const auto fft_size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(o.window)));
  Microfrontend out(o, fft_size);
  WEIR_RETURN_IF_ERROR(out.MakeBands());
  if (o.enable_pcan) {
    if (!is_shift(o.gain_bits, 31) || !is_shift(o.smoothing_bits - out.correction_bits_, 31) ||
        !is_shift(o.gain_bits - out.correction_bits_ - kSnrBits, 63)) {
      return Refuse("gain_bits and smoothing_bits do not fit the length of the window");
    }
    out.MakeGains();
  }
  return out;
}

// Channel i extends over the bins up to the (i + 1)-th of channels + 1 steps on the mel scale. The
// weight of a bin falls from 1 at the beginning of its channel to 0 at the end, and rises in the
// next one.
absl::Status Microfrontend::MakeBands() {
  const int64_t bins = fft_.size() / 2 + 1;
  const auto hertz_per_bin =
      static_cast<float>(0.5 * options_.sample_rate / (static_cast<float>(bins) - 1));
  const int count = options_.channels + 1;
  const float mel_low = MelOf(options_.lower_limit);
  const float spacing = (MelOf(options_.upper_limit) - mel_low) / static_cast<float>(count);
  const double first = 1.5 + options_.lower_limit / hertz_per_bin;  // never bin 0
  if (!(first < static_cast<double>(bins))) return Refuse("the lower limit is above the spectrum");
  auto bin = static_cast<int64_t>(first);
  float low = mel_low;
  for (int i = 0; i < count; ++i) {
    const float high = mel_low + spacing * static_cast<float>(i + 1);
    Band band{.begin = bin};
    for (;; ++bin) {
      const float mel = MelOf(static_cast<float>(bin) * hertz_per_bin);
      if (!(mel <= high)) break;
      if (bin + 1 >= bins) return Refuse("the filter bank ends above the spectrum");
      const float weight = (high - mel) / (high - low);
      band.weights.push_back(static_cast<int16_t>(std::floor(weight * (1 << kWeightBits) + 0.5)));
      band.unweights.push_back(
          static_cast<int16_t>(std::floor((1.0 - weight) * (1 << kWeightBits) + 0.5)));
    }
    bands_.push_back(std::move(band));
    low = high;
  }
  return absl::OkStatus();
}

// ---- gain

int16_t Microfrontend::Gain(uint32_t noise) const {
  const int input_bits = options_.smoothing_bits - correction_bits_;
  const float x = static_cast<float>(noise) / static_cast<float>(1u << input_bits);
  const float gain = static_cast<float>(1u << options_.gain_bits) *
                     std::pow(x + options_.pcan_offset, -options_.pcan_strength);
  constexpr float kMost = 32767;
  return gain > kMost ? int16_t{32767} : static_cast<int16_t>(std::max(gain + 0.5f, -kMost));
}

// For each power of two, the coefficients of the parabola through three gains.
void Microfrontend::MakeGains() {
  constexpr int kWidth = 32;
  gains_ = {Gain(0), Gain(1)};  // the parabola of 2 begins with the gain of 2
  for (int bits = 2; bits <= kWidth; ++bits) {
    const uint32_t x0 = 1u << (bits - 1), x1 = x0 + (x0 >> 1);
    const uint32_t x2 = bits == kWidth ? x0 + (x0 - 1) : 2 * x0;
    const int32_t y0 = Gain(x0), to_middle = Gain(x1) - y0, to_end = Gain(x2) - y0;
    const int32_t slope = 4 * to_middle - to_end;
    gains_.push_back(static_cast<int16_t>(y0));
    gains_.push_back(static_cast<int16_t>(slope));
    gains_.push_back(static_cast<int16_t>(to_end - slope));
  }
}

int16_t Microfrontend::InterpolatedGain(uint32_t noise) const {
  if (noise <= 2) return gains_[noise];
  const int bits = std::bit_width(noise);
  const int16_t* const parabola = gains_.data() + 2 + 3 * (bits - 2);
  const auto fraction =
      static_cast<int32_t>((bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 0x3FF);
  int32_t result = (int32_t{parabola[2]} * fraction) >> 5;
  result += static_cast<int32_t>(static_cast<uint32_t>(parabola[1]) << 5);
  result = static_cast<int32_t>(static_cast<uint32_t>(result) * static_cast<uint32_t>(fraction));
  result = (result + (1 << 14)) >> 15;
  return static_cast<int16_t>(result + parabola[0]);
}

uint32_t Microfrontend::Normalize(int channel, uint32_t signal) const {
  const auto gain = static_cast<uint32_t>(InterpolatedGain(noise_[channel]));
  const int shift = options_.gain_bits - correction_bits_ - kSnrBits;
  const auto snr = static_cast<uint32_t>((uint64_t{signal} * gain) >> shift);
  if (snr < 2u << kSnrBits) return (snr * snr) >> (2 + 2 * kSnrBits - kPcanOutputBits);
  return (snr >> (kSnrBits - kPcanOutputBits)) - (1u << kPcanOutputBits);
}

// ---- one window

// Moves the estimate of the noise toward the signal, and returns what is above it, at least a
// fraction of the signal.
uint32_t Microfrontend::ReduceNoise(int channel, uint32_t signal) {
  const uint32_t smoothing =
      FixedSmoothing(channel % 2 == 0 ? options_.even_smoothing : options_.odd_smoothing);
  const uint32_t rest = (1u << kSmoothingBits) - smoothing;
  const uint32_t shifted = signal << options_.smoothing_bits;
  uint32_t& noise = noise_[channel];
  noise = static_cast<uint32_t>((uint64_t{shifted} * smoothing + uint64_t{noise} * rest) >>
                                kSmoothingBits);
  const uint32_t above = (shifted - std::min(noise, shifted)) >> options_.smoothing_bits;
  const auto least = static_cast<uint32_t>(
      (uint64_t{signal} * FixedSmoothing(options_.min_signal_remaining)) >> kSmoothingBits);
  return std::max(above, least);
}

uint16_t Microfrontend::Scale(uint32_t signal) const {
  if (options_.enable_log) {
    signal = correction_bits_ < 0 ? signal >> -correction_bits_ : signal << correction_bits_;
    signal = signal > 1 ? ScaledLog(signal, options_.scale_shift) : 0;
  }
  return static_cast<uint16_t>(std::min<uint32_t>(signal, 65535));
}

void Microfrontend::SumChannels(absl::Span<const FixedComplex> spectrum, uint64_t* sums) const {
  uint64_t carried = 0;  // from the rising side of the channel's triangle
  for (const Band& band : bands_) {
    uint64_t sum = carried;
    carried = 0;
    for (size_t i = 0; i < band.weights.size(); ++i) {
      const FixedComplex x = spectrum[band.begin + static_cast<int64_t>(i)];
      // The largest energy, 2^31, is negative as TensorFlow's int32.
      const auto energy = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(
          static_cast<uint32_t>(x.re * x.re) + static_cast<uint32_t>(x.im * x.im))));
      sum += static_cast<uint64_t>(int64_t{band.weights[i]}) * energy;
      carried += static_cast<uint64_t>(int64_t{band.unweights[i]}) * energy;
    }
    *sums++ = sum;
  }
}

void Microfrontend::Process(const int16_t* samples, uint16_t* features) {
  int16_t largest = 0;
  for (size_t i = 0; i < window_.size(); ++i) {
    scaled_[i] = static_cast<int16_t>((int32_t{samples[i]} * window_[i]) >> kWeightBits);
    const auto magnitude = static_cast<int16_t>(scaled_[i] < 0 ? -scaled_[i] : scaled_[i]);
    largest = std::max(largest, magnitude);
  }
  // Shifted up, for the most precise transform.
  const int shift = 15 - std::bit_width(static_cast<uint32_t>(largest));
  for (size_t i = 0; i < window_.size(); ++i) {
    scaled_[i] = static_cast<int16_t>(static_cast<uint16_t>(scaled_[i]) << shift);
  }
  SumChannels(fft_.Run(scaled_.data()), sums_.data());
  for (int channel = 0; channel < options_.channels; ++channel) {
    uint32_t signal = ReduceNoise(channel, SqrtOf(sums_[channel + 1]) >> shift);
    if (options_.enable_pcan) signal = Normalize(channel, signal);
    features[channel] = Scale(signal);
  }
}

}  // namespace weir
