#include <algorithm>
#include <cmath>
#include <numbers>

#include "weir/kernels/audio/audio.h"
#include "weir/kernels/lib/arguments.h"

// Mel-frequency cepstral coefficients: the magnitudes of a spectrum are summed under overlapping
// triangles that are equally wide on the mel scale; the result is the discrete cosine transform of
// the logarithms of these sums. Source: Davis and Mermelstein, "Comparison of parametric
// representations for monosyllabic word recognition in continuously spoken sentences", 1980; the
// mel scale is that of HTK, 1127 ln(1 + f / 700).
namespace weir {

namespace {

struct MfccOptions {
  float upper_limit = 0, lower_limit = 0;  // in Hz
  int channels = 0, coefficients = 0;
};

double MelOf(double hertz) { return 1127.0 * std::log1p(hertz / 700.0); }

// The triangles, and the rows of the cosine transform. Each bin of a spectrum is on the right side
// of the triangle of its band, with its weight, and on the left side of that of the next band, with
// one minus its weight.
class Cepstrum {
 public:
  // INVALID_ARGUMENT if the options do not fit `bins` frequencies up to half the sample rate.
  static absl::StatusOr<Cepstrum> Make(KernelContext& c, const MfccOptions& o, int64_t bins,
                                       int32_t sample_rate) {
    if (o.channels < 1 || sample_rate <= 0 || bins < 2 || !(o.lower_limit >= 0) ||
        !(o.upper_limit > o.lower_limit) || o.coefficients < 1 || o.coefficients > o.channels) {
      return InvalidArgument("Mfcc initialization failed for channel count ", bins,
                             " and sample rate ", sample_rate, ", frequencies from ", o.lower_limit,
                             " to ", o.upper_limit, ", filterbank_channel_count ", o.channels,
                             " and dct_coefficient_count ", o.coefficients);
    }
    Cepstrum out;
    out.options_ = o;
    WEIR_RETURN_IF_ERROR(out.MakeBands(c, bins, sample_rate));
    WEIR_RETURN_IF_ERROR(out.MakeCosines(c));
    return out;
  }

  // Computes the coefficients of one spectrum of squared magnitudes. `sums` has room for a number
  // of each channel.
  void Compute(const float* spectrum, double* sums, float* out) const {
    std::fill_n(sums, options_.channels, 0.0);
    for (int64_t i = begin_; i <= end_; ++i) {
      const double magnitude = std::sqrt(double{spectrum[i]});
      const double weighted = magnitude * weights_.data<double>()[i];
      const int64_t band = bands_.data<int32_t>()[i];
      if (band >= 0) sums[band] += weighted;
      if (band + 1 < options_.channels) sums[band + 1] += magnitude - weighted;
    }
    constexpr double kFloor = 1e-12;
    for (int k = 0; k < options_.channels; ++k) {
      sums[k] = std::log(sums[k] < kFloor ? kFloor : sums[k]);
    }
    const double* cosine = cosines_.data<double>();
    for (int i = 0; i < options_.coefficients; ++i) {
      double sum = 0;
      for (int k = 0; k < options_.channels; ++k) sum += *cosine++ * sums[k];
      out[i] = static_cast<float>(sum);
    }
  }

  // Whether the spectrum reaches the upper limit; if it does not, TensorFlow returns zeros.
  bool covered() const { return covered_; }

