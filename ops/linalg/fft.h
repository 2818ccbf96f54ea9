#ifndef WEIR_OPS_LINALG_FFT_H_
#define WEIR_OPS_LINALG_FFT_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// Builders of discrete Fourier transforms: TensorFlow's tf.signal. They transform the last one, two
// or three dimensions. The inverse transforms divide by the number of points. The last argument is
// the name.
namespace WEIR_API weir {

// Return the transform, and its inverse, of complex numbers: the shape and dtype of x, complex64 or
// complex128.
Output Fft(Output x, absl::string_view name = {});
Output Fft2d(Output x, absl::string_view name = {});
Output Fft3d(Output x, absl::string_view name = {});
Output Ifft(Output x, absl::string_view name = {});
Output Ifft2d(Output x, absl::string_view name = {});
Output Ifft3d(Output x, absl::string_view name = {});

// Transform real numbers, and back to real numbers. The last dimension of the transform holds only
// the first fft_length / 2 + 1 frequencies. `fft_length` holds the number of points in each
// dimension; x must have at least that many.
Output Rfft(Output x, const Ints& fft_length, absl::string_view name = {});
Output Rfft2d(Output x, const Ints& fft_length, absl::string_view name = {});
Output Rfft3d(Output x, const Ints& fft_length, absl::string_view name = {});
Output Irfft(Output x, const Ints& fft_length, absl::string_view name = {});
Output Irfft2d(Output x, const Ints& fft_length, absl::string_view name = {});
Output Irfft3d(Output x, const Ints& fft_length, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_LINALG_FFT_H_
