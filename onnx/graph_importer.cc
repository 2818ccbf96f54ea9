#include "weir/onnx/graph_importer.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/onnx.pb.h"

namespace weir::onnx {

namespace {

using proto::onnx::AttributeProto;
using proto::onnx::FunctionProto;
using proto::onnx::GraphProto;
using proto::onnx::NodeProto;

// Graphs and functions in each other: each level takes some kilobytes of the stack.
constexpr int kMaxDepth = 100;

std::string Quoted(absl::string_view name) {
  return absl::StrCat("'", absl::CHexEscape(name), "'");
}

std::string DomainOf(const NodeProto& node) {
  return node.domain() == "ai.onnx" ? "" : node.domain();
}

// Returns "node 'conv1' (Conv)".
std::string LabelOf(const NodeProto& node) {
  std::string name = node.name();
  if (name.empty() && node.output_size() > 0) name = node.output(0);
  return absl::StrCat("ONNX node ", Quoted(name), " (", node.domain().empty() ? "" : node.domain(),
                      node.domain().empty() ? "" : ".", absl::CHexEscape(node.op_type()), ")");
}

// Counts the depth of graphs and functions.
class Nested {
 public:
  explicit Nested(ModelImport& model) : model_(model) { ++model_.depth; }
  ~Nested() { --model_.depth; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  ModelImport& model_;
};

absl::Status CheckNumberOfInputs(const NodeContext& c, const Importer& importer) {
  if (c.num_inputs() > importer.max_inputs)
    return InvalidArgument("it has ", c.num_inputs(), " inputs; expected at most ",
                           importer.max_inputs);
  for (int i = 0; i < importer.min_inputs; ++i) {
    if (!c.has(i)) return InvalidArgument("input ", i, " is missing");
  }
  return absl::OkStatus();
}

// The names of the running statistics of batch normalizations, which no training changes.
std::set<absl::string_view> StatisticsIn(const GraphProto& def) {
  std::set<absl::string_view> names;
  for (const NodeProto& node : def.node()) {
    if (node.op_type() != "BatchNormalization") continue;
    for (int i = 3; i < node.input_size(); ++i) names.insert(node.input(i));
  }
  return names;
}

}  // namespace

std::string NodeNameOf(absl::string_view onnx_name, absl::string_view fallback) {
  while (!onnx_name.empty() && !absl::ascii_isalnum(onnx_name[0]) && onnx_name[0] != '.')
    onnx_name.remove_prefix(1);
  std::string name(onnx_name.empty() ? fallback : onnx_name);
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-' && c != '/' && c != '_') c = '_';
  }
  while (!name.empty() && name.back() == '/') name.pop_back();
  return name;
}

absl::Status GraphImporter::Define(const std::string& name, Value value) {
  if (!values_.try_emplace(name, std::move(value)).second)
    return InvalidArgument("two values of the graph have the name ", Quoted(name));
  return absl::OkStatus();
}

absl::StatusOr<Value> GraphImporter::Find(const std::string& name) const {
  if (name.empty()) return Value();
  for (const GraphImporter* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->values_.find(name);
    if (found != scope->values_.end()) return found->second;
  }
  return InvalidArgument("no input, initializer or node before it has the name ", Quoted(name),
                         "; the nodes of a model must be in topological order");
}

const AttributeProto* GraphImporter::Resolve(const AttributeProto& attribute) const {
  if (attribute.ref_attr_name().empty()) return &attribute;
  for (const GraphImporter* scope = this; scope != nullptr; scope = scope->outer_) {
    if (!scope->is_function_) continue;
    const auto found = scope->attributes_.find(attribute.ref_attr_name());
    return found == scope->attributes_.end() ? nullptr : found->second;
  }
  return nullptr;
}

// ---- initializers

absl::StatusOr<Value> GraphImporter::AddInitializer(const std::string& name, const Tensor& tensor) {
  return Value(Const(graph(), tensor, NodeNameOf(name, "initializer")));
}

absl::Status GraphImporter::ImportInitializers(const GraphProto& def) {
  const std::set<absl::string_view> statistics = StatisticsIn(def);
  for (const auto& initializer : def.initializer()) {
    WEIR_ASSIGN_OR_RETURN(const Tensor tensor, tensors().Read(initializer));
    const std::string& name = initializer.name();
    const bool is_weight = IsFloating(tensor.dtype()) && tensor.rank() > 0;
    if (!model_.options.as_variables || outer_ != nullptr || is_function_ || !is_weight) {
      WEIR_ASSIGN_OR_RETURN(Value value, AddInitializer(name, tensor));
      WEIR_RETURN_IF_ERROR(Define(name, std::move(value)));
      continue;
    }
    const Variable variable = MakeVariable(
        graph(), tensor,
        {.name = NodeNameOf(name, "variable"), .trainable = !statistics.contains(name)});
    WEIR_RETURN_IF_ERROR(graph().status());
    WEIR_RETURN_IF_ERROR(Define(name, Value(variable.value())));
  }
  for (const auto& initializer : def.sparse_initializer()) {
    WEIR_ASSIGN_OR_RETURN(const Tensor tensor, tensors().ReadSparse(initializer));
    WEIR_ASSIGN_OR_RETURN(Value value, AddInitializer(initializer.values().name(), tensor));
    WEIR_RETURN_IF_ERROR(Define(initializer.values().name(), std::move(value)));
  }
  return absl::OkStatus();
}

// ---- nodes

absl::Status GraphImporter::ImportNode(const NodeProto& node) {
  if (--model_.nodes_left < 0)
    return absl::ResourceExhaustedError(
        "the model's functions stand for more than a million nodes; it is not imported");
  const auto import = [&]() -> absl::StatusOr<Values> {
    Values inputs;
    for (const std::string& input : node.input()) {
      WEIR_ASSIGN_OR_RETURN(inputs.emplace_back(), Find(input));
    }
    const NameScope scope(graph(), NodeNameOf(node.name(), NodeNameOf(node.op_type(), "node")));
    const auto function = model_.functions.find({DomainOf(node), node.op_type(), node.overload()});
    if (function != model_.functions.end()) return CallFunction(node, *function->second, inputs);
    return ImportOperator(node, inputs);
  };
  absl::StatusOr<Values> results = import();
  absl::Status status = results.status();
  if (status.ok()) status = graph().status();
  for (int i = 0; status.ok() && i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const Value value = static_cast<size_t>(i) < results->size() ? (*results)[i] : Value();
    if (!value.is_tensor() && !value.is_sequence() && !value.is_empty_optional) {
      status = Unimplemented("output ", i, " is not supported");
    } else {
      status = Define(node.output(i), value);
    }
  }
  return Annotate(status, LabelOf(node));
}

absl::StatusOr<Values> GraphImporter::ImportOperator(const NodeProto& node, const Values& inputs) {
  const std::string domain = DomainOf(node);
  const auto opset = opsets_.find(domain);
  if (opset == opsets_.end())
    return InvalidArgument("the model does not say which version of the operator set of domain ",
                           Quoted(domain), " it uses");
  const int64_t version = opset->second;
  if (!domain.empty())
    return Unimplemented("operators of domain ", Quoted(domain), " (version ", version,
                         ") are not supported");
  if (version < kMinOpset || version > kMaxOpset)
    return Unimplemented("version ", version, " of ONNX's operator set is not supported; versions ",
                         kMinOpset, " to ", kMaxOpset, " are");
  const Importer* const importer = model_.importers.Find(node.op_type());
  if (importer == nullptr)
    return Unimplemented("operator ", Quoted(node.op_type()), " of version ", version,
                         " of ONNX's operator set is not supported");
  if (version < importer->since || version > importer->until)
    return Unimplemented("operator ", Quoted(node.op_type()), " is supported in the versions ",
                         importer->since, " to ", importer->until,
                         " of ONNX's operator set; the model uses version ", version);
  NodeContext context(*this, node, static_cast<int>(version), inputs);
  WEIR_RETURN_IF_ERROR(CheckNumberOfInputs(context, *importer));
  WEIR_RETURN_IF_ERROR(importer->import(context));
  WEIR_RETURN_IF_ERROR(context.CheckAttributes());
  return std::move(context.results());
}

// ---- graphs and functions

absl::StatusOr<Values> GraphImporter::CallGraph(const GraphProto& def, const Values& inputs) {
  if (def.input_size() != static_cast<int>(inputs.size()))
    return InvalidArgument("graph ", Quoted(def.name()), " has ", def.input_size(),
                           " inputs; expected ", inputs.size());
  if (model_.depth >= kMaxDepth) return InvalidArgument("graphs are nested too deeply");
  const Nested nested(model_);
  GraphImporter body(model_, opsets_, this);
  for (int i = 0; i < def.input_size(); ++i)
    WEIR_RETURN_IF_ERROR(body.Define(def.input(i).name(), inputs[i]));
  WEIR_RETURN_IF_ERROR(body.ImportInitializers(def));
  WEIR_RETURN_IF_ERROR(body.ImportNodes(def.node()));
  Values results;
  for (const auto& output : def.output()) {
    WEIR_ASSIGN_OR_RETURN(results.emplace_back(), body.Find(output.name()));
  }
  return results;
}

absl::StatusOr<Values> GraphImporter::CallFunction(const NodeProto& node,
                                                   const FunctionProto& function,
                                                   const Values& inputs) {
  if (function.input_size() < static_cast<int>(inputs.size()))
    return InvalidArgument("it has ", inputs.size(), " inputs; the model's function ",
                           Quoted(function.name()), " takes ", function.input_size());
  if (model_.depth >= kMaxDepth)
    return InvalidArgument("the model's functions call each other without end, or too deeply");
  const Nested nested(model_);
  WEIR_ASSIGN_OR_RETURN(const Opsets opsets, OpsetsOf(function.opset_import()));
  GraphImporter body(model_, opsets, nullptr);
  body.is_function_ = true;
  for (const AttributeProto& attribute : function.attribute_proto())
    body.attributes_[attribute.name()] = &attribute;
  for (const AttributeProto& attribute : node.attribute())
    body.attributes_[attribute.name()] = Resolve(attribute);
  for (int i = 0; i < function.input_size(); ++i) {
    const bool is_given = i < static_cast<int>(inputs.size());
    WEIR_RETURN_IF_ERROR(body.Define(function.input(i), is_given ? inputs[i] : Value()));
  }
  WEIR_RETURN_IF_ERROR(body.ImportNodes(function.node()));
  Values results;
  for (const std::string& output : function.output()) {
    WEIR_ASSIGN_OR_RETURN(results.emplace_back(), body.Find(output));
  }
  return results;
}

}  // namespace weir::onnx
