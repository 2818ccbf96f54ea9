#ifndef WEIR_RPC_MODELS_JSON_REQUEST_H_
#define WEIR_RPC_MODELS_JSON_REQUEST_H_

#include <functional>
#include <string>

#include "weir/serving/inference.h"

// The bodies of requests to TensorFlow Serving's REST API.
//
// A text is parsed twice, first for the shapes of its tensors, and then into tensors of these
// shapes: it needs no memory besides them.
namespace weir::rpc {

struct JsonPredictRequest {
  std::string signature;  // "signature_name"; "" if it is not given
  bool by_rows = false;   // "instances"; otherwise "inputs"
  serving::NamedTensors inputs;
};

// Returns a signature ("" is the default), which outlives the call of ParsePredictRequest.
using FindSignature =
    std::function<absl::StatusOr<const serving::SignatureInfo*>(const std::string& signature)>;

// Parses the body of a predict request: {"instances": [...]} with one element for each row, or
// {"inputs": ...} with whole tensors. In both, values are those of the only input, or objects with
// one value for each input.
//
// Numbers must be exact: an integer for a tensor of integers must be in the range of its dtype, one
// for a floating-point tensor must be representable; other numbers are rounded, and must not
// overflow. Errors are TensorFlow Serving's:
//
//   INVALID_ARGUMENT     what ParseJson refuses; other keys than the signature's inputs
//                        (those with defaults may be missing); a value of
//                        another type; lists of different lengths; keys that occur twice
//   UNIMPLEMENTED        an input whose dtype JSON cannot express
//   RESOURCE_EXHAUSTED   tensors of more than 64 MB and four times the size of the text
absl::StatusOr<JsonPredictRequest> ParsePredictRequest(absl::string_view json,
                                                       const FindSignature& find_signature);

struct JsonExamplesRequest {
  std::string signature;
  serving::Examples examples;
};

// Parses the body of a classify or regress request: {"examples": [{"feature": value or list}],
// "context": {...}}. A feature is of 64-bit integers (also true and false), of floats (numbers with
// a point or an exponent), or of strings. Errors are INVALID_ARGUMENT, as above, and
// RESOURCE_EXHAUSTED for an example of more than 10,000 features.
absl::StatusOr<JsonExamplesRequest> ParseExamplesRequest(absl::string_view json);

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_JSON_REQUEST_H_
