#include "weir/rpc/models/model_messages.h"

#include <utility>

#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/classification.pb.h"
#include "weir/proto/input.pb.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/model.pb.h"
#include "weir/proto/regression.pb.h"

namespace weir::rpc {

serving::ModelSpec SpecFromProto(const proto::serving::ModelSpec& spec) {
  serving::ModelSpec out = {
      .name = spec.name(), .label = spec.version_label(), .signature = spec.signature_name()};
  if (spec.has_version()) out.version = spec.version().value();
  return out;
}

void SpecToProto(const serving::ModelSpec& from, proto::serving::ModelSpec* spec) {
  spec->set_name(from.name);
  spec->set_signature_name(from.signature);
  if (from.version) spec->mutable_version()->set_value(*from.version);
  if (!from.label.empty()) spec->set_version_label(from.label);
}

serving::Priority PriorityOf(const Call& call) {
  return call.is_low_priority ? serving::Priority::kLow : serving::Priority::kHigh;
}

void AnswererToProto(const serving::Answered& by, proto::serving::ModelSpec* spec) {
  spec->set_name(by.model);
  spec->mutable_version()->set_value(by.version);
  spec->set_signature_name(by.signature);
}

absl::Status TakeInput(const std::string& name, proto::TensorProto* value, int64_t* budget,
                       serving::NamedTensors* inputs) {
  // Large raw elements are not copied, and cannot expand.
  absl::StatusOr<Tensor> tensor = value->tensor_content().empty()
                                      ? TensorFromProto(*value, budget)
                                      : TensorFromProto(std::move(*value));
  if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("input ", name));
  inputs->emplace(name, *std::move(tensor));
  return absl::OkStatus();
}

absl::StatusOr<serving::Examples> ExamplesFromProto(const proto::serving::Input& input) {
  serving::Examples out;
  const bool has_context = input.has_example_list_with_context();
  const auto& examples =
      has_context ? input.example_list_with_context().examples() : input.example_list().examples();
  if (has_context) out.context = input.example_list_with_context().context().SerializeAsString();
  if (examples.empty()) return InvalidArgument("Input is empty.");
  out.examples.reserve(examples.size());
  for (const proto::Example& example : examples)
    out.examples.push_back(example.SerializeAsString());
  return out;
}

void ExamplesToProto(const serving::Examples& from, proto::serving::Input* input) {
  auto* const examples = from.context.empty()
                             ? input->mutable_example_list()->mutable_examples()
                             : input->mutable_example_list_with_context()->mutable_examples();
  for (const std::string& example : from.examples) examples->Add()->ParseFromString(example);
  if (!from.context.empty())
    input->mutable_example_list_with_context()->mutable_context()->ParseFromString(from.context);
}

void ClassificationToProto(const serving::Classification& from,
                           proto::serving::ClassificationResult* to) {
  for (const std::vector<serving::Class>& classes : from.classes) {
    proto::serving::Classifications* list = to->add_classifications();
    for (const serving::Class& item : classes) {
      proto::serving::Class* out = list->add_classes();
      out->set_label(item.label);
      out->set_score(item.score);
    }
  }
}

void RegressionToProto(const serving::Regression& from, proto::serving::RegressionResult* to) {
  for (const float value : from.values) to->add_regressions()->set_value(value);
}

namespace {

void TensorInfoToProto(const serving::TensorInfo& from, proto::TensorInfo* to) {
  to->set_name(from.tensor);
  to->set_dtype(static_cast<proto::DataType>(from.dtype));
  ShapeToProto(from.shape, to->mutable_tensor_shape());
}

}  // namespace

void SignatureToProto(const serving::SignatureInfo& from, proto::SignatureDef* to) {
  to->set_method_name(from.method_name);
  for (const auto& [name, info] : from.inputs)
    TensorInfoToProto(info, &(*to->mutable_inputs())[name]);
  for (const auto& [name, info] : from.outputs)
    TensorInfoToProto(info, &(*to->mutable_outputs())[name]);
}

}  // namespace weir::rpc
