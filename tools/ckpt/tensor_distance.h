#ifndef WEIR_TOOLS_CKPT_TENSOR_DISTANCE_H_
#define WEIR_TOOLS_CKPT_TENSOR_DISTANCE_H_

#include "weir/core/io/bundle.h"

namespace weir::tools {

// How far apart elements may be to count as equal: |a - b| <= atol + rtol * |b|. NaN equals NaN,
// and an infinity only itself.
struct DistanceTolerance {
  double rtol = 0, atol = 0;
};

// How the elements of two tensors of one shape differ. Strings only count as different or not. A
// complex number counts as two elements.
struct TensorDistance {
  int64_t elements = 0;
  int64_t different = 0;           // elements that differ by more than the tolerance
  int64_t first = -1;              // the index of the first one, in row-major order
  int64_t nans_a = 0, nans_b = 0;  // elements that are NaN only in a, only in b
  double max_absolute = 0;         // the greatest |a - b| of elements that are no NaN
  double max_relative = 0;         // the greatest |a - b| / max(|a|, |b|) of these
};

// Compares two tensors of one shape, piece by piece. Integers of one type are compared exactly;
// tensors of different types are compared as doubles. FAILED_PRECONDITION if only one has strings.
absl::StatusOr<TensorDistance> ComputeDistance(CheckpointReader& a, const CheckpointTensor& in_a,
                                               CheckpointReader& b, const CheckpointTensor& in_b,
                                               const DistanceTolerance& tolerance);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_TENSOR_DISTANCE_H_
