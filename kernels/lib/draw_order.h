#ifndef WEIR_KERNELS_LIB_DRAW_ORDER_H_
#define WEIR_KERNELS_LIB_DRAW_ORDER_H_

#include "absl/functional/function_ref.h"
#include "weir/kernels/lib/philox.h"
#include "weir/kernels/lib/seed_source.h"

namespace weir {

// The place of one call among calls of a function at the same time, which draw their random numbers
// in the order in which one thread would make them (StepInfo::draws). Thread-safe.
class DrawOrder {
 public:
  virtual ~DrawOrder() = default;
  // Returns reserve(), the start of the numbers that this call draws from a stream, when all
  // earlier calls have drawn from it or have ended. A call draws once from a stream; if it is made
  // again, it gets the same numbers. Throws StepCancelled if the call must end first.
  virtual Philox Draw(SeedSource& stream, absl::FunctionRef<Philox()> reserve) = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_DRAW_ORDER_H_
