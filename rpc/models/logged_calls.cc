#include "weir/rpc/models/logged_calls.h"

#include "weir/core/io/proto_values.h"
#include "weir/proto/prediction_log.pb.h"
#include "weir/rpc/models/model_messages.h"

namespace weir::rpc {

namespace {

using proto::serving::PredictionLog;

void AddEntry(const serving::Answered& by, PredictionLog* entry, RequestLog* log) {
  AnswererToProto(by, entry->mutable_log_metadata()->mutable_model_spec());
  log->Add(by.model, entry);
}

}  // namespace

void LogPredict(const serving::ModelSpec& spec, const serving::NamedTensors& inputs,
                const serving::Prediction& prediction, RequestLog* log) {
  PredictionLog entry;
  proto::serving::PredictLog& logged = *entry.mutable_predict_log();
  SpecToProto(spec, logged.mutable_request()->mutable_model_spec());
  for (const auto& [name, value] : inputs)
    TensorToProtoFields(value, &(*logged.mutable_request()->mutable_inputs())[name]);
  AnswererToProto(prediction.by, logged.mutable_response()->mutable_model_spec());
  for (const auto& [name, value] : prediction.outputs)
    TensorToProtoFields(value, &(*logged.mutable_response()->mutable_outputs())[name]);
  AddEntry(prediction.by, &entry, log);
}

void LogClassify(const serving::ModelSpec& spec, const serving::Examples& examples,
                 const serving::Classification& classification, RequestLog* log) {
  PredictionLog entry;
  proto::serving::ClassifyLog& logged = *entry.mutable_classify_log();
  SpecToProto(spec, logged.mutable_request()->mutable_model_spec());
  ExamplesToProto(examples, logged.mutable_request()->mutable_input());
  AnswererToProto(classification.by, logged.mutable_response()->mutable_model_spec());
  ClassificationToProto(classification, logged.mutable_response()->mutable_result());
  AddEntry(classification.by, &entry, log);
}

void LogRegress(const serving::ModelSpec& spec, const serving::Examples& examples,
                const serving::Regression& regression, RequestLog* log) {
  PredictionLog entry;
  proto::serving::RegressLog& logged = *entry.mutable_regress_log();
  SpecToProto(spec, logged.mutable_request()->mutable_model_spec());
  ExamplesToProto(examples, logged.mutable_request()->mutable_input());
  AnswererToProto(regression.by, logged.mutable_response()->mutable_model_spec());
  RegressionToProto(regression, logged.mutable_response()->mutable_result());
  AddEntry(regression.by, &entry, log);
}

}  // namespace weir::rpc
