#ifndef WEIR_KERNELS_IMAGE_BILINEAR_ROWS_H_
#define WEIR_KERNELS_IMAGE_BILINEAR_ROWS_H_

#include <vector>

#include "weir/core/tensor/numeric_types.h"
#include "weir/kernels/image/resample.h"

namespace weir {

// Bilinear interpolation, row after row. A pixel is interpolated along the upper and the lower row
// of the image and then between the two, in TensorFlow's order:
//   top = top_left + (top_right - top_left) * x, bottom likewise, top + (bottom - top) * y.
//
// Pixels of few channels are shorter than a vector, so interpolation along a row is the slow part:
// it gathers. Interpolation between rows is a loop over consecutive floats. Consecutive rows of an
// enlarged image lie between the same two rows of the original, and those of a reduced one share
// one of them, so the last two rows that were interpolated along are kept: each row of the original
// is interpolated once. (Source: the row buffers of OpenCV's resize.)
//
// Pixels of many channels are vectors themselves. All three interpolations of a vector are then
// done in registers, because a pair of rows no longer fits into the L1 cache. What is kept is rows
// converted to float.
//
// Rows of other types are converted as a whole before they are interpolated, because conversion of
// consecutive elements is cheap; where only few of a row's pixels are used, only these are. For one
// thread.
template <class T>
class BilinearRows {
 public:
  // Interpolates at `columns` (not empty) in images that end at `end`. With `stream` results bypass
  // the caches where they are aligned.
  BilinearRows(const Lerp& columns, int64_t channels, const T* end, bool stream);
  ~BilinearRows();
  BilinearRows(const BilinearRows&) = delete;
  BilinearRows& operator=(const BilinearRows&) = delete;

  // Interpolates between the rows that begin at `top` and `bottom`; writes a row.
  void Interpolate(const T* top, const T* bottom, float fraction, float* out);

 private:
  // A row of an image and what was made of it: interpolated, or just converted.
  struct Made {
    const T* row = nullptr;
    std::vector<float> values;
  };

  const float* Find(const T* row, const T* other);
  const float* Read(const T* row, float* buffer) const;

  const Lerp image_columns_;
  const int64_t channels_;
  const T* const end_;
  const bool stream_, wide_;
  int64_t first_ = 0, span_ = 0;  // the pixels of a row that are used
  bool sparse_ = false;           // few of them are
  Lerp columns_;                  // in what Read returns
  Made made_[2];
  std::vector<float> read_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_BILINEAR_ROWS_H_
