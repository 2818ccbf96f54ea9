#include "weir/rpc/models/prediction_service.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/classification.pb.h"
#include "weir/proto/get_model_metadata.pb.h"
#include "weir/proto/inference.pb.h"
#include "weir/proto/predict.pb.h"
#include "weir/proto/prediction_log.pb.h"
#include "weir/proto/regression.pb.h"
#include "weir/rpc/models/model_messages.h"
#include "weir/rpc/models/request_log.h"

namespace weir::rpc {

namespace {

constexpr char kClassify[] = "tensorflow/serving/classify";
constexpr char kRegress[] = "tensorflow/serving/regress";
constexpr char kSignatures[] = "signature_def";

// The upper limit of what the typed fields of a tensor take: in the message, and serialized.
uint64_t BytesOfFields(const Tensor& value) {
  const auto count = static_cast<uint64_t>(value.num_elements());
  // Integers and bools are numbers of 4 or 8 bytes, and of up to 10 bytes on the wire.
  constexpr uint64_t kPerInteger = 8 + 10;
  if (value.dtype() != DT_STRING)
    return count * std::max<uint64_t>(2 * ElementSize(value.dtype()), kPerInteger);
  uint64_t bytes = count * (sizeof(std::string) + sizeof(std::string*) + 2);
  for (const std::string& text : value.flat<std::string>()) bytes += 2 * text.size();
  return bytes;
}

void Record(const serving::Answered& by, Call& call, proto::serving::ModelSpec* spec) {
  call.model = by.model;
  call.version = by.version;
  call.signature = by.signature;
  AnswererToProto(by, spec);
}

absl::StatusOr<std::vector<std::string>> OutputsOf(const proto::serving::PredictRequest& request) {
  std::set<absl::string_view> seen;
  for (const std::string& name : request.output_filter()) {
    if (!seen.insert(name).second) return InvalidArgument("duplicate output tensor alias: ", name);
  }
  return std::vector<std::string>(request.output_filter().begin(), request.output_filter().end());
}

absl::Status CheckTasks(const proto::serving::MultiInferenceRequest& request) {
  if (request.tasks().empty()) return InvalidArgument("Inference request must have tasks");
  const std::string& model = request.tasks(0).model_spec().name();
  std::set<std::string> signatures;
  for (const proto::serving::InferenceTask& task : request.tasks()) {
    const proto::serving::ModelSpec& spec = task.model_spec();
    if (spec.name().empty()) return InvalidArgument("Found ModelSpec with an empty model name");
    if (spec.name() != model) {
      return InvalidArgument(
          "All ModelSpecs in a MultiInferenceRequest must access the same model name. Found ",
          model, " and ", spec.name());
    }
    const std::string signature =
        spec.signature_name().empty() ? "serving_default" : spec.signature_name();
    if (!signatures.insert(signature).second)
      return InvalidArgument("Duplicate evaluation of signature: ", signature);
    if (task.method_name() != kClassify && task.method_name() != kRegress) {
      return Unimplemented("Unsupported signature method_name: '", task.method_name(),
                           "'; expected ", kClassify, " or ", kRegress);
    }
  }
  return absl::OkStatus();
}

// Adds a call of one method to the log: `part` selects its part of a PredictionLog.
template <class Request, class Response, class Part>
void Log(RequestLog& log, const Call& call, const proto::serving::ModelSpec& answerer,
         Request&& request, const Response& response, Part part) {
  proto::serving::PredictionLog entry;
  *entry.mutable_log_metadata()->mutable_model_spec() = answerer;
  auto* const logged = (entry.*part)();
  *logged->mutable_request() = std::forward<Request>(request);
  *logged->mutable_response() = response;
  log.Add(call.model, &entry);
}

}  // namespace

absl::StatusOr<serving::ModelSpec> PredictionService::Spec(bool is_given,
                                                           const proto::serving::ModelSpec& spec,
                                                           Call& call) const {
  if (!is_given) return InvalidArgument("Missing ModelSpec");
  if (spec.name().empty()) return InvalidArgument("ModelSpec has no name specified");
  // A name that no model has would be a label of metrics that the client has chosen.
  if (absl::c_linear_search(models_.models(), spec.name())) call.model = spec.name();
  return SpecFromProto(spec);
}

RunOptions PredictionService::Options(Call& call) const {
  return {.timeout = options_.limit, .cancellation = &call.cancellation};
}

absl::Status PredictionService::ReserveResponse(const serving::NamedTensors& outputs,
                                                Call& call) const {
  uint64_t bytes = 0;
  for (const auto& [name, value] : outputs) bytes += BytesOfFields(value);
  return call.response_memory.Take(bytes, "the response with the outputs");
}

absl::Status PredictionService::CheckSize(const google::protobuf::MessageLite& response) const {
  return options_.max_response.Check(response.ByteSizeLong(), "The response");
}

bool PredictionService::Samples(const serving::ModelSpec& spec) const {
  return options_.log != nullptr && options_.log->Samples(spec.name);
}

absl::Status PredictionService::Predict(proto::serving::PredictRequest& request, Call& call,
                                        proto::serving::PredictResponse* response) {
  WEIR_ASSIGN_OR_RETURN(const serving::ModelSpec spec,
                        Spec(request.has_model_spec(), request.model_spec(), call));
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> outputs, OutputsOf(request));
  proto::serving::PredictRequest logged;
  const bool logs = Samples(spec);
  if (logs) logged = request;
  serving::NamedTensors inputs;
  int64_t budget = kInputExpansionBudget;
  for (auto& [name, value] : *request.mutable_inputs())
    WEIR_RETURN_IF_ERROR(TakeInput(name, &value, &budget, &inputs));
  WEIR_ASSIGN_OR_RETURN(
      const serving::Prediction prediction,
      serving::Predict(models_, spec, inputs, outputs, Options(call), PriorityOf(call)));
  Record(prediction.by, call, response->mutable_model_spec());
  WEIR_RETURN_IF_ERROR(ReserveResponse(prediction.outputs, call));
  for (const auto& [name, value] : prediction.outputs)
    TensorToProtoFields(value, &(*response->mutable_outputs())[name]);
  WEIR_RETURN_IF_ERROR(CheckSize(*response));
  if (logs) {
    Log(*options_.log, call, response->model_spec(), std::move(logged), *response,
        &proto::serving::PredictionLog::mutable_predict_log);
  }
  return absl::OkStatus();
}

