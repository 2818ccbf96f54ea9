#ifndef WEIR_KERNELS_IMAGE_H_
#define WEIR_KERNELS_IMAGE_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "weir/core/kernel.h"

// What the kernels of images share.
namespace weir {

// The parts of AddImageCpu and AddPatchesCpu, a source file each.
void AddResizeCpu(KernelRegistry* r);             // resize_cpu.cc
void AddCropAndResizeCpu(KernelRegistry* r);      // crop_and_resize_cpu.cc
void AddColorCpu(KernelRegistry* r);              // color_cpu.cc
void AddBoxesCpu(KernelRegistry* r);              // boxes_cpu.cc
void AddNonMaxSuppressionCpu(KernelRegistry* r);  // non_max_suppression_cpu.cc
void AddImageSamplingCpu(KernelRegistry* r);      // image_sampling_cpu.cc
void AddProjectionCpu(KernelRegistry* r);         // projection_cpu.cc
void AddDilationCpu(KernelRegistry* r);           // dilation_cpu.cc
void AddFractionalPoolCpu(KernelRegistry* r);     // fractional_pool_cpu.cc
void AddDataFormatCpu(KernelRegistry* r);         // data_format_cpu.cc

// The element types that images may have (unsigned ones of 32 and 64 bits are not among them).
using PixelTypes =
    List<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, half, bfloat16, float, double>;

// A number as an element: integers cut off what is behind the point, and end where the type does.
template <class T>
T PixelOf(float v) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(v)) return T(0);
    using Limits = std::numeric_limits<T>;
    if (v <= static_cast<float>(Limits::min())) return Limits::min();
    if (v >= static_cast<float>(Limits::max())) return Limits::max();
  }
  return static_cast<T>(v);
}

// A position as an index; far outside and NaN become -1.
inline int64_t IndexOf(float v) {
  constexpr float kFar = 1e15f;
  return std::abs(v) < kFar ? static_cast<int64_t>(v) : -1;
}

// A scalar input; INVALID_ARGUMENT in TensorFlow's words if it is none.
absl::Status CheckScalar(const Tensor& t, absl::string_view argument);
// Two positive numbers, a height and a width, in a vector. `images` is a tensor of rank 4; errors
// say where as many images of that extent, with as many channels, are more than can be counted.
struct Extent {
  int64_t height = 0, width = 0;
};
absl::StatusOr<Extent> ReadExtent(const Tensor& t, absl::string_view argument,
                                  const Tensor& images);

}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_H_
