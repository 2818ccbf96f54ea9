#ifndef WEIR_KERNELS_GPU_GRID_INDEX_H_
#define WEIR_KERNELS_GPU_GRID_INDEX_H_

#include <cstdint>

#include "weir/core/tensor/numeric_types.h"

namespace weir {

inline constexpr int kMaxGridDims = 8;

// Maps element i of a grid, in row-major order, to its offset in each of kN tensors that are
// broadcast to the grid with their own strides (in elements; 0 where broadcast, negative where
// reversed). Passed to GPU kernels by value. Dimensions of extent 1 are dropped, and adjacent
// dimensions that all tensors traverse with one stride are merged. So most grids have one
// dimension, which needs no division.
template <int kN>
struct GridIndex {
  int64_t count = 1;  // elements of the grid
  int32_t rank = 0;
  int64_t dims[kMaxGridDims] = {};
  int64_t strides[kN][kMaxGridDims] = {};

  // Adds a dimension inside the existing ones. Returns false without adding it if there are too
  // many.
  WEIR_HD bool Add(int64_t extent, const int64_t (&stride)[kN]) {
    if (extent != 1) {
      bool merges = rank > 0;
      for (int k = 0; k < kN; ++k) merges = merges && strides[k][rank - 1] == stride[k] * extent;
      if (!merges && rank == kMaxGridDims) return false;
      if (!merges) dims[rank++] = 1;
      dims[rank - 1] *= extent;
      for (int k = 0; k < kN; ++k) strides[k][rank - 1] = stride[k];
    }
    count *= extent;
    return true;
  }

  // at[k]: the offset in tensor k. 0 <= i < count.
  WEIR_HD void Locate(int64_t i, int64_t* at) const {
    for (int k = 0; k < kN; ++k) at[k] = 0;
    if (rank == 0) return;
    if (count <= int64_t{0xffffffff}) {
      Walk(static_cast<uint32_t>(i), at);  // 64-bit divisions are several times slower
    } else {
      Walk(static_cast<uint64_t>(i), at);
    }
  }

 private:
  template <class U>
  WEIR_HD void Walk(U i, int64_t* at) const {
    for (int d = rank - 1; d > 0; --d) {
      const U extent = static_cast<U>(dims[d]), next = i / extent;
      const int64_t index = static_cast<int64_t>(i - next * extent);
      for (int k = 0; k < kN; ++k) at[k] += index * strides[k][d];
      i = next;
    }
    for (int k = 0; k < kN; ++k) at[k] += static_cast<int64_t>(i) * strides[k][0];
  }
};

// `count` contiguous elements in each of kN tensors.
template <int kN>
GridIndex<kN> DenseGrid(int64_t count) {
  GridIndex<kN> grid;
  int64_t ones[kN];
  for (int k = 0; k < kN; ++k) ones[k] = 1;
  grid.Add(count, ones);
  return grid;
}

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_GRID_INDEX_H_
