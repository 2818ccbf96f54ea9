#ifndef WEIR_KERNELS_NN_CONV_H_
#define WEIR_KERNELS_NN_CONV_H_

#include <array>
#include <string>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/ops/lib/window.h"

// Attributes, sizes and validation that convolution kernels of all devices share.
namespace weir {

enum class ConvPass { kForward, kBackpropInput, kBackpropFilter };

// A convolution with all sizes known. Spatial sizes are depth, height, width; images have depth 1.
// The filter's memory layout is [depth, height, width, in_channels / groups, out_channels]. A
// depthwise filter [.., channels, multiplier] is the same with as many groups as channels.
struct ConvShape {
  using Spatial = std::array<int64_t, 3>;
  int64_t batch = 0, groups = 1, in_channels = 0, out_channels = 0;
  Spatial in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Spatial stride{1, 1, 1}, dilation{1, 1, 1}, pad_before{0, 0, 0}, pad_after{0, 0, 0};

  // INVALID_ARGUMENT, with TensorFlow's message, if ranks, depths or sizes do not match.
  static absl::StatusOr<ConvShape> Make(const ConvAttributes& attributes, const Shape& input,
                                        const Shape& filter);

  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_elements() const { return batch * in_pixels() * in_channels; }
  int64_t out_elements() const { return batch * out_pixels() * out_channels; }
  int64_t filter_elements() const { return taps() * group_in() * out_channels; }
  // Input channels per group.
  int64_t group_in() const { return in_channels / groups; }
  // Multiplications plus additions.
  double flops() const { return 2.0 * static_cast<double>(out_elements()) * taps() * group_in(); }
  // The result's shape in the layout given by the attributes.
  Shape OutputShape(const DataLayout& layout) const;
  friend bool operator==(const ConvShape&, const ConvShape&) = default;
};

// The validated inputs of one run of a kernel. `sizes` inputs have been read.
struct ConvArguments {
  ConvShape shape;
  Shape output;  // of the kernel
};
absl::StatusOr<ConvArguments> ReadConvArguments(const KernelContext& ctx,
                                                const ConvAttributes& attributes, ConvPass pass);

// KernelDef::Cost of every pass, from the shapes known to the plan.
double ConvCost(const KernelInit& init);

}  // namespace weir

#endif  // WEIR_KERNELS_NN_CONV_H_
