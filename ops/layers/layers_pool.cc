#include "weir/ops/layers/layers_internal.h"
#include "weir/ops/nn/nn.h"

namespace weir::layers {

namespace {

// Applies a 2-D pooling function to windows over one dimension, by adding a second dimension of
// size 1.
Output Pooling(Output inputs, bool max, int num_spatial, const Ints& pool_size, const Ints& strides,
               const PoolingOptions& o) {
  if (!inputs.valid()) return {};
  const Layer layer(inputs.graph(), o.name,
                    absl::StrCat(max ? "max" : "average", "_pooling", num_spatial, "d"));
  const auto outer = ParseLayout(layer, inputs, o.data_format, num_spatial);
  const auto padding = ParsePadding(layer, o.padding);
  if (!outer || !padding) return {};
  auto size = ParseExtents(layer, pool_size, num_spatial, "pool_size");
  auto steps = ParseExtents(layer, strides, num_spatial, "strides");
  if (!size || !steps) return {};
  const int extra = outer->channels_first() ? 3 : 2;
  if (num_spatial == 1) {
    inputs = ExpandDims(inputs, extra);
    size->push_back(1);
    steps->push_back(1);
  }
  if (!inputs.valid()) return {};
  const auto layout = ParseLayout(layer, inputs, o.data_format, 2);
  if (!layout) return {};
  const PoolOptions options{.ksize = WithOnes(*layout, *size),
                            .strides = WithOnes(*layout, *steps),
                            .padding = *padding,
                            .data_format = layout->format};
  const Output pooled = max ? MaxPool(inputs, options) : AvgPool(inputs, options);
  return pooled.valid() && num_spatial == 1 ? Squeeze(pooled, {extra}) : pooled;
}

}  // namespace

Output MaxPooling1D(Output inputs, const Ints& pool_size, const Ints& strides,
                    const PoolingOptions& options) {
  return Pooling(inputs, /*max=*/true, 1, pool_size, strides, options);
}
Output MaxPooling2D(Output inputs, const Ints& pool_size, const Ints& strides,
                    const PoolingOptions& options) {
  return Pooling(inputs, /*max=*/true, 2, pool_size, strides, options);
}
Output AveragePooling1D(Output inputs, const Ints& pool_size, const Ints& strides,
                        const PoolingOptions& options) {
  return Pooling(inputs, /*max=*/false, 1, pool_size, strides, options);
}
Output AveragePooling2D(Output inputs, const Ints& pool_size, const Ints& strides,
                        const PoolingOptions& options) {
  return Pooling(inputs, /*max=*/false, 2, pool_size, strides, options);
}

}  // namespace weir::layers
