#ifndef WEIR_KERNELS_ARRAY_REVERSE_LINES_H_
#define WEIR_KERNELS_ARRAY_REVERSE_LINES_H_

#include <cstddef>
#include <cstdint>

namespace weir {

// Whether ReverseLine handles pixels of `size` bytes: 1, 2, 4, 8 or 16, or three times 1, 2, 4
// or 8.
bool CanReverse(size_t size);

// Copies n pixels of `size` bytes in reverse order, in vectors: the flip of an image's row. The two
// lines do not overlap.
void ReverseLine(size_t size, const void* from, int64_t n, void* to);

}  // namespace weir

#endif  // WEIR_KERNELS_ARRAY_REVERSE_LINES_H_
