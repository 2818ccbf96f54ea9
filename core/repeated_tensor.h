#ifndef WEIR_CORE_REPEATED_TENSOR_H_
#define WEIR_CORE_REPEATED_TENSOR_H_

#include "weir/core/tensor.h"

namespace weir {

// A tensor of this shape in host memory, each element of which is the one element of `value`: what
// a few bytes stand for in a GraphDef, and what Constant(0.1) gives a variable to start from. From
// a megabyte on it takes a 64th of its size, until somebody writes to it. The type is a plain one.
//
// RESOURCE_EXHAUSTED or INVALID_ARGUMENT as Tensor::Allocate.
absl::StatusOr<Tensor> RepeatedTensor(const Tensor& value, const Shape& shape);

// Writes `count` elements of `size` bytes like the one at `value`, which is none of them.
void RepeatElement(const void* value, size_t size, void* out, int64_t count);

}  // namespace weir

#endif  // WEIR_CORE_REPEATED_TENSOR_H_
