#ifndef WEIR_KERNELS_TENSOR_LIST_H_
#define WEIR_KERNELS_TENSOR_LIST_H_

#include "weir/core/kernel.h"
#include "weir/kernels/stored_values.h"

// What the kernels of lists share. All functions check what they are given.
namespace weir {

// The list in the scalar at input i.
absl::StatusOr<const TensorList*> InputList(const KernelContext& c, int i);
absl::Status CheckListType(const TensorList& list, DataType dtype);
// A shape given as a vector in which -1 is unknown, or as the scalar -1: unknown rank.
absl::StatusOr<Shape> ReadElementShape(const Tensor& t);
// What both shapes together say; if they contradict each other, an error in the words of
// TensorFlow's kernels of lists.
absl::StatusOr<Shape> MergeListShapes(const Shape& a, const Shape& b);
// The shape at input i and that of the list's elements, merged.
absl::StatusOr<Shape> ElementShape(const KernelContext& c, const TensorList& list, int i);
// `shape` merged with the shapes of the elements there are, where the list leaves those open.
absl::StatusOr<Shape> MergeElements(const TensorList& list, Shape shape);
// Sets element i, which is below the list's size.
absl::Status PutElement(KernelContext& c, TensorList* list, int64_t i, const Tensor& value);
// Sets the elements at these indices to the rows of `value`.
absl::Status PutRows(KernelContext& c, TensorList* list, const Tensor& value,
                     absl::Span<const int64_t> at);

// Lists made of tensors and tensors made of lists (tensor_list_concat.cc): a part of
// AddTensorListKernels.
void AddTensorListJoining(KernelRegistry* r);

}  // namespace weir

#endif  // WEIR_KERNELS_TENSOR_LIST_H_
