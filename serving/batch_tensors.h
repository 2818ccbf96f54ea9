#ifndef WEIR_SERVING_BATCH_TENSORS_H_
#define WEIR_SERVING_BATCH_TENSORS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weir/serving/servable.h"

// The rows of batches. A row is an index of the first dimension, which all tensors here have.
namespace weir::serving {

// Rows [begin, end) of each of the tensors, which are not owned.
struct RowRange {
  const NamedTensors* tensors;
  int64_t begin, end;
};

// Returns the bytes that the ranges have by themselves and in a tensor of `rows` rows in which all
// have the largest dimensions. (Of strings, the string objects.)
struct JoinedBytes {
  double separate = 0, joined = 0;
};
JoinedBytes BytesOf(absl::Span<const RowRange> ranges, int64_t rows);

// Copies the ranges, which have the same names, dtypes and ranks, into tensors of `rows` rows, one
// after the other. Other dimensions become the largest of all ranges; the new elements of a tensor
// are copies of its first element, or zero if it has none. Rows that are left repeat the last row.
// Returns RESOURCE_EXHAUSTED when out of memory.
absl::StatusOr<NamedTensors> JoinRows(absl::Span<const RowRange> ranges, int64_t rows);

// Returns rows [begin, end) of each tensor, without copying.
NamedTensors SliceRows(const NamedTensors& tensors, int64_t begin, int64_t end);

}  // namespace weir::serving

#endif  // WEIR_SERVING_BATCH_TENSORS_H_
