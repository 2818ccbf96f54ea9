#ifndef WEIR_KERNELS_DEPTHWISE_H_
#define WEIR_KERNELS_DEPTHWISE_H_

#include <cstdint>

#include "weir/kernels/gemm.h"

namespace weir::depthwise {

// There may not be fewer channels.
int64_t FewestChannels();

// Rows of images under filters with one element a channel, [taps, channels], whose taps are counted
// along rows, then down. The result's pixel x is under the filter whose first column lies on the
// row's pixel x * stride - pad; what of it lies outside counts for nothing.
struct Geometry {
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride = 1, dilation = 1, pad = 0;  // along rows
  int64_t in_width = 0, out_width = 0;
  int64_t channels = 0;
  int64_t in_pixel = 0, out_pixel = 0, tap = 0;  // floats from one to the next
};

// One row of the result, and what `epilogue` does to it, which has a bias. `in`: by row of the filter
// the row of the image under it, null where that lies outside.
void MultiplyRow(const Geometry& g, const float* const* in, const float* filter,
                 const gemm::Epilogue& epilogue, float* out);

}  // namespace weir::depthwise

#endif  // WEIR_KERNELS_DEPTHWISE_H_
