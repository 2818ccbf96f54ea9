#ifndef WEIR_KERNELS_ONE_HOT_H_
#define WEIR_KERNELS_ONE_HOT_H_

#include "weir/core/kernel.h"

namespace weir {

// What OneHot makes of its arguments: for each of `outer` x `inner` indices, `depth` elements that
// are `inner` apart.
struct OneHotLayout {
  Shape out;
  int64_t outer = 1, depth = 0, inner = 1;
};
// `axis` is the op's attribute. INVALID_ARGUMENT if an argument does not fit.
absl::StatusOr<OneHotLayout> LayOutOneHot(const KernelContext& c, int64_t axis);

}  // namespace weir

#endif  // WEIR_KERNELS_ONE_HOT_H_
