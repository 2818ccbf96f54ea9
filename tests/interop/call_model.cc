// Calls one signature of a model through the library of the server, for served_models_test.py.
//
//   call_model BASE_PATH SIGNATURE METHOD INPUTS OUTPUTS
//
// METHOD is predict, classify or regress. INPUTS is a TFRecord file of NamedTensorProtos; the
// results are written to OUTPUTS in the same form. Classify and Regress take the examples of the
// tensor "inputs", and return "classes" with "scores", or "outputs".

#include <cstdio>
#include <memory>

#include "weir/core/io/graph_io.h"
#include "weir/core/io/record.h"
#include "weir/proto/named_tensor.pb.h"
#include "weir/serving/inference.h"

namespace weir::serving {
namespace {

absl::StatusOr<NamedTensors> ReadTensors(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<RecordReader> reader, RecordReader::Open(path));
  NamedTensors tensors;
  for (;;) {
    WEIR_ASSIGN_OR_RETURN(const std::optional<std::string> record, reader->Next());
    if (!record) return tensors;
    proto::NamedTensorProto named;
    if (!named.ParseFromString(*record)) return DataLoss(path, ": not a NamedTensorProto");
    WEIR_ASSIGN_OR_RETURN(tensors[named.name()], TensorFromProto(named.tensor()));
  }
}

absl::Status WriteTensors(const NamedTensors& tensors, const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<RecordWriter> writer, RecordWriter::Create(path));
  for (const auto& [name, tensor] : tensors) {
    proto::NamedTensorProto named;
    named.set_name(name);
    TensorToProto(tensor, named.mutable_tensor());
    WEIR_RETURN_IF_ERROR(writer->Append(named.SerializeAsString()));
  }
  return writer->Close();
}

NamedTensors ToTensors(const Classification& result) {
  const auto rows = static_cast<int64_t>(result.classes.size());
  const auto width = static_cast<int64_t>(result.classes[0].size());
  Tensor classes(DT_STRING, Shape({rows, width})), scores(DT_FLOAT, Shape({rows, width}));
  int64_t i = 0;
  for (const std::vector<Class>& row : result.classes) {
    for (const Class& one : row) {
      classes.flat<std::string>()[i] = one.label;
      scores.flat<float>()[i++] = one.score;
    }
  }
  return {{"classes", classes}, {"scores", scores}};
}

absl::StatusOr<NamedTensors> Call(ModelManager& models, const ModelSpec& spec,
                                  const std::string& method, const NamedTensors& inputs) {
  if (method == "predict") {
    WEIR_ASSIGN_OR_RETURN(Prediction result, Predict(models, spec, inputs));
    return std::move(result.outputs);
  }
  const auto strings = inputs.at("inputs").flat<std::string>();
  const Examples examples{{strings.begin(), strings.end()}, ""};
  if (method == "classify") {
    WEIR_ASSIGN_OR_RETURN(const Classification result, Classify(models, spec, examples));
    return ToTensors(result);
  }
  WEIR_ASSIGN_OR_RETURN(const Regression result, Regress(models, spec, examples));
  return NamedTensors{{"outputs", Tensor::Vector<float>(result.values)}};
}

absl::Status Run(char** arguments) {
  const ModelSpec spec{.name = "m", .signature = arguments[2]};
  WEIR_ASSIGN_OR_RETURN(
      const std::unique_ptr<ModelManager> models,
      ModelManager::Create({{.name = "m", .base_path = arguments[1]}},
                           {.poll = std::chrono::milliseconds(50), .max_load_retries = 0}));
  WEIR_RETURN_IF_ERROR(models->WaitUntilLoaded(std::chrono::minutes(2)));
  WEIR_ASSIGN_OR_RETURN(const NamedTensors inputs, ReadTensors(arguments[4]));
  WEIR_ASSIGN_OR_RETURN(const NamedTensors outputs, Call(*models, spec, arguments[3], inputs));
  return WriteTensors(outputs, arguments[5]);
}

}  // namespace
}  // namespace weir::serving

int main(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr, "usage: call_model BASE_PATH SIGNATURE METHOD INPUTS OUTPUTS\n");
    return 2;
  }
  const absl::Status status = weir::serving::Run(arguments);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
