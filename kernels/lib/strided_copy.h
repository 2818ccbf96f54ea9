#ifndef WEIR_KERNELS_LIB_STRIDED_COPY_H_
#define WEIR_KERNELS_LIB_STRIDED_COPY_H_

#include "absl/types/span.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/tensor.h"
#include "weir/kernels/lib/arguments.h"

// Copies of elements of any type: the basis of slices, transposes, pads, concatenations and similar
// ops.
namespace weir {

// A copy between two rectangular grids of elements: for every index vector i below `extents`,
//   to[sum of i * to_strides] = from[sum of i * from_strides].
// Strides are in elements; those of the source may be zero (broadcasting), and either may be
// negative (reversal). Dimensions may be in any order; the order in memory of the destination is
// the fastest.
struct StridedCopy {
  Dims extents, from_strides, to_strides;
  void AddDim(int64_t extent, int64_t from_stride, int64_t to_stride) {
    extents.push_back(extent);
    from_strides.push_back(from_stride);
    to_strides.push_back(to_stride);
  }

  // `from` and `to` are the addresses of index vector 0. The copy must not access memory outside
  // the two tensors. The grids must not overlap, except where an element is copied onto itself.
  void Run(ThreadPool& pool, DataType dtype, const void* from, void* to) const;
  // Runs on the kernel's device.
  void Run(const KernelContext& c, DataType dtype, const void* from, void* to) const;
};

// Returns the row-major strides of a shape, in elements.
Dims StridesOf(absl::Span<const int64_t> dims);
inline Dims StridesOf(const Shape& shape) { return StridesOf(shape.dims()); }

// Returns the address of element i.
inline const void* ElementAt(const Tensor& t, int64_t i) {
  return static_cast<const char*>(t.raw()) + i * static_cast<int64_t>(ElementSize(t.dtype()));
}
inline void* ElementAt(Tensor& t, int64_t i) {
  return static_cast<char*>(t.raw()) + i * static_cast<int64_t>(ElementSize(t.dtype()));
}

// Copies `count` contiguous elements on the calling thread.
void CopyElements(DataType dtype, const void* from, void* to, int64_t count);
// Writes the element at `value` `count` times.
void FillElements(ThreadPool& pool, DataType dtype, const void* value, void* to, int64_t count);
// Writes `count` copies of the element of `size` bytes at `value`, on the calling thread.
void FillElements(void* to, const void* value, size_t size, int64_t count);
// Write zeros, false, or empty strings: to all elements, or to `count` elements from `begin` on, on
// the calling thread.
void ClearElements(ThreadPool& pool, Tensor& t);
void ClearElements(Tensor& t, int64_t begin, int64_t count);
// The same on the kernel's device, with its threads if that is the CPU; `value` is in host memory.
void CopyElements(const KernelContext& c, DataType dtype, const void* from, void* to,
                  int64_t count);
void FillElements(const KernelContext& c, DataType dtype, const void* value, void* to,
                  int64_t count);
void ClearElements(const KernelContext& c, Tensor& t);

// ---- shared code of kernels that copy elements

// Output i is elements [begin, begin + shape.num_elements()) of `input`: a view of them if that is
// possible and aligned (and the input's memory is not in the step's arena), otherwise a copy.
absl::Status OutputRun(KernelContext& c, int i, const Tensor& input, int64_t begin,
                       const Shape& shape);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_STRIDED_COPY_H_
