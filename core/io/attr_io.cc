#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/attr_value.pb.h"
#include "weir/proto/op_def.pb.h"

namespace weir {

namespace {

absl::StatusOr<DataType> TypeFromProto(int wire) {
  if (wire < 0 || wire > UINT8_MAX) {
    return InvalidArgument("AttrValue has invalid DataType enum: ", wire);
  }
  return static_cast<DataType>(wire);
}

absl::StatusOr<FunctionRef> FunctionFromProto(const proto::NameAttrList& proto, int64_t* budget) {
  FunctionRef function{proto.name(), nullptr};
  if (proto.attr().empty()) return function;
  auto attrs = std::make_shared<AttrMap>();
  for (const auto* const attribute : SortedAttrs(proto.attr())) {
    const auto& [name, value] = *attribute;
    WEIR_ASSIGN_OR_RETURN((*attrs)[name], AttrFromProto(value, budget));
  }
  function.attrs = std::move(attrs);
  return function;
}

template <class T, class Field>
AttrValue NumberList(const Field& field) {
  return AttrValue(std::vector<T>(field.begin(), field.end()));
}

// Reads a list whose elements need a fallible conversion.
template <class T, class Field, class Convert>
absl::StatusOr<AttrValue> ConvertedList(const Field& field, Convert convert) {
  std::vector<T> out;
  out.reserve(field.size());
  for (const auto& item : field) {
    WEIR_ASSIGN_OR_RETURN(T value, convert(item));
    out.push_back(std::move(value));
  }
  return AttrValue(std::move(out));
}

absl::StatusOr<AttrValue> ListFromProto(const proto::AttrValue::ListValue& list, int64_t* budget) {
  const int kinds = (list.s_size() > 0) + (list.i_size() > 0) + (list.f_size() > 0) +
                    (list.b_size() > 0) + (list.type_size() > 0) + (list.shape_size() > 0) +
                    (list.tensor_size() > 0) + (list.func_size() > 0);
  if (kinds > 1) return InvalidArgument("AttrValue has a list with values of more than one kind");
  if (list.s_size() > 0) return NumberList<std::string>(list.s());
  if (list.i_size() > 0) return NumberList<int64_t>(list.i());
  if (list.f_size() > 0) return NumberList<float>(list.f());
  if (list.b_size() > 0) return NumberList<bool>(list.b());
  if (list.type_size() > 0) return ConvertedList<DataType>(list.type(), TypeFromProto);
  if (list.shape_size() > 0) return ConvertedList<Shape>(list.shape(), ShapeFromProto);
  if (list.tensor_size() > 0) {
    return ConvertedList<Tensor>(list.tensor(), [budget](const proto::TensorProto& tensor) {
      return TensorFromProto(tensor, budget);
    });
  }
  if (list.func_size() > 0) {
    return ConvertedList<FunctionRef>(list.func(), [budget](const proto::NameAttrList& func) {
      return FunctionFromProto(func, budget);
    });
  }
  return AttrValue(AttrValue::EmptyList{});
}

void FunctionToProto(const FunctionRef& function, proto::NameAttrList* proto) {
  proto->set_name(function.name);
  if (function.attrs == nullptr) return;
  for (const auto& [name, value] : *function.attrs) {
    AttrToProto(value, &(*proto->mutable_attr())[name]);
  }
}

// One overload for each kind of value.
class AttrWriter {
 public:
  explicit AttrWriter(proto::AttrValue* out) : out_(out) {}

  void operator()(std::monostate) {}
  void operator()(const std::string& s) { out_->set_s(s); }
  void operator()(int64_t i) { out_->set_i(i); }
  void operator()(float f) { out_->set_f(f); }
  void operator()(bool b) { out_->set_b(b); }
  void operator()(DataType t) { out_->set_type(static_cast<proto::DataType>(t)); }
  void operator()(const Shape& s) { ShapeToProto(s, out_->mutable_shape()); }
  void operator()(const Tensor& t) { TensorToProto(t, out_->mutable_tensor()); }
  void operator()(const FunctionRef& f) { FunctionToProto(f, out_->mutable_func()); }
  void operator()(const AttrPlaceholder& p) { out_->set_placeholder(p.name); }
  void operator()(AttrValue::EmptyList) { out_->mutable_list(); }
  template <class T>
  void operator()(const std::vector<T>& list) {
    for (const T& item : list) Append(item, out_->mutable_list());
  }

 private:
  using List = proto::AttrValue::ListValue;
  static void Append(const std::string& s, List* list) { list->add_s(s); }
  static void Append(int64_t i, List* list) { list->add_i(i); }
  static void Append(float f, List* list) { list->add_f(f); }
  static void Append(bool b, List* list) { list->add_b(b); }
  static void Append(DataType t, List* list) { list->add_type(static_cast<proto::DataType>(t)); }
  static void Append(const Shape& s, List* list) { ShapeToProto(s, list->add_shape()); }
  static void Append(const Tensor& t, List* list) { TensorToProto(t, list->add_tensor()); }
  static void Append(const FunctionRef& f, List* list) { FunctionToProto(f, list->add_func()); }

