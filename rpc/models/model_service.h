#ifndef WEIR_RPC_MODELS_MODEL_SERVICE_H_
#define WEIR_RPC_MODELS_MODEL_SERVICE_H_

#include <functional>
#include <utility>
#include <vector>

#include "weir/rpc/lib/call.h"
#include "weir/serving/model_manager.h"

namespace weir::proto::serving {
class GetModelStatusRequest;
class GetModelStatusResponse;
class ReloadConfigRequest;
class ReloadConfigResponse;
}  // namespace weir::proto::serving

namespace weir::rpc {

// Serves these models from now on (ModelManager::Reload), if a client may ask for it.
using ReloadModels = std::function<absl::Status(std::vector<serving::ModelConfig>)>;

// TensorFlow Serving's ModelService without the network layer: one function for each method, from
// request (proto/get_model_status.proto, proto/model_management.proto) to response. Thread-safe.
class ModelService {
 public:
  // The models must outlive the service. Without `reload`, clients may not replace the models.
  ModelService(serving::ModelManager& models, ReloadModels reload)
      : models_(models), reload_(std::move(reload)) {}

  // Returns NOT_FOUND for an unknown model or version.
  absl::Status GetModelStatus(const proto::serving::GetModelStatusRequest& request, Call& call,
                              proto::serving::GetModelStatusResponse* response);
  // Returns when the new models are available. INVALID_ARGUMENT for an invalid configuration,
  // PERMISSION_DENIED if the client may not ask for it; nothing has changed then.
  absl::Status HandleReloadConfigRequest(const proto::serving::ReloadConfigRequest& request,
                                         Call& call,
                                         proto::serving::ReloadConfigResponse* response);

 private:
  serving::ModelManager& models_;
  const ReloadModels reload_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_MODEL_SERVICE_H_
