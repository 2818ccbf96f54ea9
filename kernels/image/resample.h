#ifndef WEIR_KERNELS_IMAGE_RESAMPLE_H_
#define WEIR_KERNELS_IMAGE_RESAMPLE_H_

#include <vector>

#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/status.h"

namespace weir {

// The weights of original pixels in each pixel of a resized image, along one dimension:
//   out[i] = sum of weights[k] * in[indices[k]] for k in [begins[i], begins[i + 1])
// Every resizing filter (bilinear, bicubic, area, the kernels of ScaleAndTranslate) is separable,
// so two Taps describe it, one for rows and one for columns.
struct Taps {
  std::vector<int64_t> begins{0};
  std::vector<int32_t> indices;
  std::vector<float> weights;

  void Add(int64_t index, float weight) {
    indices.push_back(static_cast<int32_t>(index));
    weights.push_back(weight);
  }
  // Ends the pixel to which taps were added.
  void Close() { begins.push_back(static_cast<int64_t>(indices.size())); }
  int64_t size() const { return static_cast<int64_t>(begins.size()) - 1; }
};

// The two pixels between which each pixel of a resized side is interpolated: low + (high - low) *
// fraction.
struct Lerp {
  std::vector<int32_t> low, high;
  std::vector<float> fraction;

  void Add(int64_t l, int64_t h, float f) {
    low.push_back(static_cast<int32_t>(l));
    high.push_back(static_cast<int32_t>(h));
    fraction.push_back(f);
  }
  int64_t size() const { return static_cast<int64_t>(low.size()); }
};

// The positions of a resized image's pixels in the original.
struct ResizeGrid {
  bool align_corners = false, half_pixel_centers = false;

  // Returns the number of original pixels per resized pixel.
  float Scale(int64_t original, int64_t resized) const;
  // Returns the position of pixel i of the resized image in the original, which may be outside the
  // image.
  float Position(int64_t i, float scale) const {
    const float at = static_cast<float>(i);
    return half_pixel_centers ? (at + 0.5f) * scale - 0.5f : at * scale;
  }
};

// Linear interpolation between the two nearest pixels.
Lerp BilinearLerp(const ResizeGrid& grid, int64_t original, int64_t resized);
Taps BilinearTaps(const ResizeGrid& grid, int64_t original, int64_t resized);
// Cubic convolution (Keys, 1981) over four pixels, with the coefficient -0.75; with half-pixel
// centers the coefficient is -0.5, and pixels outside the image do not count. Positions are rounded
// to 1/1024 of a pixel.
Taps BicubicTaps(const ResizeGrid& grid, int64_t original, int64_t resized);
// The mean over the interval that a resized pixel covers.
Taps AreaTaps(const ResizeGrid& grid, int64_t original, int64_t resized);
// A kernel by name ("lanczos3", "gaussian", "triangle", ...) at the positions (i + 0.5 -
// translation) / scale; with `antialias` it is widened when the image shrinks. Returns
// INVALID_ARGUMENT for an unknown name, or if the taps exceed the memory limit.
absl::StatusOr<Taps> KernelTaps(const std::string& kernel, bool antialias, float scale,
                                float translation, int64_t original, int64_t resized);

// The sizes of one image.
struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
  int64_t row() const { return width * channels; }
  int64_t size() const { return height * row(); }
};

// Resizes `batch` images [height, width, channels] of size `from`.
template <class T>
void Resample(ThreadPool& pool, int64_t batch, const ImageSize& from, const Taps& rows,
              const Taps& columns, const T* in, float* out);
// The same by interpolation between pixels, with TensorFlow's operations in its order.
template <class T>
void ResampleBilinear(ThreadPool& pool, int64_t batch, const ImageSize& from, const Lerp& rows,
                      const Lerp& columns, const T* in, float* out);
// Applies the transposed map: from gradients of the resized images to gradients of images of size
// `to`.
template <class T>
void ResampleGradient(ThreadPool& pool, int64_t batch, const ImageSize& to, const Taps& rows,
                      const Taps& columns, const float* grads, T* out);

}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_RESAMPLE_H_
