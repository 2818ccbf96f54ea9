#include "weir/kernels/linalg/fft.h"

#include <algorithm>
#include <cmath>

namespace weir {

namespace {

// kissfft takes p n steps for a prime factor p of n: above this limit a convolution is faster.
constexpr int64_t kLargestFactor = 64;

bool HasLargeFactor(int64_t n) {
  for (int64_t p = 2; p <= kLargestFactor; ++p) {
    while (n % p == 0) n /= p;
  }
  return n > 1;
}

// The length that kissfft transforms: n, or a power of two that is at least 2n - 1.
int64_t TransformedLength(int64_t n) {
  if (!HasLargeFactor(n)) return n;
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  return m;
}

}  // namespace

// Bluestein's algorithm ("A linear filtering approach to the computation of discrete Fourier
// transform", 1970). Because 2jk = j^2 + k^2 - (k - j)^2, with the chirp c[j] = exp(-pi i j^2 / n)
//
//   out[k] = c[k] sum of (in[j] c[j]) conj(c[k - j]).
//
// This is a convolution, which three transforms of any length m >= 2n - 1 compute; the transform of
// conj(c), wrapped circularly, is precomputed. j^2 is reduced modulo 2n as an integer, so that the
// angles stay exact for large n. The inverse transform is the conjugate of the transform of the
// conjugates.
FourierTransform::FourierTransform(int64_t n, bool inverse)
    : n_(n), fft_(static_cast<size_t>(TransformedLength(n)), inverse && TransformedLength(n) == n) {
  const int64_t m = TransformedLength(n);
  if (m == n) return;
  const size_t size = static_cast<size_t>(m), length = static_cast<size_t>(n);
  chirp_.resize(length);
  transformed_chirp_.resize(size);
  work_.resize(size);
  result_.resize(size);
  for (int64_t j = 0; j < n; ++j) {
    const int64_t square =
        static_cast<int64_t>(static_cast<unsigned __int128>(j) * static_cast<uint64_t>(j) %
                             static_cast<uint64_t>(2 * n));
    const double angle = M_PI * static_cast<double>(square) / static_cast<double>(n);
    chirp_[static_cast<size_t>(j)] = std::polar(1.0, inverse ? angle : -angle);
  }
  for (size_t j = 0; j < length; ++j) {
    work_[j] = work_[(size - j) % size] = std::conj(chirp_[j]) / static_cast<double>(m);
  }
  fft_.transform(work_.data(), transformed_chirp_.data());
}

void FourierTransform::Run(const Number* in, Number* out) {
  if (chirp_.empty()) {
    fft_.transform(in, out);
  } else {
    RunByConvolution(in, out);
  }
}

void FourierTransform::RunByConvolution(const Number* in, Number* out) {
  const size_t n = static_cast<size_t>(n_);
  std::fill(work_.begin() + static_cast<std::ptrdiff_t>(n), work_.end(), Number(0));
  for (size_t j = 0; j < n; ++j) work_[j] = in[j] * chirp_[j];
  fft_.transform(work_.data(), result_.data());
  for (size_t i = 0; i < result_.size(); ++i) {
    work_[i] = std::conj(result_[i] * transformed_chirp_[i]);
  }
  fft_.transform(work_.data(), result_.data());
  for (size_t k = 0; k < n; ++k) out[k] = std::conj(result_[k]) * chirp_[k];
}

}  // namespace weir
