#ifndef WEIR_KERNELS_GPU_GPU_KERNELS_H_
#define WEIR_KERNELS_GPU_GPU_KERNELS_H_

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/grid_index.h"

// The families of GPU kernels, and their shared helpers. gpu.h declares the backend.
namespace weir {

// Families built on the loops in gpu_loops.h.
void AddElementwiseGpu(KernelRegistry* r);  // elementwise_gpu.cc
void AddArrayGpu(KernelRegistry* r);        // array_gpu.cc
void AddReduceGpu(KernelRegistry* r);       // reduce_gpu.cc
void AddSoftmaxGpu(KernelRegistry* r);      // softmax_gpu.cc
void AddPoolGpu(KernelRegistry* r);         // pool_gpu.cc
void AddBatchNormGpu(KernelRegistry* r);    // batch_norm_gpu.cc
// All of the above, and the kernels that a GPU shares with the CPU (kernels/lib/backend.h).
void AddLoopKernels(KernelRegistry* r);  // array_gpu.cc

// Families that call NVIDIA's libraries.
void AddMatMulGpu(KernelRegistry* r);  // matmul_gpu.cc
void AddConvGpu(KernelRegistry* r);    // conv_gpu.cc

namespace gpu {

// Returns the grid of tensors of these shapes broadcast to a result by NumPy's rule. UNIMPLEMENTED
// if the result has more dimensions (after merging) than kernels support.
template <int kN>
absl::StatusOr<GridIndex<kN>> BroadcastGrid(const Shape& result, const Shape* const (&shapes)[kN]) {
  GridIndex<kN> grid;
  int64_t strides[kN], running[kN];
  for (int k = 0; k < kN; ++k) running[k] = shapes[k]->num_elements();
  for (int d = 0; d < result.rank(); ++d) {
    for (int k = 0; k < kN; ++k) {
      const int own = d - (result.rank() - shapes[k]->rank());
      const int64_t extent = own < 0 ? 1 : shapes[k]->dim(own);
      if (extent > 0) running[k] /= extent;
      strides[k] = extent == 1 ? 0 : running[k];
    }
    if (!grid.Add(result.dim(d), strides)) {
      return Unimplemented("broadcasting to shape ", result.ToString(),
                           " needs more dimensions than GPU kernels have");
    }
  }
  return grid;
}

// A reduction of elements viewed as [kept, reduced], in passes; see reduce_gpu.cc.
// `reduced_inside`: elements adjacent in memory are adjacent in the reduced dimensions.
struct Reduction {
  const Reducer* reducer = nullptr;
  GridIndex<1> kept, reduced;
  int64_t count = 0;  // elements per result
  bool reduced_inside = true;
};
absl::Status Reduce(KernelContext& c, const Reduction& reduction, const void* in, void* out);

// Reduces each row of a matrix to one value.
absl::Status ReduceRows(KernelContext& c, const Reducer& reducer, int64_t rows, int64_t columns,
                        const void* in, void* out);

}  // namespace gpu

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_GPU_KERNELS_H_
