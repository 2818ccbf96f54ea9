#ifndef WEIR_KERNELS_WINOGRAD_H_
#define WEIR_KERNELS_WINOGRAD_H_

#include <algorithm>
#include <cstdint>

namespace weir::winograd {

// The parts of a convolution of floats with 3x3 filters at stride 1 by minimal filtering,
// F(2x2, 3x3): A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
// conv_winograd.cc puts them together. A tile is 2x2 elements of the result, of all channels, and
// the 4x4 elements of the image that they depend on; tiles are counted along rows, then down, then
// from image to image. Tiles at the lower and right rim may reach beyond the result.
inline constexpr int kPoints = 16;  // of a transformed tile

struct Geometry {
  int64_t in_height = 0, in_width = 0, in_channels = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t pad_top = 0, pad_left = 0;

  int64_t tile_rows() const { return (out_height + 1) / 2; }
  int64_t tile_columns() const { return (out_width + 1) / 2; }
  int64_t tiles() const { return tile_rows() * tile_columns(); }  // of an image
};

// The place of a tile.
struct Tile {
  int64_t image = 0, row = 0, column = 0;
  static Tile At(const Geometry& g, int64_t index) {
    const int64_t in_image = index % g.tiles();
    return {index / g.tiles(), in_image / g.tile_columns(), in_image % g.tile_columns()};
  }
  // What of it lies inside the result.
  int64_t Height(const Geometry& g) const { return std::min<int64_t>(2, g.out_height - 2 * row); }
  int64_t Width(const Geometry& g) const { return std::min<int64_t>(2, g.out_width - 2 * column); }
  // Of the result, in pixels of all images.
  int64_t Pixel(const Geometry& g, int64_t r, int64_t c) const {
    return (image * g.out_height + 2 * row + r) * g.out_width + 2 * column + c;
  }
};

// Channels of the input and of the output come in multiples of so many. 0, and nothing here may be
// called, if this processor has no vectors that are worth it.
int64_t ChannelUnit();
// Output channels are taken in panels of two units, the last one filled up with zeros.
int64_t PanelColumns();

// Floats between the rows of transformed tiles: powers of two would fall on the same places of the
// first-level cache.
inline int64_t RowStride(int64_t in_channels) { return in_channels + 16; }

// A filter as it lies: element (row, column, in, out) at data[row * row_stride + ...].
struct Filter {
  const float* data = nullptr;
  int64_t row_stride = 0, column_stride = 0, in_stride = 0, out_stride = 0;
};
// Transforms the filters of a panel: `packed` has kPoints * in_channels * PanelColumns() floats.
// False if some are not finite, or within a sixteenth of what is not.
bool PackPanel(const Filter& filter, const Geometry& g, int64_t panel, float* packed);

// Transforms what `tiles` tiles, from `first` on, see of the images: to [kPoints, tiles,
// RowStride()]. `zeros` are in_channels of them.
void TransformInput(const Geometry& g, const float* images, int64_t first, int64_t tiles,
                    const float* zeros, float* transformed);

// One panel of the result of these tiles: multiplies, into `products`, [kPoints, tiles,
// PanelColumns()], transforms them back, and writes result = it [+ bias] [+ addend]. The result is
// the first image's, like the addend, which may be the result.
struct Output {
  const float* bias = nullptr;
  const float* addend = nullptr;
  float* result = nullptr;
};
void MultiplyPanel(const Geometry& g, const float* transformed, const float* packed, int64_t panel,
                   int64_t first, int64_t tiles, float* products, const Output& output);

// Whether all are finite, and their transforms as well.
bool AllFinite(const float* x, int64_t n);

}  // namespace weir::winograd

#endif  // WEIR_KERNELS_WINOGRAD_H_
