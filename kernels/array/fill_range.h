#ifndef WEIR_KERNELS_ARRAY_FILL_RANGE_H_
#define WEIR_KERNELS_ARRAY_FILL_RANGE_H_

#include <cstddef>
#include <cstdint>

namespace weir {

// to[i] = first + i * step for i in [0, n), for integers of `size` bytes (1, 2, 4 or 8), which wrap
// around. Runs on the calling thread, in vectors.
void FillRange(size_t size, uint64_t first, uint64_t step, int64_t n, void* to);

}  // namespace weir

#endif  // WEIR_KERNELS_ARRAY_FILL_RANGE_H_
