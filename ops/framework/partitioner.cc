#include "weir/ops/framework/partitioner.h"

#include <algorithm>
#include <cmath>

namespace weir {

namespace {

// Returns counts of one for each dimension except `axis`, whose count is `parts(extent)`.
template <class Parts>
absl::StatusOr<std::vector<int64_t>> CountsAlong(const Shape& full, int axis, const Parts& parts) {
  const int rank = full.rank();
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Cannot partition variable along axis ", axis, " when shape is only ",
                           full.ToString());
  }
  std::vector<int64_t> counts(rank, 1);
  const int dim = axis < 0 ? axis + rank : axis;
  counts[dim] = parts(full.dim(dim));
  return counts;
}

// Computed in double because the product of the extents may exceed the range of int64.
double NumElements(const Shape& full) {
  double count = 1;
  for (const int64_t extent : full.dims()) count *= static_cast<double>(extent);
  return count;
}

int64_t BytesPerElement(DataType dtype, int64_t of_string) {
  return dtype == DT_STRING ? of_string : static_cast<int64_t>(ElementSize(dtype));
}

}  // namespace

Partitioner FixedSizePartitioner(int64_t num_shards, int axis) {
  return [=](const Shape& full, DataType) {
    return CountsAlong(full, axis, [&](int64_t extent) { return std::min(num_shards, extent); });
  };
}

Partitioner VariableAxisSizePartitioner(int64_t max_shard_bytes, int axis,
                                        int64_t bytes_per_string_element,
                                        std::optional<int64_t> max_shards) {
  return [=](const Shape& full, DataType dtype) -> absl::StatusOr<std::vector<int64_t>> {
    if (max_shard_bytes < 1 || bytes_per_string_element < 1) {
      return InvalidArgument(
          "Both max_shard_bytes and bytes_per_string_element must be positive. "
          "Currently, max_shard_bytes is ",
          max_shard_bytes, " and bytes_per_string_element is ", bytes_per_string_element);
    }
    if (max_shards && *max_shards < 1) {
      return InvalidArgument("max_shards must be positive, but is ", *max_shards);
    }
    const double bytes = NumElements(full) * BytesPerElement(dtype, bytes_per_string_element);
    return CountsAlong(full, axis, [&](int64_t extent) {
      const double bytes_per_slice = extent == 0 ? 0 : bytes / static_cast<double>(extent);
      if (bytes_per_slice == 0) return std::min<int64_t>(extent, 1);
      const double slices = std::max(1., std::floor(max_shard_bytes / bytes_per_slice));
      const auto shards = static_cast<int64_t>(std::ceil(static_cast<double>(extent) / slices));
      return max_shards ? std::min(*max_shards, shards) : shards;
    });
  };
}

Partitioner MinMaxVariablePartitioner(int64_t max_partitions, int axis, int64_t min_slice_size,
                                      int64_t bytes_per_string_element) {
  return [=](const Shape& full, DataType dtype) -> absl::StatusOr<std::vector<int64_t>> {
    if (min_slice_size < 1 || bytes_per_string_element < 1) {
      return InvalidArgument(
          "Both min_slice_size and bytes_per_string_element must be positive. "
          "Currently, min_slice_size is ",
          min_slice_size, " and bytes_per_string_element is ", bytes_per_string_element);
    }
    const double bytes = NumElements(full) * BytesPerElement(dtype, bytes_per_string_element);
    const double parts_by_size = std::ceil(bytes / static_cast<double>(min_slice_size));
    return CountsAlong(full, axis, [&](int64_t extent) {
      const int64_t most = std::min(extent, max_partitions);
      return std::max<int64_t>(1, parts_by_size < static_cast<double>(most)
                                      ? static_cast<int64_t>(parts_by_size)
                                      : most);
    });
  };
}

}  // namespace weir
