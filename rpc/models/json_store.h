#ifndef WEIR_RPC_MODELS_JSON_STORE_H_
#define WEIR_RPC_MODELS_JSON_STORE_H_

#include "weir/core/tensor/tensor.h"
#include "weir/rpc/models/json_events.h"

namespace weir::rpc {

// Whether JSON has values for a dtype: floating-point, integers, bool and string.
bool IsInJson(DataType dtype);

// Stores a value as element `at` of a tensor; a text is moved. Returns INVALID_ARGUMENT for a value
// that the dtype does not have exactly (see ParsePredictRequest), UNIMPLEMENTED for other dtypes.
absl::Status StoreJson(JsonScalar& value, Tensor* tensor, int64_t at);

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_JSON_STORE_H_
