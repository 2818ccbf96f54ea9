#ifndef WEIR_OPS_MATH_CLIP_H_
#define WEIR_OPS_MATH_CLIP_H_

#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/literal.h"
#include "weir/ops/lib/math.h"

// Gradient clipping (tf.clip_by_*). IndexedSlices remain IndexedSlices: only their values are
// scaled. The elementwise ClipByValue is in math.h.
namespace WEIR_API weir {

// Returns x * clip_norm / max(norm, clip_norm), where norm is the L2 norm along `axes` (default:
// all). x is unchanged if its norm does not exceed clip_norm. A negative clip_norm is treated as 0.
Output ClipByNorm(Output x, double clip_norm, const Ints* axes = nullptr,
                  absl::string_view name = {});
Grad ClipByNorm(const Grad& grad, double clip_norm, absl::string_view name = {});

// Returns the L2 norm of all elements of all gradients as a scalar. Empty gradients are ignored.
Output GlobalNorm(const Grads& grads, absl::string_view name = {});

// What ClipByGlobalNorm returns: the `grads`, scaled, and the scalar that they are scaled by.
struct ClippedGrads {
  Grads grads;
  Output global_norm;  // before clipping
};
// Multiplies every gradient by clip_norm / max(global norm, clip_norm). If the norm is infinite or
// NaN, all gradients become NaN, so that the problem is visible. `use_norm` passes a norm that is
// already computed.
ClippedGrads ClipByGlobalNorm(const Grads& grads, const TensorArg& clip_norm, Output use_norm = {},
                              absl::string_view name = {});

// Scales x so that its norm divided by its number of elements is at most clip_norm.
Output ClipByAverageNorm(Output x, double clip_norm, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_MATH_CLIP_H_
