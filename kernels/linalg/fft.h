#ifndef WEIR_KERNELS_LINALG_FFT_H_
#define WEIR_KERNELS_LINALG_FFT_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "kissfft/kissfft.hh"

namespace weir {

// The discrete Fourier transform of one length:
//   out[k] = sum of in[j] exp(-2 pi i j k / n), or with exp(+2 pi i j k / n) if inverse; not
//   scaled.
// Computed in double, also for single precision: the twiddle factors have the precision of the
// computation, and in float they would dominate the error. Construction takes time proportional to
// n. A copy is cheap, and each thread needs its own.
class FourierTransform {
 public:
  using Number = std::complex<double>;
  FourierTransform(int64_t n, bool inverse);

  int64_t length() const { return n_; }
  void Run(const Number* in, Number* out);

 private:
  void RunByConvolution(const Number* in, Number* out);

  int64_t n_;
  kissfft<double> fft_;  // of length n, or of the convolution
  // For lengths with a large prime factor, otherwise empty.
  std::vector<Number> chirp_, transformed_chirp_, work_, result_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_LINALG_FFT_H_
