#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weir/capi/attr_values.h"
#include "weir/capi/input_types.h"
#include "weir/capi/objects.h"
#include "weir/core/graph/signature.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"

// Operations under construction. NodeBuilder adds them; what it would say in the words of builders
// is checked before, in those of TensorFlow's C API.

namespace weir::capi {

namespace {

constexpr absl::string_view kClassAttr = "_class";
constexpr absl::string_view kColocationPrefix = "loc:@";

void SetAttr(absl::string_view function, TF_OperationDescription* desc, const char* name,
             absl::StatusOr<AttrValue> value) {
  if (!HaveAll(function, {desc, name})) return;
  if (!value.ok()) {
    if (desc->error.ok())
      desc->error = Annotate(value.status(), absl::StrCat("attribute '", name, "'"));
    return;
  }
  if (name != kClassAttr) {
    desc->attrs.insert_or_assign(name, *std::move(value));
    return;
  }
  desc->colocations.clear();
  if (value->is<AttrValue::EmptyList>()) return;
  const auto* const marks = value->get_if<std::vector<std::string>>();
  if (marks != nullptr) desc->colocations.insert(marks->begin(), marks->end());
}

absl::StatusOr<Shape> ShapeFromProtoAt(const void* proto, size_t length) {
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, BytesAt(proto, length));
  const absl::StatusOr<Shape> shape = ShapeFromBytes(bytes);
  if (!shape.ok()) return InvalidArgument("Unparseable TensorShapeProto");
  return shape;
}

// Sets an attribute with a status: an error is reported at once.
void SetChecked(absl::string_view function, TF_OperationDescription* desc, const char* name,
                absl::StatusOr<AttrValue> value, TF_Status* status) {
  if (!HaveAll(function, {desc, name}, status)) return;
  SetStatus(status, value.status());
  if (value.ok()) SetAttr(function, desc, name, std::move(value));
}

// Adds an operation of a description.
class Finisher {
 public:
  Finisher(const TF_OperationDescription& desc, Graph& graph) : desc_(desc), graph_(graph) {}

  absl::StatusOr<Node*> Build() {
    WEIR_RETURN_IF_ERROR(desc_.error);
    if (graph_.FindNode(desc_.name) != nullptr)
      return InvalidArgument("Duplicate node name in graph: '", desc_.name, "'");
    WEIR_RETURN_IF_ERROR(Inputs());
    if (graph_.functions() != nullptr && graph_.ops().Find(desc_.op) == nullptr &&
        graph_.functions()->FindDef(desc_.op) != nullptr) {
      return AddCall(desc_, graph_);
    }
    WEIR_ASSIGN_OR_RETURN(const OpSpec* const op, Op());
    WEIR_RETURN_IF_ERROR(CheckInputs(desc_, *op, inputs_));
    Node* const node = Builder().Build();
    if (node != nullptr) return node;
    return InCApiWords(*op, graph_.TakeStatus());
  }

 private:
  absl::StatusOr<const OpSpec*> Op() const {
    const OpSpec* const op = graph_.ops().Find(desc_.op);
    if (op != nullptr) return op;
    return InvalidArgument(
        graph_.ops().Lookup(desc_.op).status().message(),
        " Make sure the Op and Kernel are registered in the binary running in this process. Note ",
        "that if you are loading a saved graph which used ops from tf.contrib (e.g. ",
        "`tf.contrib.resampler`), accessing should be done before importing the graph, as contrib ",
        "ops are lazily registered when the module is first accessed. while building NodeDef '",
        desc_.name, "'");
  }

  absl::Status Inputs() {
    for (const auto& argument : desc_.arguments) {
      const int count = static_cast<int>(argument.inputs.size());
      WEIR_ASSIGN_OR_RETURN(inputs_.emplace_back(),
                            OutputsOf(argument.inputs.data(), count, graph_));
      all_.insert(all_.end(), inputs_.back().begin(), inputs_.back().end());
    }
    for (TF_Operation* control : desc_.controls) {
      if (control == nullptr || &NodeOf(control)->graph() != &graph_)
        return InvalidArgument("a control input of '", desc_.name, "' is not of its graph");
    }
    return absl::OkStatus();
  }

  NodeBuilder Builder() const {
    NodeBuilder builder(graph_, desc_.op);
    builder.Name(desc_.name + "/").Verbatim().AnyName();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (desc_.arguments[i].is_list) {
        builder.InputList(inputs_[i]);
      } else {
        builder.Input(inputs_[i][0]);
      }
    }
    for (TF_Operation* control : desc_.controls) builder.Control(NodeOf(control));
    for (const auto& [name, value] : desc_.attrs) builder.Attr(name, value);
    if (!desc_.colocations.empty()) {
      builder.Attr(kClassAttr,
                   std::vector<std::string>(desc_.colocations.begin(), desc_.colocations.end()));
    }
    if (!desc_.device.empty()) builder.Device(desc_.device);
    return builder;
  }

