#ifndef WEIR_OPS_RANDOM_INTERNAL_H_
#define WEIR_OPS_RANDOM_INTERNAL_H_

#include "weir/core/gradient.h"
#include "weir/core/op.h"
#include "weir/core/shape_context.h"

// What the sources of the random family share.
namespace weir {

// The shape at input 0, for a seed of two numbers at input 1.
absl::Status StatelessShape(ShapeContext& c);
// The shape at input 0, for key, counter and algorithm at inputs 1, 2 and 3.
absl::Status KeyCounterShape(ShapeContext& c);

// Gradients with respect to the parameters of a distribution (random_gradients.cc).
Grads RandomGammaGradient(GradContext& g);
Grads StatelessRandomGammaGradient(GradContext& g);  // V2 and V3
Grads StatelessTruncatedNormalGradient(GradContext& g);

}  // namespace weir

#endif  // WEIR_OPS_RANDOM_INTERNAL_H_
