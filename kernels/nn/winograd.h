#ifndef WEIR_KERNELS_NN_WINOGRAD_H_
#define WEIR_KERNELS_NN_WINOGRAD_H_

#include <algorithm>
#include <cstdint>

namespace weir::winograd {

// The parts of a convolution of floats with 3x3 filters at stride 1 by minimal filtering, F(2x2,
// 3x3): A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
// conv_winograd.cc combines them. A tile is 2x2 elements of the result, of all channels, and the
// 4x4 elements of the image that they depend on. Tiles are counted along rows, then down, then from
// image to image. Tiles at the bottom and right edges may extend beyond the result.
inline constexpr int kPoints = 16;  // per transformed tile

struct Geometry {
  int64_t in_height = 0, in_width = 0, in_channels = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t pad_top = 0, pad_left = 0;

  int64_t tile_rows() const { return (out_height + 1) / 2; }
  int64_t tile_columns() const { return (out_width + 1) / 2; }
  int64_t tiles() const { return tile_rows() * tile_columns(); }  // per image
};

// The position of a tile.
struct Tile {
  int64_t image = 0, row = 0, column = 0;
  static Tile At(const Geometry& g, int64_t index) {
    const int64_t in_image = index % g.tiles();
    return {index / g.tiles(), in_image / g.tile_columns(), in_image % g.tile_columns()};
  }
  // The size of the tile's part inside the result.
  int64_t Height(const Geometry& g) const { return std::min<int64_t>(2, g.out_height - 2 * row); }
  int64_t Width(const Geometry& g) const { return std::min<int64_t>(2, g.out_width - 2 * column); }
  // Returns an offset in the result, in pixels of all images.
  int64_t Pixel(const Geometry& g, int64_t r, int64_t c) const {
    return (image * g.out_height + 2 * row + r) * g.out_width + 2 * column + c;
  }
};

// Channels of the input and of the output must be multiples of this. 0 if this processor's vectors
// are too short to be worth it; then no other function may be called.
int64_t ChannelUnit();
// Output channels are processed in panels of two units; the last panel is padded with zeros.
int64_t PanelColumns();

// The stride of transformed tiles' rows in floats. It is not a power of two, because those would
// map to the same sets of the L1 cache.
inline int64_t RowStride(int64_t in_channels) { return in_channels + 16; }

// A filter in its original layout: element (row, column, in, out) at data[row * row_stride + ...].
struct Filter {
  const float* data = nullptr;
  int64_t row_stride = 0, column_stride = 0, in_stride = 0, out_stride = 0;
};
// Transforms and packs the filters of a panel: `packed` has kPoints * in_channels * PanelColumns()
// floats. Returns false if some are not finite, or within a factor of sixteen of overflow.
bool PackPanel(const Filter& filter, const Geometry& g, int64_t panel, float* packed);

// Transforms the input of `tiles` tiles from `first` on: to [kPoints, tiles, RowStride()]. `zeros`
// has in_channels zeros.
void TransformInput(const Geometry& g, const float* images, int64_t first, int64_t tiles,
                    const float* zeros, float* transformed);

// MultiplyPanel computes one panel of the result of these tiles: it multiplies into `products`,
// [kPoints, tiles, PanelColumns()], transforms the products back, and writes them [+ bias] [+
// addend] to the result. `result` and `addend` point to the first image; they may be the same
// memory.
struct Output {
  const float* bias = nullptr;
  const float* addend = nullptr;
  float* result = nullptr;
};
void MultiplyPanel(const Geometry& g, const float* transformed, const float* packed, int64_t panel,
                   int64_t first, int64_t tiles, float* products, const Output& output);

// Returns whether all elements are finite, and their transforms as well.
bool AllFinite(const float* x, int64_t n);

}  // namespace weir::winograd

#endif  // WEIR_KERNELS_NN_WINOGRAD_H_
