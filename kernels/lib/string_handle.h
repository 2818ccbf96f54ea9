#ifndef WEIR_KERNELS_LIB_STRING_HANDLE_H_
#define WEIR_KERNELS_LIB_STRING_HANDLE_H_

#include <memory>
#include <string>

#include "weir/core/runtime/resource.h"
#include "weir/core/tensor/tensor.h"

namespace weir {

// The resource handles of TensorFlow before it had DT_RESOURCE: a string[2], the container and the
// name, which any op on strings may read. Here the resource is looked up by the address of those
// strings, so that no step can find another step's resource by guessing a name. The resource lives
// as long as that memory. A copy of the strings at another address refers to no resource.
// Thread-safe.
Tensor StringHandle(const std::string& container, const std::string& name,
                    std::shared_ptr<Resource> resource);
// Returns null if the tensor is not such a handle.
std::shared_ptr<Resource> FindByStringHandle(const Tensor& handle);
// Returns whether the value shares a handle's memory, so that holding the value keeps the resource
// alive.
bool SharesStringHandle(const Tensor& value);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_STRING_HANDLE_H_
