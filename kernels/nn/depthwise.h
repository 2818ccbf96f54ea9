#ifndef WEIR_KERNELS_NN_DEPTHWISE_H_
#define WEIR_KERNELS_NN_DEPTHWISE_H_

#include <cstdint>

#include "weir/kernels/linalg/gemm.h"

namespace weir::depthwise {

// The minimum number of channels.
int64_t FewestChannels();

// Depthwise convolution of image rows by filters with one element per channel, [taps, channels];
// taps are in row-major order. The first filter column of output pixel x is at input pixel x *
// stride - pad; taps outside the row contribute nothing.
struct Geometry {
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride = 1, dilation = 1, pad = 0;  // along rows
  int64_t in_width = 0, out_width = 0;
  int64_t channels = 0;
  int64_t in_pixel = 0, out_pixel = 0, tap = 0;  // floats between consecutive ones
};

// Computes one row of the result and applies `epilogue`, which has a bias. `in`: for each filter
// row the corresponding image row, null if that is outside the image.
void MultiplyRow(const Geometry& g, const float* const* in, const float* filter,
                 const gemm::Epilogue& epilogue, float* out);

}  // namespace weir::depthwise

#endif  // WEIR_KERNELS_NN_DEPTHWISE_H_