  // Names the node as TensorFlow's messages do.
  absl::Status InCApiWords(const OpSpec& op, const absl::Status& error) const {
    absl::string_view text = error.message();
    const std::string label = absl::StrCat(desc_.name, " (", desc_.op, ")");
    absl::ConsumePrefix(&text, absl::StrCat(label, ": "));
    if (absl::StartsWith(text, "NodeDef missing attr")) {
      const std::string summarized =
          absl::StrReplaceAll(text, {{absl::StrCat("Op<", op.Signature(), ">"), Summary(op)}});
      return absl::Status(error.code(),
                          absl::StrCat(summarized, "; NodeDef: {{node ", desc_.name, "}}"));
    }
    const std::string shape_error = absl::StrCat(" for node ", label, " with input shapes");
    if (!absl::StrContains(text, shape_error)) return absl::Status(error.code(), text);
    const std::string in_words =
        absl::StrCat(" for '", Summary(op, desc_.name, Attrs(op), all_), "' with input shapes");
    return absl::Status(error.code(), absl::StrReplaceAll(text, {{shape_error, in_words}}));
  }

  // All attributes of the node: given, deduced from the inputs, and defaults.
  AttrMap Attrs(const OpSpec& op) const {
    AttrMap attrs;
    for (const auto& [name, value] : desc_.attrs) attrs.emplace(name, value);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ArgSpec& arg = op.inputs()[i];
      if (!arg.type_attr.empty() && !inputs_[i].empty())
        attrs.emplace(arg.type_attr, inputs_[i][0].dtype());
      if (!arg.number_attr.empty())
        attrs.emplace(arg.number_attr, static_cast<int64_t>(inputs_[i].size()));
    }
    CompleteAttrs(op, &attrs).IgnoreError();
    return attrs;
  }

  const TF_OperationDescription& desc_;
  Graph& graph_;
  std::vector<Outputs> inputs_;
  Outputs all_;
};

}  // namespace

}  // namespace weir::capi

using weir::AttrValue;
using weir::capi::BytesAt;
using weir::capi::HaveAll;
using weir::capi::ListOf;
using weir::capi::SetAttr;
using weir::capi::SetChecked;
using weir::capi::SetStatus;

TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type,
                                         const char* oper_name) {
  if (!HaveAll("TF_NewOperation", {graph, op_type, oper_name})) return nullptr;
  return new TF_OperationDescription{.graph = graph, .op = op_type, .name = oper_name};
}

void TF_SetDevice(TF_OperationDescription* desc, const char* device) {
  if (HaveAll("TF_SetDevice", {desc})) desc->device = device == nullptr ? "" : device;
}

void TF_AddInput(TF_OperationDescription* desc, TF_Output input) {
  if (HaveAll("TF_AddInput", {desc})) desc->arguments.push_back({{input}, false});
}

void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs, int num_inputs) {
  if (!HaveAll("TF_AddInputList", {desc})) return;
  const bool is_array = num_inputs == 0 || (num_inputs > 0 && inputs != nullptr);
  if (!is_array && desc->error.ok())
    desc->error = weir::InvalidArgument("no array of ", num_inputs, " inputs");
  desc->arguments.push_back({{}, true});
  if (is_array) desc->arguments.back().inputs.assign(inputs, inputs + num_inputs);
}

void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input) {
  if (HaveAll("TF_AddControlInput", {desc, input})) desc->controls.push_back(input);
}

void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op) {
  if (!HaveAll("TF_ColocateWith", {desc, op})) return;
  desc->colocations.insert(
      absl::StrCat(weir::capi::kColocationPrefix, weir::capi::NodeOf(op)->name()));
}

void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name, const void* value,
                      size_t length) {
  SetAttr("TF_SetAttrString", desc, attr_name, BytesAt(value, length));
}

void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name,
                          const void* const* values, const size_t* lengths, int num_values) {
  if (num_values > 0 && !HaveAll("TF_SetAttrStringList", {lengths})) return;
  SetAttr("TF_SetAttrStringList", desc, attr_name,
          ListOf<std::string>(values, num_values,
                              [&](int i) { return BytesAt(values[i], lengths[i]); }));
}

void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name, int64_t value) {
  SetAttr("TF_SetAttrInt", desc, attr_name, AttrValue(value));
}

void TF_SetAttrIntList(TF_OperationDescription* desc, const char* attr_name, const int64_t* values,
                       int num_values) {
  SetAttr("TF_SetAttrIntList", desc, attr_name,
          ListOf<int64_t>(values, num_values, [&](int i) { return values[i]; }));
}

