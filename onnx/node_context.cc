#include "weir/onnx/node_context.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "weir/onnx/graph_importer.h"
#include "weir/onnx/tensor_reader.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/onnx.pb.h"
#include "weir/session/session.h"

namespace weir::onnx {

using proto::onnx::AttributeProto;

namespace {

constexpr int64_t kMaxFoldedElements = 1024;
constexpr size_t kMaxFoldedNodes = 64;

// Whether the node and those that it depends on compute a few integers from constants.
bool IsFoldable(const Node* node, std::set<const Node*>* seen) {
  if (!seen->insert(node).second) return true;
  const OpSpec& op = node->op();
  if (seen->size() > kMaxFoldedNodes || op.stateful() || !node->control_inputs().empty() ||
      node->num_outputs() != 1)
    return false;
  const DataType dtype = node->output_type(0);
  const int64_t elements = node->output_shape(0).num_elements();
  if ((!IsInteger(dtype) && dtype != DT_BOOL) || elements < 0 || elements > kMaxFoldedElements)
    return false;
  return (node->num_inputs() > 0 || op.name() == "Const") &&
         std::all_of(node->inputs().begin(), node->inputs().end(),
                     [&](const Output& input) { return IsFoldable(input.node, seen); });
}

}  // namespace

std::optional<Tensor> ConstantOf(const Output& tensor) {
  const Node* node = tensor.valid() ? tensor.node : nullptr;
  while (node != nullptr && node->op_name() == "Identity") node = node->input(0).node;
  if (node == nullptr) return std::nullopt;
  if (node->op_name() == "Const") return node->attr<Tensor>("value");
  std::set<const Node*> seen;
  if (!IsFoldable(node, &seen)) return std::nullopt;
  absl::StatusOr<Session> session = Session::Create(tensor.graph(), {.num_threads = 1});
  if (!session.ok()) return std::nullopt;
  absl::StatusOr<Tensors> value = session->Run({node->output(0)});
  if (!value.ok()) return std::nullopt;  // the step fails too, and says why
  return (*value)[0].DeepCopy();
}

NodeContext::NodeContext(GraphImporter& importer, const proto::onnx::NodeProto& node, int version,
                         Values inputs)
    : importer_(importer), node_(node), version_(version), inputs_(std::move(inputs)) {}

Graph& NodeContext::graph() const { return importer_.graph(); }
const std::string& NodeContext::op() const { return node_.op_type(); }

// ---- inputs

bool NodeContext::has(int i) const {
  return i < num_inputs() &&
         (inputs_[i].is_tensor() || inputs_[i].is_sequence() || inputs_[i].is_empty_optional);
}

const Value& NodeContext::value(int i) const { return inputs_[i]; }

Output NodeContext::in(int i) const {
  if (!has(i)) return Output();
  if (!inputs_[i].is_tensor())
    Fail(InvalidArgument("input ", i, " is not a tensor, as the operator expects"));
  return inputs_[i].tensor;
}

Outputs NodeContext::tensors() const {
  Outputs out;
  for (int i = 0; i < num_inputs(); ++i) out.push_back(in(i));
  return out;
}

absl::StatusOr<int> NodeContext::Rank(int i) const {
  if (shape(i).has_rank()) return shape(i).rank();
  return Unimplemented(
      "the rank of input ", i, " ('", absl::CHexEscape(node_.input(i)),
      "') is not known while the graph is built; declare the shapes of the model's "
      "inputs, or make the shape a constant");
}

std::optional<std::vector<int64_t>> NodeContext::ConstantInts(int i) const {
  const std::optional<Tensor> tensor = Constant(i);
  if (!tensor || !IsInteger(tensor->dtype())) return std::nullopt;
  std::vector<int64_t> out(tensor->num_elements());
  for (size_t k = 0; k < out.size(); ++k) out[k] = tensor->IntAt(static_cast<int64_t>(k));
  return out;
}

Output NodeContext::Scalar(int i) const {
  const std::optional<Tensor> value = Constant(i);
  if (value && value->num_elements() == 1) return Const(graph(), value->Reshaped(Shape()));
  if (shape(i).IsScalar()) return in(i);
  return Reshape(in(i), std::vector<int64_t>());
}

// ---- attributes

void NodeContext::Fail(const absl::Status& status) const { status_.Update(status); }

const AttributeProto* NodeContext::Attr(absl::string_view name) const {
  for (const AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() != name) continue;
    read_.emplace(name);
    return importer_.Resolve(attribute);
  }
  return nullptr;
}

