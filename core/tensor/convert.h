#ifndef WEIR_CORE_TENSOR_CONVERT_H_
#define WEIR_CORE_TENSOR_CONVERT_H_

#include <cstdint>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/tensor.h"

namespace WEIR_API weir {

// Whether a conversion may change a value.
enum class Rounding : uint8_t { kNever, kAllowed };

// Converts numbers and booleans to another dtype of these, for values that come from files: unlike
// the op Cast, it never wraps around or saturates. Real numbers convert to complex ones, but not
// back. Returns the tensor itself if it has the dtype already.
//
// INVALID_ARGUMENT, with the index and the value of the first such element, for one that the dtype
// does not have; with Rounding::kAllowed only if it is out of the dtype's range (numbers are then
// rounded to the nearest, ties to even). Also INVALID_ARGUMENT for other dtypes.
absl::StatusOr<Tensor> ConvertTensor(const Tensor& tensor, DataType dtype,
                                     Rounding rounding = Rounding::kNever);

// Stores a real number as element i of a tensor of numbers or booleans, by the same rules. (A long
// double has every double and every 64-bit integer.) Returns false if the dtype does not have the
// number, or is none of these.
bool StoreNumber(long double value, Rounding rounding, int64_t i, Tensor* tensor);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_CONVERT_H_
