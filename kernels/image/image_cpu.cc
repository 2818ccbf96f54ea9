#include "weir/kernels/image/image.h"

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

namespace weir {

absl::Status CheckScalar(const Tensor& t, absl::string_view argument) {
  if (t.rank() == 0) return absl::OkStatus();
  return InvalidArgument(argument, " must be 0-D, got shape ", t.shape().ToString(),
                         " (Shape must be rank 0 but is rank ", t.rank(), ")");
}

absl::StatusOr<Extent> ReadExtent(const Tensor& t, absl::string_view argument,
                                  const Tensor& images) {
  if (t.rank() != 1) {
    return InvalidArgument(argument, " must be 1-dimensional, but has shape ",
                           t.shape().ToString());
  }
  if (t.num_elements() != 2) {
    return InvalidArgument(argument, " must have two elements, but has shape ",
                           t.shape().ToString());
  }
  const Extent extent = {t.IntAt(0), t.IntAt(1)};
  if (extent.height <= 0 || extent.width <= 0) {
    return InvalidArgument(argument, ": output dimensions must be positive, but are ",
                           extent.height, " and ", extent.width);
  }
  constexpr int64_t kMost =
      1 << 24;  // floats, which hold the coordinates, are exact up to this limit
  if (extent.height > kMost || extent.width > kMost) {
    const absl::Status counts =
        CheckedShape({images.dim(0), extent.height, extent.width, images.dim(3)}).status();
    return InvalidArgument(argument, ": output dimensions must be at most 2^24, but are ",
                           extent.height, " and ", extent.width, counts.ok() ? "" : ". ",
                           counts.message());
  }
  return extent;
}

void AddImageCpu(KernelRegistry* r) {
  AddResizeCpu(r);
  AddCropAndResizeCpu(r);
  AddColorCpu(r);
  AddBoxesCpu(r);
  AddNonMaxSuppressionCpu(r);
  AddImageSamplingCpu(r);
  AddProjectionCpu(r);
}

}  // namespace weir
