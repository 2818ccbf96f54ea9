#include "weir/serving/warm_up.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/record.h"
#include "weir/proto/prediction_log.pb.h"

namespace weir::serving {
namespace {

constexpr char kFile[] = "assets.extra/tf_serving_warmup_requests";
constexpr int kMaxRecords = 1000;  // TensorFlow Serving's limit

absl::Status RunPredict(WarmUpCall call, const proto::serving::PredictRequest& request) {
  NamedTensors inputs;
  for (const auto& [name, value] : request.inputs()) {
    WEIR_ASSIGN_OR_RETURN(inputs[name], TensorFromProto(value));
  }
  const std::vector<std::string> outputs(request.output_filter().begin(),
                                         request.output_filter().end());
  return call(request.model_spec().signature_name(), inputs, outputs);
}

// The examples in serialized form, each with the features that all of them share.
std::vector<std::string> ExamplesOf(const proto::serving::Input& input) {
  const bool has_context = input.has_example_list_with_context();
  const auto& examples =
      has_context ? input.example_list_with_context().examples() : input.example_list().examples();
  const std::string context =
      has_context ? input.example_list_with_context().context().SerializeAsString() : "";
  std::vector<std::string> out;
  for (const auto& example : examples) out.push_back(context + example.SerializeAsString());
  return out;
}

// Calls a signature of method Classify or Regress.
absl::Status RunExamples(WarmUpCall call, const proto::serving::ModelSpec& spec,
                         const proto::serving::Input& input) {
  const std::vector<std::string> examples = ExamplesOf(input);
  if (examples.empty()) return InvalidArgument("Input is empty.");
  return call(spec.signature_name(), {{"inputs", Tensor::Vector<std::string>(examples)}}, {});
}

absl::Status RunRecord(WarmUpCall call, const std::string& record) {
  proto::serving::PredictionLog log;
  if (!log.ParseFromString(record)) return InvalidArgument("not a PredictionLog");
  switch (log.log_type_case()) {
    case proto::serving::PredictionLog::kPredictLog:
      return RunPredict(call, log.predict_log().request());
    case proto::serving::PredictionLog::kPredictStreamedLog:
      for (const auto& request : log.predict_streamed_log().request())
        WEIR_RETURN_IF_ERROR(RunPredict(call, request));
      return absl::OkStatus();
    case proto::serving::PredictionLog::kClassifyLog: {
      const auto& request = log.classify_log().request();
      return RunExamples(call, request.model_spec(), request.input());
    }
    case proto::serving::PredictionLog::kRegressLog: {
      const auto& request = log.regress_log().request();
      return RunExamples(call, request.model_spec(), request.input());
    }
    case proto::serving::PredictionLog::kMultiInferenceLog: {
      const auto& request = log.multi_inference_log().request();
      for (const auto& task : request.tasks())
        WEIR_RETURN_IF_ERROR(RunExamples(call, task.model_spec(), request.input()));
      return absl::OkStatus();
    }
    case proto::serving::PredictionLog::kSessionRunLog:
      return Unimplemented("Unsupported log_type for warmup: SessionRun");
    case proto::serving::PredictionLog::LOG_TYPE_NOT_SET:
      return InvalidArgument("a PredictionLog without a request");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WarmUp(const std::string& directory, WarmUpCall call) {
  const std::string path = JoinPath(directory, kFile);
  if (!Files().Exists(path)) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<RecordReader> reader, RecordReader::Open(path));
  for (int i = 1;; ++i) {
    WEIR_ASSIGN_OR_RETURN(const std::optional<std::string> record, reader->Next());
    if (!record) return absl::OkStatus();
    if (i > kMaxRecords) {
      return InvalidArgument("Number of warmup records exceeds the maximum (", kMaxRecords,
                             "): ", path);
    }
    const absl::Status status = RunRecord(call, *record);
    if (!status.ok()) return Annotate(status, absl::StrCat(path, ": record ", i));
  }
}

}  // namespace weir::serving
