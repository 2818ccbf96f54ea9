#ifndef WEIR_KERNELS_JSON_EXAMPLE_H_
#define WEIR_KERNELS_JSON_EXAMPLE_H_

#include <string>

#include "weir/core/status.h"

namespace weir {

// A serialized Example from its form in JSON. INVALID_ARGUMENT with the place of the first mistake.
absl::StatusOr<std::string> ExampleFromJson(const std::string& json);

}  // namespace weir

#endif  // WEIR_KERNELS_JSON_EXAMPLE_H_
