#ifndef WEIR_KERNELS_FFT_H_
#define WEIR_KERNELS_FFT_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "kissfft/kissfft.hh"

namespace weir {

// The discrete Fourier transform of one length:
//   out[k] = sum of in[j] exp(-2 pi i j k / n), or with exp(+2 pi i j k / n) if inverse; not
//   scaled.
// In double, also for single precision: the factors are made in the type that is computed in, and
// in float they would be its weakest part. Making one takes time in proportion to n; a copy is
// cheap, and each thread needs one of its own.
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
  // For lengths with a large prime factor, else empty.
  std::vector<Number> chirp_, transformed_chirp_, work_, result_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_FFT_H_
