#ifndef WEIR_KERNELS_DATA_JSON_EXAMPLE_H_
#define WEIR_KERNELS_DATA_JSON_EXAMPLE_H_

#include <string>

#include "weir/core/tensor/status.h"

namespace weir {

// Converts an Example from JSON to its serialized form. INVALID_ARGUMENT with the position of the
// first error.
absl::StatusOr<std::string> ExampleFromJson(const std::string& json);

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_JSON_EXAMPLE_H_
