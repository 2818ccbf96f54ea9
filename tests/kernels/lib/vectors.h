#ifndef WEIR_TESTS_KERNELS_LIB_VECTORS_H_
#define WEIR_TESTS_KERNELS_LIB_VECTORS_H_

#include "weir/core/tensor/tensor.h"

// Short constructors for small tensors.
namespace weir::pick {

inline Tensor I32(int32_t v) { return Tensor::Scalar(v); }
inline Tensor I32(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
inline Tensor I64(std::initializer_list<int64_t> values) { return Tensor::Vector<int64_t>(values); }
inline Tensor F32(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

}  // namespace weir::pick

#endif  // WEIR_TESTS_KERNELS_LIB_VECTORS_H_
