#ifndef WEIR_KERNELS_RANDOM_PHILOX_WORDS_H_
#define WEIR_KERNELS_RANDOM_PHILOX_WORDS_H_

#include <cstdint>

#include "weir/kernels/lib/philox.h"

namespace weir {

// Writes the next `blocks` blocks of a stream, vectorized: 4 * blocks words, in order.
void PhiloxBlocks(const Philox& stream, int64_t blocks, uint32_t* out);
// Writes the same words as numbers in [0, 1): see UnitFloat.
void PhiloxUnitFloats(const Philox& stream, int64_t blocks, float* out);

}  // namespace weir

#endif  // WEIR_KERNELS_RANDOM_PHILOX_WORDS_H_
