#ifndef WEIR_KERNELS_ARRAY_COLUMN_PARTS_H_
#define WEIR_KERNELS_ARRAY_COLUMN_PARTS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "weir/core/runtime/kernel.h"

// Matrices and their parts: concatenation along an axis, and its inverse.
namespace weir {

// `width` columns of a matrix, from column `begin` on, which are also a matrix of their own at
// `data`.
struct ColumnPart {
  void* data = nullptr;
  int64_t begin = 0, width = 0;
};

using ColumnParts = absl::InlinedVector<ColumnPart, 4>;

// A matrix of `rows` rows of `row` elements, at `data`.
struct ColumnMatrix {
  void* data = nullptr;
  DataType dtype = DT_INVALID;
  int64_t rows = 0, row = 0;
};

// Copies all parts into the matrix, and the columns of the matrix into all parts. Memory is that of
// the kernel's device, on whose threads the copies run.
void JoinColumns(const KernelContext& c, const ColumnMatrix& to, const ColumnParts& parts);
void SplitColumns(const KernelContext& c, const ColumnMatrix& from, const ColumnParts& parts);

}  // namespace weir

#endif  // WEIR_KERNELS_ARRAY_COLUMN_PARTS_H_
