#ifndef WEIR_RPC_MODELS_JSON_RESPONSE_H_
#define WEIR_RPC_MODELS_JSON_RESPONSE_H_

#include <string>
#include <vector>

#include "weir/serving/inference.h"

// The bodies of responses of TensorFlow Serving's REST API. Numbers read back as the same values of
// their dtype; NaN and infinities are NaN, Infinity and -Infinity, which are not JSON but what
// Serving writes.
namespace weir::rpc {

// {"predictions": [...]}, one element for each row, or {"outputs": ...} with whole tensors: values,
// or objects with one value for each output if there are several. A string is {"b64": "..."} if the
// name of its output ends with "_bytes".
//
//   INVALID_ARGUMENT     by rows, an output without rows or with another number of them; a string
//                        that is not UTF-8 and no "_bytes"
//   UNIMPLEMENTED        a dtype that JSON cannot express
//   RESOURCE_EXHAUSTED   a body of more than `max_bytes`
absl::StatusOr<std::string> PredictResponse(const serving::NamedTensors& outputs, bool by_rows,
                                            size_t max_bytes);

// {"results": [[["label", score], ...], ...]}; errors as above.
absl::StatusOr<std::string> ClassifyResponse(const serving::Classification& classification);
// {"results": [value, ...]}
std::string RegressResponse(const serving::Regression& regression);

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_JSON_RESPONSE_H_
