#ifndef WEIR_KERNELS_RESAMPLE_H_
#define WEIR_KERNELS_RESAMPLE_H_

#include <vector>

#include "weir/core/status.h"
#include "weir/core/thread_pool.h"

namespace weir {

// How each pixel along one dimension of a resized image is made of the pixels of the original:
//   out[i] = sum of weights[k] * in[indices[k]] for k in [begins[i], begins[i + 1])
// Every filter that resizes (bilinear, bicubic, area, the kernels of ScaleAndTranslate) is
// separable and so is said by two of these, one for rows and one for columns.
struct Taps {
  std::vector<int64_t> begins{0};
  std::vector<int32_t> indices;
  std::vector<float> weights;

  void Add(int64_t index, float weight) {
    indices.push_back(static_cast<int32_t>(index));
    weights.push_back(weight);
  }
  // Ends the pixel that taps were added to.
  void Close() { begins.push_back(static_cast<int64_t>(indices.size())); }
  int64_t size() const { return static_cast<int64_t>(begins.size()) - 1; }
};

// Where the pixels of a resized image lie in the original.
struct ResizeGrid {
  bool align_corners = false, half_pixel_centers = false;

  // Original pixels per resized pixel.
  float Scale(int64_t original, int64_t resized) const;
  // Between which original pixels pixel i of the resized image lies; may be outside of the image.
  float Position(int64_t i, float scale) const {
    const float at = static_cast<float>(i);
    return half_pixel_centers ? (at + 0.5f) * scale - 0.5f : at * scale;
  }
};

// Linear interpolation between the two nearest pixels.
Taps BilinearTaps(const ResizeGrid& grid, int64_t original, int64_t resized);
// Cubic convolution (Keys, 1981) over four pixels, with the coefficient -0.75; with half-pixel
// centers -0.5, and what lies outside of the image does not count. Positions are rounded to
// 1/1024 of a pixel.
Taps BicubicTaps(const ResizeGrid& grid, int64_t original, int64_t resized);
// The mean over the stretch that a resized pixel covers.
Taps AreaTaps(const ResizeGrid& grid, int64_t original, int64_t resized);
// A kernel by name ("lanczos3", "gaussian", "triangle", ...) at the positions (i + 0.5 -
// translation) / scale; with `antialias` it is widened when the image shrinks. INVALID_ARGUMENT for
// a name that is none, or for more taps than memory is spent on.
absl::StatusOr<Taps> KernelTaps(const std::string& kernel, bool antialias, float scale,
                                float translation, int64_t original, int64_t resized);

// The sizes of one image.
struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
  int64_t row() const { return width * channels; }
  int64_t size() const { return height * row(); }
};

// `batch` images [height, width, channels] of size `from`, resized.
template <class T>
void Resample(ThreadPool& pool, int64_t batch, const ImageSize& from, const Taps& rows,
              const Taps& columns, const T* in, float* out);
// The transposed map: takes gradients of the resized images to those of images of size `to`.
template <class T>
void ResampleGradient(ThreadPool& pool, int64_t batch, const ImageSize& to, const Taps& rows,
                      const Taps& columns, const float* grads, T* out);

}  // namespace weir

#endif  // WEIR_KERNELS_RESAMPLE_H_
