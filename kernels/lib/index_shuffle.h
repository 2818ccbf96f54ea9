#ifndef WEIR_KERNELS_LIB_INDEX_SHUFFLE_H_
#define WEIR_KERNELS_LIB_INDEX_SHUFFLE_H_

#include <array>
#include <cstdint>

namespace weir {

using IndexShuffleSeed = std::array<uint32_t, 3>;

// Returns the position of an index in a random permutation of [0, max_index], without materializing
// the permutation. It is TensorFlow's for the same seed and an even number of rounds, at least 4.
uint64_t ShuffledIndex(uint64_t index, const IndexShuffleSeed& seed, uint64_t max_index,
                       int64_t rounds);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_INDEX_SHUFFLE_H_
