#include "weir/capi/attr_values.h"

#include <cstring>

namespace weir::capi {

absl::StatusOr<std::string> BytesAt(const void* bytes, size_t length) {
  if (bytes == nullptr && length > 0) return InvalidArgument("a string is null");
  if (length > static_cast<size_t>(INT32_MAX))
    return InvalidArgument("a string of ", length, " bytes is too long");
  return std::string(static_cast<const char*>(bytes), length);
}

absl::StatusOr<Tensor> CopyOf(const TF_Tensor* tensor) {
  WEIR_ASSIGN_OR_RETURN(const Tensor value, ValueOf(tensor));
  if (!IsPlain(value.dtype())) return value;
  WEIR_ASSIGN_OR_RETURN(Tensor copy,
                        Tensor::Allocate(HostAllocator(), value.dtype(), value.shape()));
  if (value.num_bytes() > 0) std::memcpy(copy.raw(), value.raw(), value.num_bytes());
  return copy;
}

}  // namespace weir::capi
