#ifndef WEIR_KERNELS_IMAGE_IMAGE_ROWS_H_
#define WEIR_KERNELS_IMAGE_IMAGE_ROWS_H_

#include <cstdint>

#include "weir/core/tensor/dtype.h"
#include "weir/kernels/image/resample.h"

// The inner loops of image kernels, on rows of pixels, in vectors. Every operation rounds as
// written: no multiplication is fused with an addition, so all machines compute the same bits.
//
// Pixels of two to seven channels are shorter than a vector. Such a pixel is computed in steps of
// four channels, and a step may cover the beginning of the next pixel, which is written later. A
// row that is read this way is readable for kRowPadding elements after its end.
namespace weir {

inline constexpr int64_t kRowPadding = 3;

namespace image_rows {

// Converts n elements of an image's type.
void Widen(DataType type, const void* row, int64_t n, float* out);

// Interpolates along a row: one pixel per element of `columns`. `row` and `out` have kRowPadding
// elements more than their pixels.
void LerpColumns(const Lerp& columns, int64_t channels, const float* row, float* out);

// out = top + (bottom - top) * fraction, for n elements.
void LerpRows(const float* top, const float* bottom, float fraction, int64_t n, float* out);

// LerpColumns of two rows and LerpRows between the results at once, for pixels of many channels. No
// padding. With `stream` the stores bypass the caches: `out` and each of its pixels are aligned to
// cache lines, and the caller fences (kernels/lib/non_temporal.h).
void LerpPixels(const Lerp& columns, int64_t channels, const float* top, const float* bottom,
                float fraction, bool stream, float* out);

// The transposed map of LerpColumns, for pixels without padding: adds `weight` times the gradients
// of pixels between columns to the gradients of a row.
void AddToColumns(const Lerp& columns, int64_t channels, const float* grads, float weight,
                  float* row);

// The weighted sum of rows of `image`, of n elements each: the taps of row y of the result. Sums in
// double are of floats only.
void MixRows(DataType type, const void* image, int64_t n, const Taps& rows, int64_t y, float* out);
void MixRows(DataType type, const void* image, int64_t n, const Taps& rows, int64_t y, double* out);

// The weighted sums along a row: one pixel per element of `columns`. `row` is padded, `out` is not.
void MixColumns(const Taps& columns, int64_t channels, const float* row, float* out);
void MixColumns(const Taps& columns, int64_t channels, const double* row, double* out);

}  // namespace image_rows
}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_IMAGE_ROWS_H_
