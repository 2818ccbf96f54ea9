#ifndef WEIR_OPS_LIB_STRIDED_SLICE_H_
#define WEIR_OPS_LIB_STRIDED_SLICE_H_

#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/tensor/shape.h"
#include "weir/ops/lib/array.h"

namespace weir {

// NumPy's basic indexing made explicit: the meaning of begin, end, strides and the five masks of
// StridedSlice for a tensor of a given shape. Both the shape function and the kernels use it.
struct ResolvedSlice {
  // For each dimension of the input: the begin of the slice, its stride (1 for a single element),
  // and its number of elements (-1: unknown).
  absl::InlinedVector<int64_t, 6> begin, stride, size;
  // The shape of the result: with new axes, and without the dimensions that are indexed by a
  // number.
  Shape final_shape;
};

// `begin` or `end` may be absent (not known before the step); sizes that depend on them are then
// unknown. `input` must have a known rank. INVALID_ARGUMENT for a zero stride, an index out of
// bounds, more indices than dimensions, and two ellipses.
using KnownBounds = std::optional<absl::Span<const int64_t>>;
absl::StatusOr<ResolvedSlice> ResolveSlice(const Shape& input, KnownBounds begin, KnownBounds end,
                                           absl::Span<const int64_t> strides,
                                           const StridedSliceOptions& masks);

// Returns the mask attributes of a StridedSlice node or of a related op.
StridedSliceOptions SliceMasks(const Node& node);

}  // namespace weir

#endif  // WEIR_OPS_LIB_STRIDED_SLICE_H_
