#ifndef WEIR_KERNELS_SPARSE_SPARSE_KERNELS_H_
#define WEIR_KERNELS_SPARSE_SPARSE_KERNELS_H_

#include "weir/kernels/sparse/sparse_value.h"

// Shared code of the kernels for sparse tensors.
namespace weir {

// The parts of AddSparseCpu, AddSparseMathCpu and AddSparseMapKernels, one source file each.
void AddSparsePartsCpu(KernelRegistry* r);          // sparse_parts_cpu.cc
void AddCountCpu(KernelRegistry* r);                // count_cpu.cc
void AddSparseCrossCpu(KernelRegistry* r);          // sparse_cross_cpu.cc
void AddSparseReduceCpu(KernelRegistry* r);         // sparse_reduce_cpu.cc
void AddSparseMatMulCpu(KernelRegistry* r);         // sparse_matmul_cpu.cc
void AddEditDistanceCpu(KernelRegistry* r);         // edit_distance_cpu.cc
void AddSparseSerializeKernels(KernelRegistry* r);  // sparse_serialize.cc

// Writes outputs 0 and 1: these rows of indices and their values, in the order of the rows.
absl::Status OutputSorted(KernelContext& c, const int64_t* rows, int64_t rank,
                          const Tensor& values);

// Stacks sparse tensors of this type and one rank along a new first dimension; the other extents
// are the largest ones. Returns INVALID_ARGUMENT if they do not match.
absl::StatusOr<SparseValue> StackSparse(const std::vector<SparseValue>& parts, DataType type);
// Returns elements [begin, end) of x, without the first dimension.
SparseValue SparseRow(const SparseValue& x, int64_t begin, int64_t end);
// Writes outputs 0, 1 and 2: the parts of a sparse tensor.
absl::Status OutputSparse(KernelContext& c, const SparseValue& x);

}  // namespace weir

#endif  // WEIR_KERNELS_SPARSE_SPARSE_KERNELS_H_