 private:
  absl::Status MakeBands(KernelContext& c, int64_t bins, int32_t sample_rate) {
    const double mel_low = MelOf(options_.lower_limit);
    const double spacing = (MelOf(options_.upper_limit) - mel_low) / (options_.channels + 1.0);
    const auto center = [&](int64_t channel) {
      return mel_low + spacing * static_cast<double>(channel + 1);
    };
    const double hertz_per_bin = 0.5 * sample_rate / static_cast<double>(bins - 1);
    covered_ = options_.upper_limit / hertz_per_bin < static_cast<double>(bins);
    if (!covered_) return absl::OkStatus();
    begin_ = static_cast<int64_t>(1.5 + options_.lower_limit / hertz_per_bin);  // not bin 0
    end_ = static_cast<int64_t>(options_.upper_limit / hertz_per_bin);
    WEIR_ASSIGN_OR_RETURN(bands_, c.AllocateTemp(DT_INT32, Shape({bins})));
    WEIR_ASSIGN_OR_RETURN(weights_, c.AllocateTemp(DT_DOUBLE, Shape({bins})));
    int channel = 0;
    for (int64_t i = begin_; i <= end_; ++i) {
      const double mel = MelOf(static_cast<double>(i) * hertz_per_bin);
      while (channel < options_.channels && center(channel) < mel) ++channel;
      const int band = channel - 1;
      const double left = band >= 0 ? center(band) : mel_low;
      bands_.data<int32_t>()[i] = band;
      weights_.data<double>()[i] = (center(band + 1) - mel) / (center(band + 1) - left);
    }
    return absl::OkStatus();
  }

  absl::Status MakeCosines(KernelContext& c) {
    const int64_t channels = options_.channels;
    WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({options_.coefficients, channels}));
    WEIR_ASSIGN_OR_RETURN(cosines_, c.AllocateTemp(DT_DOUBLE, shape));
    const double norm = std::sqrt(2.0 / static_cast<double>(channels));
    const double step = std::numbers::pi / static_cast<double>(channels);
    double* to = cosines_.data<double>();
    for (int i = 0; i < options_.coefficients; ++i) {
      for (int64_t k = 0; k < channels; ++k) {
        ThrowIfCancelledAt(k);
        *to++ = norm * std::cos(i * step * (static_cast<double>(k) + 0.5));
      }
    }
    return absl::OkStatus();
  }

  MfccOptions options_;
  bool covered_ = false;
  int64_t begin_ = 0, end_ = -1;  // the bins under a triangle, both included
  Tensor bands_, weights_, cosines_;
};

absl::Status Mfcc(KernelContext& c, const MfccOptions& o) {
  const Tensor& spectrogram = c.input(0);
  if (spectrogram.rank() != 3) {
    return InvalidArgument("spectrogram must be 3-dimensional, but has shape ",
                           spectrogram.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const int32_t rate, ReadSampleRate(c.input(1)));
  const int64_t bins = spectrogram.dim(2), rows = spectrogram.dim(0) * spectrogram.dim(1);
  WEIR_ASSIGN_OR_RETURN(const Cepstrum cepstrum, Cepstrum::Make(c, o, bins, rate));
  WEIR_ASSIGN_OR_RETURN(const Shape shape,
                        CheckedShape({spectrogram.dim(0), spectrogram.dim(1), o.coefficients}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (!cepstrum.covered()) {
    std::fill_n(out->data<float>(), out->num_elements(), 0.0f);
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(DT_DOUBLE, Shape({o.channels})));
  for (int64_t row = 0; row < rows; ++row) {
    ThrowIfCancelled();
    cepstrum.Compute(spectrogram.data<float>() + row * bins, sums.data<double>(),
                     out->data<float>() + row * o.coefficients);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMfcc(const KernelInit& init) {
  MfccOptions o;
  o.upper_limit = init.attr<float>("upper_frequency_limit");
  o.lower_limit = init.attr<float>("lower_frequency_limit");
  WEIR_ASSIGN_OR_RETURN(o.channels, NarrowAttr(init.node, "filterbank_channel_count"));
  WEIR_ASSIGN_OR_RETURN(o.coefficients, NarrowAttr(init.node, "dct_coefficient_count"));
  return Kernel([o](KernelContext& c) { return Mfcc(c, o); });
}

}  // namespace

void AddMfccCpu(KernelRegistry* r) { r->Add("Mfcc", kCpu, MakeMfcc); }

}  // namespace weir