  proto::AttrValue* out_;
};

void ArgToProto(const ArgSpec& arg, proto::OpDef::ArgDef* def) {
  def->set_name(arg.name);
  def->set_type(static_cast<proto::DataType>(arg.type));
  def->set_type_attr(arg.type_attr);
  def->set_number_attr(arg.number_attr);
  def->set_type_list_attr(arg.type_list_attr);
  def->set_is_ref(arg.is_ref);
}

void AttrSpecToProto(const AttrSpec& attr, proto::OpDef::AttrDef* def) {
  def->set_name(attr.name);
  def->set_type(attr.TypeName());
  if (attr.default_value) AttrToProto(*attr.default_value, def->mutable_default_value());
  if (attr.minimum) {
    def->set_has_minimum(true);
    def->set_minimum(*attr.minimum);
  }
  if (!attr.allowed_types.empty()) {
    AttrToProto(AttrValue(attr.allowed_types), def->mutable_allowed_values());
  } else if (!attr.allowed_strings.empty()) {
    AttrToProto(AttrValue(attr.allowed_strings), def->mutable_allowed_values());
  }
}

std::string ArgText(const proto::OpDef::ArgDef& arg) {
  std::string type = !arg.type_list_attr().empty() ? arg.type_list_attr()
                     : !arg.type_attr().empty()    ? arg.type_attr()
                                                : DataTypeName(static_cast<DataType>(arg.type()));
  if (!arg.number_attr().empty()) type = absl::StrCat(arg.number_attr(), " * ", type);
  return absl::StrCat(arg.name(), ": ", arg.is_ref() ? absl::StrCat("Ref(", type, ")") : type);
}

}  // namespace

absl::StatusOr<AttrValue> AttrFromProto(const proto::AttrValue& proto, int64_t* budget) {
  switch (proto.value_case()) {
    case proto::AttrValue::kS:
      return AttrValue(proto.s());
    case proto::AttrValue::kI:
      return AttrValue(static_cast<int64_t>(proto.i()));
    case proto::AttrValue::kF:
      return AttrValue(proto.f());
    case proto::AttrValue::kB:
      return AttrValue(proto.b());
    case proto::AttrValue::kType:
      return TypeFromProto(proto.type());
    case proto::AttrValue::kShape:
      return ShapeFromProto(proto.shape());
    case proto::AttrValue::kTensor:
      return TensorFromProto(proto.tensor(), budget);
    case proto::AttrValue::kPlaceholder:
      return AttrValue(AttrPlaceholder{proto.placeholder()});
    case proto::AttrValue::kFunc:
      return FunctionFromProto(proto.func(), budget);
    case proto::AttrValue::kList:
      return ListFromProto(proto.list(), budget);
    case proto::AttrValue::VALUE_NOT_SET:
      break;
  }
  return AttrValue();
}

absl::StatusOr<AttrValue> AttrFromProto(const proto::AttrValue& proto) {
  int64_t budget = kExpansionBudget;
  return AttrFromProto(proto, &budget);
}

void AttrToProto(const AttrValue& value, proto::AttrValue* proto) {
  proto->Clear();
  std::visit(AttrWriter(proto), value.value());
}

void OpToProto(const OpSpec& op, proto::OpDef* def) {
  def->Clear();
  def->set_name(op.name());
  for (const ArgSpec& arg : op.inputs()) ArgToProto(arg, def->add_input_arg());
  for (const ArgSpec& arg : op.outputs()) ArgToProto(arg, def->add_output_arg());
  for (const AttrSpec& attr : op.attrs()) AttrSpecToProto(attr, def->add_attr());
  def->set_is_stateful(op.stateful());
  def->set_is_commutative(op.commutative());
  def->set_is_aggregate(op.aggregate());
  def->set_allows_uninitialized_input(op.allows_uninitialized_input());
  if (op.deprecated_version() > 0) {
    def->mutable_deprecation()->set_version(op.deprecated_version());
    def->mutable_deprecation()->set_explanation(op.deprecation());
  }
}

absl::StatusOr<OpSpec> OpFromProto(const proto::OpDef& def) {
  OpSpec op(def.name());
  for (const auto& arg : def.input_arg()) op.In(ArgText(arg));
  for (const auto& arg : def.output_arg()) op.Out(ArgText(arg));
  for (const auto& attr : def.attr()) {
    absl::string_view type = attr.type();
    const bool is_list = absl::ConsumePrefix(&type, "list(");
    const bool has_types = attr.allowed_values().list().type_size() > 0;
    std::string text(attr.type());
    if (has_types) {
      text = absl::StrCat("{",
                          absl::StrJoin(attr.allowed_values().list().type(), ", ",
                                        [](std::string* out, int t) {
                                          *out += DataTypeName(static_cast<DataType>(t));
                                        }),
                          "}");
      if (is_list) text = absl::StrCat("list(", text, ")");
    }
    if (attr.has_minimum()) absl::StrAppend(&text, " >= ", attr.minimum());
    op.Attr(absl::StrCat(attr.name(), ": ", text));
  }
  if (def.is_stateful()) op.Stateful();
  WEIR_RETURN_IF_ERROR(op.Resolve());
  return op;
}

}  // namespace weir
