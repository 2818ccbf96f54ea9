#ifndef WEIR_CORE_TENSOR_RESOURCE_HANDLE_H_
#define WEIR_CORE_TENSOR_RESOURCE_HANDLE_H_

#include <memory>
#include <string>

#include "weir/core/tensor/api.h"

// The elements of tensors that refer to variables, queues and tables.
namespace WEIR_API weir {

class Resource;  // core/runtime/resource.h

// An element of a DT_RESOURCE tensor: a name, and the resource itself once it has been looked up.
class ResourceHandle {
 public:
  std::string device, container, name;  // where it lives, and under which name
  std::shared_ptr<Resource> resource;   // null until it is looked up; shared with the session's map
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_RESOURCE_HANDLE_H_
