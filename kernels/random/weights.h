#ifndef WEIR_KERNELS_RANDOM_WEIGHTS_H_
#define WEIR_KERNELS_RANDOM_WEIGHTS_H_

#include <cstdint>

namespace weir {

// values[i] = e^(values[i] - max) for i < n, with vectors; 0 where that is below e^-700. No value
// is above `max`. The relative error is at most 2^-48.
void ExpBelow(double max, double* values, int64_t n);

}  // namespace weir

#endif  // WEIR_KERNELS_RANDOM_WEIGHTS_H_
