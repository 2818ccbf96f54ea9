#ifndef WEIR_OPS_NN_NN_PAD_CONV_H_
#define WEIR_OPS_NN_NN_PAD_CONV_H_

#include <string>

#include "weir/core/tensor/api.h"
#include "weir/ops/nn/nn.h"

// Convolutions of images that are resized and padded first, as frozen graphs for phones have them.
namespace WEIR_API weir {

// Conv2D of images whose borders are mirrored first (`mode`: "REFLECT" or "SYMMETRIC"). `paddings`
// is int32 [4, 2]: the pixels before and after each dimension, 0 for batch and channels. Of the
// options only strides and padding count.
Output FusedPadConv2D(Output input, Output paddings, Output filter, const std::string& mode,
                      const ConvOptions& options, absl::string_view name = {});
// The same for images that are resized bilinearly to `size`, int32 {height, width}, before that.
Output FusedResizeAndPadConv2D(Output input, Output size, Output paddings, Output filter,
                               const std::string& mode, bool resize_align_corners,
                               const ConvOptions& options, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_NN_NN_PAD_CONV_H_
