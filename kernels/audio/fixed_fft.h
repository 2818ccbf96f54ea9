#ifndef WEIR_KERNELS_AUDIO_FIXED_FFT_H_
#define WEIR_KERNELS_AUDIO_FIXED_FFT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weir {

// A complex number in fixed point, with 15 fractional bits.
struct FixedComplex {
  int16_t re = 0, im = 0;
};

// The discrete Fourier transform of n real numbers, divided by n, in fixed point. The roundings are
// those of KISS FFT with 16 bits (M. Borgerding), so the bits are TensorFlow's.
class FixedFft {
 public:
  // `n` is a power of two, at least 2.
  explicit FixedFft(int64_t n);

  int64_t size() const { return 2 * half_; }
  // Returns the first n / 2 + 1 frequencies of n numbers. The result is valid until the next call.
  absl::Span<const FixedComplex> Run(const int16_t* samples);

 private:
  void Transform(const FixedComplex* in, FixedComplex* out, int64_t n, int64_t stride) const;

  const int64_t half_;
  std::vector<FixedComplex> twiddles_;       // exp(-2 pi i k / half_)
  std::vector<FixedComplex> real_twiddles_;  // exp(-pi i ((k + 1) / half_ + 1/2))
  std::vector<FixedComplex> pairs_, halves_, out_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_AUDIO_FIXED_FFT_H_