void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name, float value) {
  SetAttr("TF_SetAttrFloat", desc, attr_name, AttrValue(value));
}

void TF_SetAttrFloatList(TF_OperationDescription* desc, const char* attr_name, const float* values,
                         int num_values) {
  SetAttr("TF_SetAttrFloatList", desc, attr_name,
          ListOf<float>(values, num_values, [&](int i) { return values[i]; }));
}

void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name, unsigned char value) {
  SetAttr("TF_SetAttrBool", desc, attr_name, AttrValue(value != 0));
}

void TF_SetAttrBoolList(TF_OperationDescription* desc, const char* attr_name,
                        const unsigned char* values, int num_values) {
  SetAttr("TF_SetAttrBoolList", desc, attr_name,
          ListOf<bool>(values, num_values, [&](int i) { return values[i] != 0; }));
}

void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name, TF_DataType value) {
  SetAttr("TF_SetAttrType", desc, attr_name, weir::capi::TypeOf(value));
}

void TF_SetAttrTypeList(TF_OperationDescription* desc, const char* attr_name,
                        const TF_DataType* values, int num_values) {
  SetAttr("TF_SetAttrTypeList", desc, attr_name,
          ListOf<weir::DataType>(values, num_values,
                                 [&](int i) { return weir::capi::TypeOf(values[i]); }));
}

void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name,
                           const char* placeholder) {
  if (!HaveAll("TF_SetAttrPlaceholder", {placeholder})) return;
  SetAttr("TF_SetAttrPlaceholder", desc, attr_name, AttrValue(weir::AttrPlaceholder{placeholder}));
}

void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name, const char* value,
                        size_t length) {
  const auto name = BytesAt(value, length);
  SetAttr("TF_SetAttrFuncName", desc, attr_name,
          name.ok() ? absl::StatusOr<AttrValue>(weir::FunctionRef{*name, nullptr}) : name.status());
}

void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name, const int64_t* dims,
                     int num_dims) {
  SetAttr("TF_SetAttrShape", desc, attr_name, weir::capi::ShapeOf(dims, num_dims));
}

void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name,
                         const int64_t* const* dims, const int* num_dims, int num_shapes) {
  if (num_shapes > 0 && !HaveAll("TF_SetAttrShapeList", {num_dims})) return;
  SetAttr("TF_SetAttrShapeList", desc, attr_name, ListOf<weir::Shape>(dims, num_shapes, [&](int i) {
            return weir::capi::ShapeOf(dims[i], num_dims[i]);
          }));
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc, const char* attr_name,
                                const void* proto, size_t proto_len, TF_Status* status) {
  SetChecked("TF_SetAttrTensorShapeProto", desc, attr_name,
             weir::capi::ShapeFromProtoAt(proto, proto_len), status);
}

void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* desc, const char* attr_name,
                                    const void* const* protos, const size_t* proto_lens,
                                    int num_shapes, TF_Status* status) {
  if (num_shapes > 0 && !HaveAll("TF_SetAttrTensorShapeProtoList", {proto_lens}, status)) return;
  SetChecked("TF_SetAttrTensorShapeProtoList", desc, attr_name,
             ListOf<weir::Shape>(
                 protos, num_shapes,
                 [&](int i) { return weir::capi::ShapeFromProtoAt(protos[i], proto_lens[i]); }),
             status);
}

void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name, TF_Tensor* value,
                      TF_Status* status) {
  SetChecked("TF_SetAttrTensor", desc, attr_name, weir::capi::CopyOf(value), status);
}

void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name,
                          TF_Tensor* const* values, int num_values, TF_Status* status) {
  SetChecked("TF_SetAttrTensorList", desc, attr_name,
             ListOf<weir::Tensor>(values, num_values,
                                  [&](int i) { return weir::capi::CopyOf(values[i]); }),
             status);
}

void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name, const void* proto,
                          size_t proto_len, TF_Status* status) {
  const auto bytes = BytesAt(proto, proto_len);
  SetChecked("TF_SetAttrValueProto", desc, attr_name,
             bytes.ok() ? weir::AttrFromBytes(*bytes) : bytes.status(), status);
}

TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status) {
  const std::unique_ptr<TF_OperationDescription> owned(desc);
  if (!HaveAll("TF_FinishOperation", {desc}, status)) return nullptr;
  weir::Node* node = nullptr;
  SetStatus(status, desc->graph->Change([&](weir::Graph& graph) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(node, weir::capi::Finisher(*desc, graph).Build());
    desc->graph->mutex.AssertHeld();
    if (!weir::IsNodeName(desc->name)) {
      desc->graph->name_error.Update(
          weir::InvalidArgument("Node '", desc->name, "': Node name contains invalid characters"));
    }
    return absl::OkStatus();
  }));
  return weir::capi::OperationOf(node);
}
