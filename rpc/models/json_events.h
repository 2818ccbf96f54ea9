#ifndef WEIR_RPC_MODELS_JSON_EVENTS_H_
#define WEIR_RPC_MODELS_JSON_EVENTS_H_

#include <cstdint>
#include <string>

#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/status.h"

// A JSON text as a sequence of events, so that reading it takes no memory besides its longest
// string.
namespace weir::rpc {

// A value that is neither a list nor an object.
struct JsonScalar {
  enum class Kind { kNull, kBool, kInt, kUint, kDouble, kString, kBytes };
  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t int_value = 0;    // kInt: negative numbers
  uint64_t uint_value = 0;  // kUint: others without a point or an exponent
  double double_value = 0;  // others, NaN and infinities; integers beyond 64 bits
  bool is_integer = false;  // kDouble: the text has neither a point nor an exponent
  std::string text = {};    // a string, or decoded bytes

  bool is_number() const {
    return kind == Kind::kInt || kind == Kind::kUint || kind == Kind::kDouble;
  }
  bool is_text() const { return kind == Kind::kString || kind == Kind::kBytes; }
  double AsDouble() const;
  // The value for messages, shortened.
  std::string ToString() const;
  // TensorFlow Serving's error for a value that has another type than a tensor.
  absl::Status TypeError(DataType dtype) const;
};

// Receives the events of a text in order. The first error ends the parsing, and is its result.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  // May move from the text.
  virtual absl::Status Scalar(JsonScalar& value) = 0;
  virtual absl::Status BeginList() = 0;
  virtual absl::Status EndList() = 0;
  virtual absl::Status BeginObject() = 0;
  virtual absl::Status Key(const std::string& name) = 0;
  virtual absl::Status EndObject() = 0;
};

// Parses a text. An object {"b64": "..."} is one scalar of kind kBytes. As TensorFlow Serving does,
// this accepts NaN, Infinity and -Infinity, which are not JSON.
//
//   INVALID_ARGUMENT   "JSON Parse error: ..." for text that is not JSON or not UTF-8, numbers that
//                      exceed a double, base64 that is invalid, and more than 260 nested lists and
//                      objects
absl::Status ParseJson(absl::string_view text, JsonHandler& handler);

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_JSON_EVENTS_H_