absl::Status PredictionService::Classify(const proto::serving::ClassificationRequest& request,
                                         Call& call,
                                         proto::serving::ClassificationResponse* response) {
  WEIR_ASSIGN_OR_RETURN(const serving::ModelSpec spec,
                        Spec(request.has_model_spec(), request.model_spec(), call));
  WEIR_ASSIGN_OR_RETURN(const serving::Examples examples, ExamplesFromProto(request.input()));
  WEIR_ASSIGN_OR_RETURN(
      const serving::Classification classification,
      serving::Classify(models_, spec, examples, Options(call), PriorityOf(call)));
  Record(classification.by, call, response->mutable_model_spec());
  ClassificationToProto(classification, response->mutable_result());
  WEIR_RETURN_IF_ERROR(CheckSize(*response));
  if (Samples(spec)) {
    Log(*options_.log, call, response->model_spec(), request, *response,
        &proto::serving::PredictionLog::mutable_classify_log);
  }
  return absl::OkStatus();
}

absl::Status PredictionService::Regress(const proto::serving::RegressionRequest& request,
                                        Call& call, proto::serving::RegressionResponse* response) {
  WEIR_ASSIGN_OR_RETURN(const serving::ModelSpec spec,
                        Spec(request.has_model_spec(), request.model_spec(), call));
  WEIR_ASSIGN_OR_RETURN(const serving::Examples examples, ExamplesFromProto(request.input()));
  WEIR_ASSIGN_OR_RETURN(const serving::Regression regression,
                        serving::Regress(models_, spec, examples, Options(call), PriorityOf(call)));
  Record(regression.by, call, response->mutable_model_spec());
  RegressionToProto(regression, response->mutable_result());
  WEIR_RETURN_IF_ERROR(CheckSize(*response));
  if (Samples(spec)) {
    Log(*options_.log, call, response->model_spec(), request, *response,
        &proto::serving::PredictionLog::mutable_regress_log);
  }
  return absl::OkStatus();
}

absl::Status PredictionService::MultiInference(const proto::serving::MultiInferenceRequest& request,
                                               Call& call,
                                               proto::serving::MultiInferenceResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckTasks(request));
  WEIR_ASSIGN_OR_RETURN(serving::ModelSpec first, Spec(true, request.tasks(0).model_spec(), call));
  WEIR_ASSIGN_OR_RETURN(const serving::Examples examples, ExamplesFromProto(request.input()));
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const serving::Servable> servable,
                        models_.Find(first));
  for (const proto::serving::InferenceTask& task : request.tasks()) {
    const std::string& signature = task.model_spec().signature_name();
    proto::serving::InferenceResult* result = response->add_results();
    if (task.method_name() == kClassify) {
      WEIR_ASSIGN_OR_RETURN(const serving::Classification classification,
                            serving::Classify(models_, servable, signature, examples, Options(call),
                                              PriorityOf(call)));
      Record(classification.by, call, result->mutable_model_spec());
      ClassificationToProto(classification, result->mutable_classification_result());
    } else {
      WEIR_ASSIGN_OR_RETURN(const serving::Regression regression,
                            serving::Regress(models_, servable, signature, examples, Options(call),
                                             PriorityOf(call)));
      Record(regression.by, call, result->mutable_model_spec());
      RegressionToProto(regression, result->mutable_regression_result());
    }
  }
  WEIR_RETURN_IF_ERROR(CheckSize(*response));
  if (Samples(first)) {
    Log(*options_.log, call, response->results(0).model_spec(), request, *response,
        &proto::serving::PredictionLog::mutable_multi_inference_log);
  }
  return absl::OkStatus();
}

absl::Status PredictionService::GetModelMetadata(
    const proto::serving::GetModelMetadataRequest& request, Call& call,
    proto::serving::GetModelMetadataResponse* response) {
  WEIR_ASSIGN_OR_RETURN(const serving::ModelSpec spec,
                        Spec(request.has_model_spec(), request.model_spec(), call));
  if (request.metadata_field().empty())
    return InvalidArgument("GetModelMetadataRequest must specify at least one metadata_field");
  for (const std::string& field : request.metadata_field()) {
    if (field != kSignatures) {
      return InvalidArgument("Metadata field ", field, " is not supported; expected ", kSignatures);
    }
  }
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const serving::Servable> servable,
                        models_.Find(spec));
  Record({servable->name(), servable->version(), spec.signature}, call,
         response->mutable_model_spec());
  proto::serving::SignatureDefMap signatures;
  for (const auto& [name, info] : servable->signatures())
    SignatureToProto(info, &(*signatures.mutable_signature_def())[name]);
  google::protobuf::Any& packed = (*response->mutable_metadata())[kSignatures];
  packed.set_type_url("type.googleapis.com/tensorflow.serving.SignatureDefMap");
  packed.set_value(DeterministicBytes(signatures));
  return absl::OkStatus();
}

}  // namespace weir::rpc
