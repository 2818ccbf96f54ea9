#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "weir/kernels/audio/audio.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/fft.h"

// The magnitudes of short-time Fourier transforms. Each window of samples is multiplied by a
// periodic Hann window, padded with zeros to a power of two, and transformed in double.
namespace weir {

namespace {

struct Windows {
  int64_t size = 0, stride = 0;
  bool squared = false;

  int64_t fft_size() const { return static_cast<int64_t>(std::bit_ceil(uint64_t(size))); }
  int64_t frequencies() const { return fft_size() / 2 + 1; }
  int64_t Count(int64_t samples) const {
    return samples < size ? 0 : 1 + (samples - size) / stride;
  }
};

std::vector<double> HannWindow(int64_t size) {
  std::vector<double> window(size);
  for (int64_t i = 0; i < size; ++i) {
    window[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                                     static_cast<double>(size));
  }
  return window;
}

// How many windows are transformed at a time: enough for the lanes of vectors, and little memory.
int64_t RowsAtOnce(int64_t count, int64_t fft_size) {
  constexpr int64_t kMostRows = 32, kMostSamples = int64_t{1} << 22;
  return std::clamp<int64_t>(kMostSamples / fft_size, 1, std::min(count, kMostRows));
}

absl::Status Spectrogram(KernelContext& c, const Windows& w) {
  const Tensor& input = c.input(0);
  if (input.rank() != 2) {
    return InvalidArgument("input must be 2-dimensional, but has shape ", input.shape().ToString());
  }
  const int64_t channels = input.dim(1), count = w.Count(input.dim(0));
  const int64_t n = w.fft_size(), frequencies = w.frequencies();
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({channels, count, frequencies}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  const int64_t rows = RowsAtOnce(count, n);
  WEIR_ASSIGN_OR_RETURN(Tensor padded, c.AllocateTemp(DT_DOUBLE, Shape({rows, n})));
  WEIR_ASSIGN_OR_RETURN(Tensor spectra, c.AllocateTemp(DT_DOUBLE, Shape({rows, 2 * frequencies})));
  const std::vector<double> hann = HannWindow(w.size);
  const fft::LineTransform<double> transform(n, fft::Kind::kFromReal, fft::Use::kRows);
  std::fill_n(padded.data<double>(), rows * n, 0.0);
  float* to = out->data<float>();
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t first = 0; first < count; first += rows) {
      const int64_t block = std::min(rows, count - first);
      for (int64_t row = 0; row < block; ++row) {
        const float* from = input.data<float>() + (first + row) * w.stride * channels + channel;
        double* const line = padded.data<double>() + row * n;
        for (int64_t i = 0; i < w.size; ++i) line[i] = double{from[i * channels]} * hann[i];
      }
      transform.TransformRows(c.pool(), padded.data<double>(), n, spectra.data<double>(),
                              2 * frequencies, block, false, 1);
      const double* value = spectra.data<double>();
      for (int64_t i = 0; i < block * frequencies; ++i, value += 2) {
        const auto power = static_cast<float>(value[0] * value[0] + value[1] * value[1]);
        *to++ = w.squared ? power : std::sqrt(power);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSpectrogram(const KernelInit& init) {
  Windows w;
  WEIR_ASSIGN_OR_RETURN(w.size, NarrowAttr(init.node, "window_size"));
  WEIR_ASSIGN_OR_RETURN(w.stride, NarrowAttr(init.node, "stride"));
  w.squared = init.attr<bool>("magnitude_squared");
  if (w.size < 2) return InvalidArgument("window_size must be > 1, got ", w.size);
  if (w.stride < 1) return InvalidArgument("stride must be > 0, got ", w.stride);
  return Kernel([w](KernelContext& c) { return Spectrogram(c, w); });
}

}  // namespace

void AddAudioCpu(KernelRegistry* r) {
  r->Add("AudioSpectrogram", kCpu, MakeSpectrogram);
  AddWavCpu(r);
  AddMfccCpu(r);
  AddMicrofrontendCpu(r);
}

}  // namespace weir