const AttributeProto* NodeContext::Find(absl::string_view name, int type) const {
  const AttributeProto* const attribute = Attr(name);
  if (attribute == nullptr || attribute->type() == type) return attribute;
  Fail(InvalidArgument("attribute '", name, "' has the type ",
                       proto::onnx::AttributeProto_AttributeType_Name(attribute->type()),
                       "; expected ",
                       proto::onnx::AttributeProto_AttributeType_Name(
                           static_cast<AttributeProto::AttributeType>(type))));
  return nullptr;
}

bool NodeContext::HasAttr(absl::string_view name) const { return Attr(name) != nullptr; }

int64_t NodeContext::Int(absl::string_view name, int64_t fallback) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::INT);
  return attribute == nullptr ? fallback : attribute->i();
}

float NodeContext::Float(absl::string_view name, float fallback) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::FLOAT);
  return attribute == nullptr ? fallback : attribute->f();
}

std::string NodeContext::String(absl::string_view name, absl::string_view fallback) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::STRING);
  return attribute == nullptr ? std::string(fallback) : attribute->s();
}

std::vector<int64_t> NodeContext::Ints(absl::string_view name,
                                       std::vector<int64_t> fallback) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::INTS);
  if (attribute == nullptr) return fallback;
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<float> NodeContext::Floats(absl::string_view name, std::vector<float> fallback) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::FLOATS);
  if (attribute == nullptr) return fallback;
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> NodeContext::Strings(absl::string_view name) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::STRINGS);
  if (attribute == nullptr) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

absl::StatusOr<DataType> NodeContext::Type(absl::string_view name, DataType fallback) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::INT);
  if (attribute == nullptr) return fallback;
  return DataTypeOfOnnx(static_cast<int>(attribute->i()));
}

absl::StatusOr<Tensor> NodeContext::TensorAttr(absl::string_view name) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::TENSOR);
  if (attribute == nullptr) return InvalidArgument("attribute '", name, "' is missing");
  return importer_.tensors().Read(attribute->t());
}

const proto::onnx::GraphProto* NodeContext::GraphAttr(absl::string_view name) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::GRAPH);
  return attribute == nullptr ? nullptr : &attribute->g();
}

const proto::onnx::TypeProto* NodeContext::TypeAttr(absl::string_view name) const {
  const AttributeProto* const attribute = Find(name, AttributeProto::TYPE_PROTO);
  return attribute == nullptr ? nullptr : &attribute->tp();
}

absl::Status NodeContext::CheckAttributes() const {
  WEIR_RETURN_IF_ERROR(status_);
  for (const AttributeProto& attribute : node_.attribute()) {
    if (!read_.contains(attribute.name()))
      return Unimplemented("attribute '", absl::CHexEscape(attribute.name()),
                           "' is unknown or not supported here");
  }
  return absl::OkStatus();
}

// ---- results

int NodeContext::num_outputs() const { return node_.output_size(); }
bool NodeContext::wants(int i) const { return i < num_outputs() && !node_.output(i).empty(); }

absl::Status NodeContext::Return(const Output& result) { return ReturnValues({Value(result)}); }

absl::Status NodeContext::Return(const Outputs& results) {
  return ReturnValues(Values(results.begin(), results.end()));
}

absl::Status NodeContext::ReturnValues(Values results) {
  results_ = std::move(results);
  return absl::OkStatus();
}

}  // namespace weir::onnx
