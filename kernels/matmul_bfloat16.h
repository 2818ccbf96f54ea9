#ifndef WEIR_KERNELS_MATMUL_BFLOAT16_H_
#define WEIR_KERNELS_MATMUL_BFLOAT16_H_

#include "weir/core/numeric_types.h"
#include "weir/core/status.h"

namespace weir {

// Products of bfloat16 by instructions for them (AVX512-BF16, AMX): they multiply pairs, add in
// float, and the sum is rounded once. Denormal numbers count as zero. Whether the processor has
// such, and is faster with them than with floats that are widened: twice as fast and more, or half.
bool HasBfloat16Products();

// C[m, n] = op(A)[m, k] op(B)[k, n], as pieces of larger matrices: rows as stored are lda, ldb and
// ldc elements apart.
struct Bfloat16Product {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  friend bool operator==(const Bfloat16Product&, const Bfloat16Product&) = default;
};

// On the calling thread. Needs HasBfloat16Products(), and no extent of 0. A thread makes code for
// a product that it meets for the first time, which takes 0.1 to 0.2 ms, and keeps that of the last
// few. INTERNAL or RESOURCE_EXHAUSTED if oneDNN fails.
absl::Status MultiplyBfloat16(const Bfloat16Product& product, const bfloat16* a, const bfloat16* b,
                              bfloat16* c);

}  // namespace weir

#endif  // WEIR_KERNELS_MATMUL_BFLOAT16_H_
