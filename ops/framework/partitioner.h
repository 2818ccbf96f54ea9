#ifndef WEIR_OPS_FRAMEWORK_PARTITIONER_H_
#define WEIR_OPS_FRAMEWORK_PARTITIONER_H_

#include <functional>
#include <optional>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/tensor.h"

namespace WEIR_API weir {

// Determines how GetVariable partitions a variable: returns the number of parts along each
// dimension for the variable's full shape and type. All counts are at least 1, and at most one is
// greater than 1. Any function that returns a std::vector<int64_t> is a partitioner.
using Partitioner =
    std::function<absl::StatusOr<std::vector<int64_t>>(const Shape& full, DataType dtype)>;

// Predefined partitioners (tf.fixed_size_partitioner, ...). A negative `axis` counts from the end.
// Invalid arguments are reported as INVALID_ARGUMENT when a variable is made.

// Returns `num_shards` parts, or as many as the axis is long if that is less.
Partitioner FixedSizePartitioner(int64_t num_shards, int axis = 0);
// Returns the smallest number of parts of at most `max_shard_bytes` each, as far as one axis
// allows. `max_shards` takes precedence. An element of a string variable counts as
// `bytes_per_string_element`.
Partitioner VariableAxisSizePartitioner(int64_t max_shard_bytes, int axis = 0,
                                        int64_t bytes_per_string_element = 16,
                                        std::optional<int64_t> max_shards = {});
// Returns the largest number of parts with at least `min_slice_size` bytes each, at most
// `max_partitions`.
Partitioner MinMaxVariablePartitioner(int64_t max_partitions = 1, int axis = 0,
                                      int64_t min_slice_size = 256 << 10,
                                      int64_t bytes_per_string_element = 16);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_PARTITIONER_H_
