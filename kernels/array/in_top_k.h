#ifndef WEIR_KERNELS_ARRAY_IN_TOP_K_H_
#define WEIR_KERNELS_ARRAY_IN_TOP_K_H_

#include <cstdint>

namespace weir {

// Returns whether fewer than k of the row's n elements are larger than `value`. Returns false if an
// element is infinite or NaN.
bool HasFewLarger(const float* row, int64_t n, float value, int64_t k);

}  // namespace weir

#endif  // WEIR_KERNELS_ARRAY_IN_TOP_K_H_
