#ifndef WEIR_CAPI_INPUT_TYPES_H_
#define WEIR_CAPI_INPUT_TYPES_H_

#include <vector>

#include "weir/capi/objects.h"

namespace weir::capi {

// Checks the number and the types of the arguments of an operation under construction, whose
// tensors are `inputs`. INVALID_ARGUMENT in TensorFlow's words.
absl::Status CheckInputs(const TF_OperationDescription& desc, const OpSpec& op,
                         const std::vector<Outputs>& inputs);

}  // namespace weir::capi

#endif  // WEIR_CAPI_INPUT_TYPES_H_
