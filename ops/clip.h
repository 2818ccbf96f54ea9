#ifndef WEIR_OPS_CLIP_H_
#define WEIR_OPS_CLIP_H_

#include <vector>

#include "weir/core/gradient.h"
#include "weir/ops/literal.h"
#include "weir/ops/math.h"

// Keeping gradients within bounds (tf.clip_by_*). Gradients that are rows stay rows: only the
// values are scaled. The element-wise ClipByValue is in math.h.
namespace weir {

// x * clip_norm / max(norm, clip_norm), the norm being the L2 norm along `axes` (default: all):
// unchanged where it is small enough. A negative clip_norm counts as 0.
Output ClipByNorm(Output x, double clip_norm, const Ints* axes = nullptr,
                  absl::string_view name = {});
Grad ClipByNorm(const Grad& grad, double clip_norm, absl::string_view name = {});

// The L2 norm of all elements of all gradients together; those that are none count for nothing. A
// scalar.
Output GlobalNorm(const Grads& grads, absl::string_view name = {});

struct ClippedGrads {
  Grads grads;
  Output global_norm;  // before clipping
};
// Every gradient times clip_norm / max(global norm, clip_norm). With an infinite or NaN norm all
// become NaN, so that it is noticed. `use_norm`: a norm computed already.
ClippedGrads ClipByGlobalNorm(const Grads& grads, const TensorArg& clip_norm, Output use_norm = {},
                              absl::string_view name = {});

// x scaled so that its norm divided by its number of elements is at most clip_norm.
Output ClipByAverageNorm(Output x, double clip_norm, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_CLIP_H_
