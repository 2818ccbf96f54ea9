#include "weir/ops/image/image_internal.h"

#include <algorithm>

#include "weir/ops/lib/array_internal.h"

namespace weir {

absl::Status SizedImageShape(ShapeContext& c, int size, int64_t batch, int64_t channels) {
  WEIR_ASSIGN_OR_RETURN(const Shape sizes, c.WithRank(size, 1));
  WEIR_RETURN_IF_ERROR(CheckDim(sizes, 0, 2));
  int64_t height = Shape::kUnknown, width = Shape::kUnknown;
  if (const auto known = KnownInts(c, size); known.has_value()) {
    height = (*known)[0];
    width = (*known)[1];
    if (height < 0 || width < 0) {
      return InvalidArgument("Dimension size, given by scalar input ", size,
                             ", must be non-negative but is ", std::min(height, width));
    }
  }
  c.set_output(0, Shape({batch, height, width, channels}));
  return absl::OkStatus();
}

absl::Status CheckDim(const Shape& shape, int i, int64_t want) {
  const int64_t dim = shape.dim(i);
  if (dim < 0 || dim == want) return absl::OkStatus();
  return InvalidArgument("Dimension must be ", want, " but is ", dim);
}

}  // namespace weir
