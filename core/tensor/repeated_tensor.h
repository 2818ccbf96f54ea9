#ifndef WEIR_CORE_TENSOR_REPEATED_TENSOR_H_
#define WEIR_CORE_TENSOR_REPEATED_TENSOR_H_

#include "weir/core/tensor/tensor.h"

namespace weir {

// Returns a tensor of this shape in host memory, all elements of which equal the single element of
// `value`. It holds values that a GraphDef compresses to a few bytes, and the initial values of
// variables such as Constant(0.1). From one megabyte on, it takes 1/64 of its size until it is
// written to. The dtype must be plain.
//
// Returns RESOURCE_EXHAUSTED or INVALID_ARGUMENT, as Tensor::Allocate.
absl::StatusOr<Tensor> RepeatedTensor(const Tensor& value, const Shape& shape);

// Writes `count` copies of the `size` bytes at `value` to `out`. `value` is outside of `out`.
void RepeatElement(const void* value, size_t size, void* out, int64_t count);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_REPEATED_TENSOR_H_
