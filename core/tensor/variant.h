#ifndef WEIR_CORE_TENSOR_VARIANT_H_
#define WEIR_CORE_TENSOR_VARIANT_H_

#include <any>
#include <string>

namespace weir {

// An element of a DT_VARIANT tensor: any copyable C++ value, with its type name and bytes on the
// wire. Values that Weir cannot interpret keep their bytes and survive a round trip.
class Variant {
 public:
  std::string type_name;
  std::string metadata;
  std::any value;
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_VARIANT_H_
