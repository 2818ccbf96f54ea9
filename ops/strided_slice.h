#ifndef WEIR_OPS_STRIDED_SLICE_H_
#define WEIR_OPS_STRIDED_SLICE_H_

#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/shape.h"
#include "weir/ops/array.h"

namespace weir {

// NumPy's basic indexing made explicit: what begin, end, strides and the five masks of StridedSlice
// mean for a tensor of a given shape. Both the shape rule and the kernels read it from here.
struct ResolvedSlice {
  // For each dimension of the input: where the slice begins, its stride (1 for a single element),
  // and how many elements it has (-1 unknown).
  absl::InlinedVector<int64_t, 6> begin, stride, size;
  // The same elements in the shape of the result: with new axes, without the dimensions indexed by
  // a number.
  Shape final_shape;
};

// `begin` or `end` may be absent (not known before the step); then sizes that depend on them are
// unknown. `input` must have a known rank. INVALID_ARGUMENT for a zero stride, an index out of
// bounds, more indices than dimensions, two ellipses.
using KnownBounds = std::optional<absl::Span<const int64_t>>;
absl::StatusOr<ResolvedSlice> ResolveSlice(const Shape& input, KnownBounds begin, KnownBounds end,
                                           absl::Span<const int64_t> strides,
                                           const StridedSliceOptions& masks);

// The mask attributes of a StridedSlice node or one of its kin.
StridedSliceOptions SliceMasks(const Node& node);

}  // namespace weir

#endif  // WEIR_OPS_STRIDED_SLICE_H_
