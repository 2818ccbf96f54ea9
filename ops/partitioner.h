#ifndef WEIR_OPS_PARTITIONER_H_
#define WEIR_OPS_PARTITIONER_H_

#include <functional>
#include <optional>
#include <vector>

#include "weir/core/tensor.h"

namespace weir {

// Says how GetVariable cuts a variable: for its full shape and its type, how many parts there are
// along each dimension. All counts are at least 1, and at most one is more. Any function that
// returns a std::vector<int64_t> is one.
using Partitioner =
    std::function<absl::StatusOr<std::vector<int64_t>>(const Shape& full, DataType dtype)>;

// The ready-made ones (tf.fixed_size_partitioner, ...). `axis` may count from the end. What is
// wrong with an argument, INVALID_ARGUMENT, shows when a variable is made.

// `num_shards` parts, or as many as the axis is long.
Partitioner FixedSizePartitioner(int64_t num_shards, int axis = 0);
// The fewest parts of at most `max_shard_bytes` each, as far as one axis allows; `max_shards` goes
// before. An element of a string variable counts as `bytes_per_string_element`.
Partitioner VariableAxisSizePartitioner(int64_t max_shard_bytes, int axis = 0,
                                        int64_t bytes_per_string_element = 16,
                                        std::optional<int64_t> max_shards = {});
// As many parts as have `min_slice_size` bytes each, at most `max_partitions`.
Partitioner MinMaxVariablePartitioner(int64_t max_partitions = 1, int axis = 0,
                                      int64_t min_slice_size = 256 << 10,
                                      int64_t bytes_per_string_element = 16);

}  // namespace weir

#endif  // WEIR_OPS_PARTITIONER_H_
