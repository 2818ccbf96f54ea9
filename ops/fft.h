#ifndef WEIR_OPS_FFT_H_
#define WEIR_OPS_FFT_H_

#include "weir/core/graph.h"
#include "weir/ops/array.h"

// Builders of discrete Fourier transforms: TensorFlow's signal. They work on the last dimension, or
// the last two or three; the inverse ones divide by the number of points. The last argument is the
// name.
namespace weir {

Output Fft(Output x, absl::string_view name = {});
Output Fft2d(Output x, absl::string_view name = {});
Output Fft3d(Output x, absl::string_view name = {});
Output Ifft(Output x, absl::string_view name = {});
Output Ifft2d(Output x, absl::string_view name = {});
Output Ifft3d(Output x, absl::string_view name = {});

// Of real numbers, and back to them: of the last dimension only the first fft_length / 2 + 1
// frequencies are kept. `fft_length` has the number of points in each dimension, which x must at
// least have.
Output Rfft(Output x, const Ints& fft_length, absl::string_view name = {});
Output Rfft2d(Output x, const Ints& fft_length, absl::string_view name = {});
Output Rfft3d(Output x, const Ints& fft_length, absl::string_view name = {});
Output Irfft(Output x, const Ints& fft_length, absl::string_view name = {});
Output Irfft2d(Output x, const Ints& fft_length, absl::string_view name = {});
Output Irfft3d(Output x, const Ints& fft_length, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_FFT_H_
