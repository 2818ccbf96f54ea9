#ifndef WEIR_KERNELS_NN_SEPARABLE_CONV_H_
#define WEIR_KERNELS_NN_SEPARABLE_CONV_H_

#include <cstdint>

namespace weir {

// The fewest channels that a _FusedDepthwiseSeparableConv2D supports: those in one vector of
// floats.
int64_t FewestSeparableChannels();

}  // namespace weir

#endif  // WEIR_KERNELS_NN_SEPARABLE_CONV_H_
