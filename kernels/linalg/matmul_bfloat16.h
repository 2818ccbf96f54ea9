#ifndef WEIR_KERNELS_LINALG_MATMUL_BFLOAT16_H_
#define WEIR_KERNELS_LINALG_MATMUL_BFLOAT16_H_

#include "weir/core/tensor/numeric_types.h"
#include "weir/core/tensor/status.h"

namespace weir {

// Matrix products with bfloat16 instructions (AVX512-BF16, AMX), which multiply pairs and
// accumulate in float; the sum is rounded once. Denormals are flushed to zero. Returns whether the
// processor has such instructions and is faster with them than with widened floats (at least twice
// as fast; without AMX on Intel, half as fast).
bool HasBfloat16Products();

// C[m, n] = op(A)[m, k] op(B)[k, n], as blocks of larger matrices: stored rows have the strides
// lda, ldb and ldc.
struct Bfloat16Product {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  friend bool operator==(const Bfloat16Product&, const Bfloat16Product&) = default;
};

// Multiplies on the calling thread. Requires HasBfloat16Products(), and no extent of 0. A thread
// generates code for each new product, which takes 0.1 to 0.2 ms, and caches that of the last few.
// INTERNAL or RESOURCE_EXHAUSTED if oneDNN fails.
absl::Status MultiplyBfloat16(const Bfloat16Product& product, const bfloat16* a, const bfloat16* b,
                              bfloat16* c);

}  // namespace weir

#endif  // WEIR_KERNELS_LINALG_MATMUL_BFLOAT16_H_
