#ifndef WEIR_KERNELS_NN_POOL_H_
#define WEIR_KERNELS_NN_POOL_H_

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/ops/lib/window.h"

// Shared code of pooling kernels: attributes, sizes and checks.
namespace weir {

// The attributes of a pooling node. Window sizes and strides of V2 ops are inputs; the fields are
// empty then.
struct PoolAttributes {
  DataLayout layout;
  std::string padding;
  std::vector<int64_t> ksize, strides, explicit_paddings;
  int sizes_input = -1;  // V2: the input index of `ksize`; `strides` follows it

  static absl::StatusOr<PoolAttributes> Read(const Node& node);
};

// A pooling with every size known: images [batch, depth, height, width, channels]; plain images
// have depth 1. Pooling across channels, which MaxPool supports, is described as pooling across the
// width of images of one channel.
struct PoolShape {
  using Spatial = std::array<int64_t, 3>;
  struct Range {
    int64_t begin, end;
  };
  int64_t batch = 0, channels = 0;
  Spatial in{1, 1, 1}, window{1, 1, 1}, out{1, 1, 1}, stride{1, 1, 1}, pad_before{0, 0, 0};
  bool channels_first = false;  // of the tensors; the computation itself has channels last
  Shape output;                 // of the pooled tensor, in its own layout

  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return window[0] * window[1] * window[2]; }
  // The part of window `at` that is inside the image, along dimension `i`.
  Range WindowAt(int i, int64_t at) const {
    const int64_t start = at * stride[i] - pad_before[i];
    const int64_t begin = std::clamp<int64_t>(start, 0, in[i]);
    return {begin, std::clamp<int64_t>(start + window[i], begin, in[i])};
  }
  // Returns whether every input pixel is in exactly one window.
  bool tiles() const;

  // Returns the pooling of a node with these attributes on images of shape `input`. Returns
  // INVALID_ARGUMENT or UNIMPLEMENTED, in TensorFlow's words, for invalid attributes or shapes.
  static absl::StatusOr<PoolShape> Make(const KernelContext& ctx, const PoolAttributes& attributes,
                                        const Shape& input);
};

}  // namespace weir

#endif  // WEIR_KERNELS_NN_POOL_H_
