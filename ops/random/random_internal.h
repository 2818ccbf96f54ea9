#ifndef WEIR_OPS_RANDOM_RANDOM_INTERNAL_H_
#define WEIR_OPS_RANDOM_RANDOM_INTERNAL_H_

#include "weir/core/graph/op.h"
#include "weir/core/graph/shape_context.h"

// Declarations shared by the sources of the random family.
namespace weir {

// The shape given by input 0, for an op with a seed of two numbers at input 1.
absl::Status StatelessShape(ShapeContext& c);
// The shape given by input 0, for an op with key, counter and algorithm at inputs 1, 2 and 3.
absl::Status KeyCounterShape(ShapeContext& c);

}  // namespace weir

#endif  // WEIR_OPS_RANDOM_RANDOM_INTERNAL_H_
