#ifndef WEIR_CAPI_ATTR_VALUES_H_
#define WEIR_CAPI_ATTR_VALUES_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/capi/objects.h"

// Attributes from the arrays and pointers of callers. All values are copies.
namespace weir::capi {

// Returns values[0], ..., values[count - 1] as a list, each converted by its index.
// INVALID_ARGUMENT if there is no such array.
template <class To, class From, class Convert>
absl::StatusOr<AttrValue> ListOf(const From* values, int count, Convert convert) {
  WEIR_RETURN_IF_ERROR(ArrayOf(values, count, "values").status());
  std::vector<To> list;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<To> value = convert(i);
    if (!value.ok()) return value.status();
    list.push_back(*std::move(value));
  }
  return AttrValue(std::move(list));
}

// Returns a string; INVALID_ARGUMENT for null, unless it is empty.
absl::StatusOr<std::string> BytesAt(const void* bytes, size_t length);

// Returns the value of a tensor, with elements of its own.
absl::StatusOr<Tensor> CopyOf(const TF_Tensor* tensor);

}  // namespace weir::capi

#endif  // WEIR_CAPI_ATTR_VALUES_H_
