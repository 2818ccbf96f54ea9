#ifndef WEIR_KERNELS_POOL_H_
#define WEIR_KERNELS_POOL_H_

#include <array>
#include <string>
#include <vector>

#include "weir/core/kernel.h"
#include "weir/ops/window.h"

// What pooling kernels have in common: attributes, sizes and checks.
namespace weir {

// The attributes of a pooling node. Window sizes and strides of V2 ops are inputs, and empty here.
struct PoolAttributes {
  DataLayout layout;
  std::string padding;
  std::vector<int64_t> ksize, strides, explicit_paddings;
  int sizes_input = -1;  // V2: the position of `ksize`; `strides` follows it

  static absl::StatusOr<PoolAttributes> Read(const Node& node);
};

// A pooling with every size known: images [batch, depth, height, width, channels], the depth of
// plain images being 1. Pooling across channels (MaxPool can) is described as pooling across the
// width of images of one channel.
struct PoolShape {
  using Spatial = std::array<int64_t, 3>;
  int64_t batch = 0, channels = 0;
  Spatial in{1, 1, 1}, window{1, 1, 1}, out{1, 1, 1}, stride{1, 1, 1}, pad_before{0, 0, 0};
  bool channels_first = false;  // of the tensors; what is computed on has them last
  Shape output;                 // of the pooled tensor, in its own layout

  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return window[0] * window[1] * window[2]; }
  // Every input pixel is in exactly one window.
  bool tiles() const;

  // For a node with these attributes that pools images of shape `input`. INVALID_ARGUMENT or
  // UNIMPLEMENTED in TensorFlow's words for what does not fit.
  static absl::StatusOr<PoolShape> Make(const KernelContext& ctx, const PoolAttributes& attributes,
                                        const Shape& input);
};

}  // namespace weir

#endif  // WEIR_KERNELS_POOL_H_
