#ifndef WEIR_TOOLS_LIB_EXAMPLE_VALUE_H_
#define WEIR_TOOLS_LIB_EXAMPLE_VALUE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weir/core/tensor/status.h"

namespace weir::tools {

// Returns the serialized tf.Example of a JSON object, in one of two forms:
//
//   {"age": 39, "scores": [0.5, 1], "name": "a", "image": {"b64": "YQ=="}}
//   {"features": {"feature": {"age": {"int64List": {"value": ["39"]}}}}}    protobuf's JSON
//
// In the first, a feature is a value or a list. Whole numbers and booleans become int64, lists with
// a number that has a point or an exponent float, strings bytes. An empty list is a feature without
// values. INVALID_ARGUMENT, with the feature, for other values, and for numbers out of range.
absl::StatusOr<std::string> SerializeExample(const nlohmann::json& object);

// Whether a JSON value is {"b64": "..."}: a string of any bytes.
bool IsBase64(const nlohmann::json& value);
// Decodes it. Returns false if it is not valid base64.
bool DecodeBase64(const nlohmann::json& value, std::string* out);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_EXAMPLE_VALUE_H_
