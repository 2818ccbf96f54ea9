#ifndef WEIR_CORE_TENSOR_VARIANT_H_
#define WEIR_CORE_TENSOR_VARIANT_H_

#include <any>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weir/core/tensor/tensor.h"

namespace weir {

// An element of a DT_VARIANT tensor: any copyable C++ value, with its type name and bytes on the
// wire. Values that Weir cannot interpret keep their bytes and survive a round trip.
class Variant {
 public:
  std::string type_name;
  std::string metadata;
  std::any value;
};

// What a variant is outside the process (VariantTensorDataProto): bytes and tensors. A value of a
// type without a codec that consists of these holds the tensors (std::vector<Tensor>).
struct VariantParts {
  std::string metadata;
  std::vector<Tensor> tensors;
};

// How the values of one type are taken apart and put together. `join` returns INVALID_ARGUMENT for
// parts that do not fit.
struct VariantCodec {
  VariantParts (*split)(const std::any& value);
  absl::StatusOr<std::any> (*join)(VariantParts parts);
};
// Registers the codec of a type, in the whole process, before any tensor is read. Thread-safe.
void RegisterVariantCodec(const std::string& type_name, VariantCodec codec);

// Returns UNIMPLEMENTED, with the type, if an element of the tensor is a value that exists only in
// this process, such as a data set.
absl::Status CheckHasParts(const Tensor& variants);
// Returns the parts of a value; only its metadata if it has no others.
VariantParts SplitVariant(const Variant& variant);
absl::StatusOr<Variant> JoinVariant(std::string type_name, VariantParts parts);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_VARIANT_H_
