#ifndef WEIR_KERNELS_STRING_HANDLE_H_
#define WEIR_KERNELS_STRING_HANDLE_H_

#include <memory>
#include <string>

#include "weir/core/resource.h"
#include "weir/core/tensor.h"

namespace weir {

// How a step named what it had made before TensorFlow had resources: by a string[2], the container
// and the name, which any op on strings may look at. Here the memory of those strings is what the
// resource is found by, so that nobody finds another step's by guessing a name; it lives as long as
// that memory. A copy of the strings elsewhere names nothing. Thread-safe.
Tensor StringHandle(const std::string& container, const std::string& name,
                    std::shared_ptr<Resource> resource);
// Null if the tensor is no such handle.
std::shared_ptr<Resource> FindByStringHandle(const Tensor& handle);
// It lies in the memory of a handle: whoever keeps it keeps the resource.
bool SharesStringHandle(const Tensor& value);

}  // namespace weir

#endif  // WEIR_KERNELS_STRING_HANDLE_H_
