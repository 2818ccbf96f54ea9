#ifndef WEIR_KERNELS_CONTAINERS_TENSOR_LIST_H_
#define WEIR_KERNELS_CONTAINERS_TENSOR_LIST_H_

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/containers/stored_values.h"

// Shared code of the kernels of lists. All functions validate their arguments.
namespace weir {

// Returns the list in the scalar at input i.
absl::StatusOr<const TensorList*> InputList(const KernelContext& c, int i);
absl::Status CheckListType(const TensorList& list, DataType dtype);
// Reads a shape from a vector in which -1 means unknown, or from the scalar -1 for unknown rank.
absl::StatusOr<Shape> ReadElementShape(const Tensor& t);
// Merges both shapes. If they contradict each other, returns an error in the words of TensorFlow's
// kernels of lists.
absl::StatusOr<Shape> MergeListShapes(const Shape& a, const Shape& b);
// Returns the shape at input i merged with that of the list's elements.
absl::StatusOr<Shape> ElementShape(const KernelContext& c, const TensorList& list, int i);
// Returns `shape` merged with the shapes of the existing elements, where the list leaves it
// unknown.
absl::StatusOr<Shape> MergeElements(const TensorList& list, Shape shape);
// Sets element i, which is below the list's size.
absl::Status PutElement(KernelContext& c, TensorList* list, int64_t i, const Tensor& value);
// Sets the elements at these indices to the rows of `value`.
absl::Status PutRows(KernelContext& c, TensorList* list, const Tensor& value,
                     absl::Span<const int64_t> at);

// Conversions between lists and tensors (tensor_list_concat.cc): a part of AddTensorListKernels.
void AddTensorListConcat(KernelRegistry* r);

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_TENSOR_LIST_H_
