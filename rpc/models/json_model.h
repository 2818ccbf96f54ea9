#ifndef WEIR_RPC_MODELS_JSON_MODEL_H_
#define WEIR_RPC_MODELS_JSON_MODEL_H_

#include <string>
#include <vector>

#include "weir/serving/model_manager.h"

// The bodies of responses of TensorFlow Serving's REST API about models.
namespace weir::rpc {

// {"model_spec": {...}, "metadata": {"signature_def": {"signature_def": {...}}}}
std::string MetadataResponse(const serving::Servable& servable);

// {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": {...}}]}
std::string StatesResponse(const std::vector<serving::VersionStatus>& versions);

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_JSON_MODEL_H_
