#ifndef WEIR_RPC_MODELS_PREDICTION_SERVICE_H_
#define WEIR_RPC_MODELS_PREDICTION_SERVICE_H_

#include <chrono>

#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/response_limit.h"
#include "weir/serving/inference.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace weir::proto::serving {
class ClassificationRequest;
class ClassificationResponse;
class GetModelMetadataRequest;
class GetModelMetadataResponse;
class ModelSpec;
class MultiInferenceRequest;
class MultiInferenceResponse;
class PredictRequest;
class PredictResponse;
class RegressionRequest;
class RegressionResponse;
}  // namespace weir::proto::serving

namespace weir::rpc {

class RequestLog;

// Options of a PredictionService.
struct PredictionOptions {
  RequestLog* log = nullptr;  // which requests to log, and where; null: none
  // The time limit of a call, besides the client's. Zero: none.
  std::chrono::milliseconds limit{0};
  ResponseLimit max_response{};
};

// TensorFlow Serving's PredictionService without the network layer: one function for each method,
// from request (proto/predict.proto and others) to response. Thread-safe. Each sets `model`,
// `version` and `signature` of the call.
//
// clang-format off
//   INVALID_ARGUMENT    no model_spec, an unknown label, inputs that the signature refuses, an
//                       output that it does not have or that is named twice, no examples, a
//                       signature of another method
//   NOT_FOUND           no such model, version or signature
//   RESOURCE_EXHAUSTED  too large a response, or no memory for it
// clang-format on
//
// In addition: the errors of ModelManager::Run.
class PredictionService {
 public:
  // The models, and the log in the options, must outlive the service.
  explicit PredictionService(serving::ModelManager& models, const PredictionOptions& options = {})
      : models_(models), options_(options) {}

  // Moves the inputs out of the request. The response has all elements in typed fields
  // (`float_val`), as TensorFlow Serving's by default.
  absl::Status Predict(proto::serving::PredictRequest& request, Call& call,
                       proto::serving::PredictResponse* response);
  absl::Status Classify(const proto::serving::ClassificationRequest& request, Call& call,
                        proto::serving::ClassificationResponse* response);
  absl::Status Regress(const proto::serving::RegressionRequest& request, Call& call,
                       proto::serving::RegressionResponse* response);
  // One version of one model answers all tasks.
  absl::Status MultiInference(const proto::serving::MultiInferenceRequest& request, Call& call,
                              proto::serving::MultiInferenceResponse* response);
  // Returns the signatures, for the metadata field "signature_def".
  absl::Status GetModelMetadata(const proto::serving::GetModelMetadataRequest& request, Call& call,
                                proto::serving::GetModelMetadataResponse* response);

 private:
  // Sets `call.model` if the model exists, and returns what the request asks for.
  absl::StatusOr<serving::ModelSpec> Spec(bool is_given, const proto::serving::ModelSpec& spec,
                                          Call& call) const;
  RunOptions Options(Call& call) const;
  bool Samples(const serving::ModelSpec& spec) const;
  // Reserves the memory of a response with these outputs, before it is made.
  absl::Status ReserveResponse(const serving::NamedTensors& outputs, Call& call) const;
  absl::Status CheckSize(const google::protobuf::MessageLite& response) const;

  serving::ModelManager& models_;
  const PredictionOptions options_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_PREDICTION_SERVICE_H_
