#ifndef WEIR_KERNELS_IMAGE_IMAGE_H_
#define WEIR_KERNELS_IMAGE_IMAGE_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "weir/core/runtime/kernel.h"

// Helpers shared by image kernels.
namespace weir {

// The parts of AddImageCpu and AddPatchesCpu, each in its own source file.
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

// The valid element types of images (uint32 and uint64 are not among them).
using PixelTypes =
    List<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, half, bfloat16, float, double>;

// Converts a number to an element type: integers truncate toward zero and saturate.
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

// Converts a coordinate to an index; out-of-range values and NaN become -1.
inline int64_t IndexOf(float v) {
  constexpr float kFar = 1e15f;
  return std::abs(v) < kFar ? static_cast<int64_t>(v) : -1;
}

// Requires a scalar input; INVALID_ARGUMENT with TensorFlow's message otherwise.
absl::Status CheckScalar(const Tensor& t, absl::string_view argument);
// Reads two positive numbers, a height and a width, from a vector. `images` is a tensor of rank 4;
// it is an error if the number of elements of a batch of that size, with the same number of
// channels, overflows.
struct Extent {
  int64_t height = 0, width = 0;
};
absl::StatusOr<Extent> ReadExtent(const Tensor& t, absl::string_view argument,
                                  const Tensor& images);

}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_IMAGE_H_
