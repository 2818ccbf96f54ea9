#ifndef WEIR_KERNELS_RANDOM_SOBOL_NUMBERS_H_
#define WEIR_KERNELS_RANDOM_SOBOL_NUMBERS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

// The initial direction numbers of Sobol sequences (sobol_numbers.bin), compiled into the program.
// tests/kernels/make_sobol_numbers.py wrote them and describes their packing.
namespace weir {

inline constexpr int64_t kMaxSobolDimensions = 21200;

absl::string_view PackedSobolNumbers();

}  // namespace weir

#endif  // WEIR_KERNELS_RANDOM_SOBOL_NUMBERS_H_
