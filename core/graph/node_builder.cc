#include <algorithm>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/graph.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/signature.h"

namespace weir {

namespace {

constexpr absl::string_view kColocationPrefix = "loc:@";
constexpr size_t kUsualCount = 4;  // of given attributes

// TensorFlow's Python names of types, for its messages about argument types.
std::string PythonName(DataType type) {
  switch (BaseType(type)) {
    case DT_HALF:
      return "float16";
    case DT_FLOAT:
      return "float32";
    case DT_DOUBLE:
      return "float64";
    default:
      return DataTypeName(BaseType(type));
  }
}

std::string PythonNames(absl::Span<const DataType> types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DataType t) { *out += PythonName(t); });
}

DataTypes TypesOf(absl::Span<const Output> values) {
  DataTypes types;
  for (const Output& v : values) types.push_back(v.dtype());
  return types;
}

// Deduces attributes from the arguments of a node under construction, and records which argument
// determined each.
class ArgMatcher {
 public:
  ArgMatcher(const OpSpec& op, AttrMap* attrs) : op_(op), attrs_(attrs) {}

  absl::Status Match(const ArgSpec& arg, absl::Span<const Output> values) {
    if (arg.is_ref) {
      for (const Output& v : values) {
        if (!v.is_ref()) {
          return InvalidArgument(Subject(arg), " requires l-value input: ", v.name(),
                                 " is not a reference to a variable");
        }
      }
    }
    if (!arg.type_list_attr.empty()) return MatchTypeList(arg, TypesOf(values));
    if (!arg.number_attr.empty()) WEIR_RETURN_IF_ERROR(MatchLength(arg, values.size()));
    if (values.empty()) return absl::OkStatus();
    const DataType type = values[0].dtype();
    if (std::any_of(values.begin(), values.end(),
                    [&](const Output& v) { return v.dtype() != type; })) {
      return InvalidArgument("Tensors in list passed to '", arg.name, "' of '", op_.name(),
                             "' Op have types [", PythonNames(TypesOf(values)),
                             "] that don't all match.");
    }
    return arg.type_attr.empty() ? MatchFixedType(arg, type) : MatchType(arg, type);
  }

 private:
  std::string Subject(const ArgSpec& arg) const {
    return absl::StrCat("Input '", arg.name, "' of '", op_.name(), "' Op");
  }

  // Returns the source of an attribute's value: " of argument 'a'", or "" if the caller set it.
  const std::string* Source(const std::string& attr) const {
    const auto it = std::find_if(sources_.begin(), sources_.end(),
                                 [&](const auto& source) { return *source.first == attr; });
    return it == sources_.end() ? nullptr : it->second;
  }

  absl::Status MatchFixedType(const ArgSpec& arg, DataType type) const {
    if (type == arg.type) return absl::OkStatus();
    return InvalidArgument(Subject(arg), " has type ", PythonName(type),
                           " that does not match expected type of ", PythonName(arg.type), ".");
  }

  absl::Status MatchType(const ArgSpec& arg, DataType type) {
    const auto [it, is_new] = attrs_->emplace(arg.type_attr, type);
    if (is_new) {
      sources_.emplace_back(&arg.type_attr, &arg.name);
      return CheckAllowed(arg, *op_.FindAttr(arg.type_attr), type);
    }
    const DataType* wanted = it->second.get_if<DataType>();
    if (wanted == nullptr || *wanted == type) return absl::OkStatus();
    const std::string* source = Source(arg.type_attr);
    if (source == nullptr) {
      return InvalidArgument(Subject(arg), " has type ", PythonName(type),
                             " that does not match expected type of ", PythonName(*wanted), ".");
    }
    return InvalidArgument(Subject(arg), " has type ", PythonName(type),
                           " that does not match type ", PythonName(*wanted), " of argument '",
                           *source, "'.");
  }

  static absl::Status CheckAllowed(const ArgSpec& arg, const AttrSpec& attr, DataType type) {
    const DataTypes& allowed = attr.allowed_types;
    if (allowed.empty() || std::find(allowed.begin(), allowed.end(), type) != allowed.end()) {
      return absl::OkStatus();
    }
    return InvalidArgument("Value passed to parameter '", arg.name, "' has DataType ",
                           PythonName(type),
                           " not in list of allowed values: ", PythonNames(allowed));
  }

  absl::Status MatchTypeList(const ArgSpec& arg, const DataTypes& types) {
    const auto [it, is_new] = attrs_->emplace(arg.type_list_attr, types);
    if (is_new) {
      sources_.emplace_back(&arg.type_list_attr, &arg.name);
      return absl::OkStatus();
    }
    const DataTypes* wanted = it->second.get_if<DataTypes>();
    if (it->second == AttrValue(types)) return absl::OkStatus();
    const std::string* source = Source(arg.type_list_attr);
    return InvalidArgument(
        Subject(arg), " has type list of ", PythonNames(types), " that does not match type list ",
        wanted == nullptr ? "" : PythonNames(*wanted),
        source == nullptr ? "" : absl::StrCat(" of argument '", *source, "'"), ".");
  }

  absl::Status MatchLength(const ArgSpec& arg, size_t size) {
    const auto length = static_cast<int64_t>(size);
    const auto [it, is_new] = attrs_->emplace(arg.number_attr, length);
    if (is_new) sources_.emplace_back(&arg.number_attr, &arg.name);
    const int64_t* wanted = it->second.get_if<int64_t>();
    if (wanted == nullptr || *wanted == length) return absl::OkStatus();
    const std::string* source = Source(arg.number_attr);
    return InvalidArgument("List argument '", arg.name, "' to '", op_.name(), "' Op with length ",
                           length, " must match length ", *wanted,
                           source == nullptr ? "" : absl::StrCat(" of argument '", *source, "'"),
                           ".");
  }

  const OpSpec& op_;
  AttrMap* attrs_;
  // Attributes of the signature, and the arguments that determined them.
  absl::InlinedVector<std::pair<const std::string*, const std::string*>, 4> sources_;
};

std::pair<int, int> FindRange(absl::Span<const ArgSpec> args, const AttrMap& attrs,
                              absl::string_view name) {
  int begin = 0;
  for (const ArgSpec& arg : args) {
    const int end = begin + static_cast<int>(ArgLength(arg, attrs));
    if (arg.name == name) return {begin, end};
    begin = end;
  }
  return {0, 0};
}

// Merges device scopes field by field; inner scopes win. A device function sees the result of the
// scopes inside it.
absl::Status MergeDevices(const std::vector<Graph::DeviceFn>& devices, Graph& graph, Node* node) {
  for (auto fn = devices.rbegin(); fn != devices.rend(); ++fn) {
    WEIR_ASSIGN_OR_RETURN(DeviceName merged, DeviceName::Parse((*fn)(*node)));
    WEIR_ASSIGN_OR_RETURN(const DeviceName inner, DeviceName::Parse(node->device()));
    merged.MergeFrom(inner);
    graph.SetDevice(node, merged.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

std::pair<int, int> Node::InputRange(absl::string_view arg) const {
  return FindRange(op_->inputs(), attrs_, arg);
}

std::pair<int, int> Node::OutputRange(absl::string_view arg) const {
  return FindRange(op_->outputs(), attrs_, arg);
}

const AttrValue* Node::FindAttr(absl::string_view name) const {
  const auto it = attrs_.find(name);
  return it == attrs_.end() ? nullptr : &it->second;
}

std::vector<std::string> Node::colocations() const {
  std::vector<std::string> names;
  const AttrValue* marks = FindAttr("_class");
  const auto* list = marks == nullptr ? nullptr : marks->get_if<std::vector<std::string>>();
  if (list == nullptr) return names;
  for (absl::string_view mark : *list) {
    if (absl::ConsumePrefix(&mark, kColocationPrefix)) names.emplace_back(mark);
  }
  return names;
}

const std::string& Node::device() const {
  static const auto* const none = new std::string;
  return device_ == nullptr ? *none : *device_;
}

std::string Node::Label() const { return absl::StrCat(name_, " (", op_name(), ")"); }

NodeBuilder::NodeBuilder(Graph& graph, absl::string_view op) : graph_(graph), op_(op) {}
NodeBuilder::~NodeBuilder() = default;

NodeBuilder& NodeBuilder::Name(absl::string_view name) {
  name_ = std::string(name);
  return *this;
}

NodeBuilder& NodeBuilder::Input(const Output& value) {
  inputs_.push_back(value);
  args_.push_back({static_cast<int>(inputs_.size()), false});
  return *this;
}

NodeBuilder& NodeBuilder::InputList(absl::Span<const Output> values) {
  inputs_.insert(inputs_.end(), values.begin(), values.end());
  args_.push_back({static_cast<int>(inputs_.size()), true});
  return *this;
}

absl::Span<const Output> NodeBuilder::InputsOf(size_t arg) const {
  const int begin = arg == 0 ? 0 : args_[arg - 1].end;
  return absl::MakeSpan(inputs_).subspan(begin, args_[arg].end - begin);
}

NodeBuilder& NodeBuilder::Control(Node* node) {
  if (node != nullptr) controls_.push_back(node);
  return *this;
}

NodeBuilder& NodeBuilder::Attr(absl::string_view name, AttrValue value) {
  if (attrs_.empty()) attrs_.reserve(kUsualCount);
  attrs_.emplace_back(std::string(name), std::move(value));
  return *this;
}

NodeBuilder& NodeBuilder::Device(absl::string_view device) {
  device_ = std::string(device);
  return *this;
}

NodeBuilder& NodeBuilder::ColocateWith(const Node* node) {
  if (node == nullptr) return *this;
  std::vector<std::string> names = node->colocations();
  if (names.empty()) names.push_back(node->name());
  for (const std::string& name : names) {
    colocations_.push_back(absl::StrCat(kColocationPrefix, name));
  }
  return *this;
}

NodeBuilder& NodeBuilder::Verbatim() {
  verbatim_ = true;
  return *this;
}

NodeBuilder& NodeBuilder::AnyName() {
  any_name_ = true;
  return *this;
}

NodeBuilder& NodeBuilder::NamedAfterUser() {
  named_after_user_ = true;
  return *this;
}

namespace {

// Returns the requested name within the name scope. Names of nodes do not begin with '_', unlike
// the names of the runtime's own ops.
absl::string_view BaseName(absl::string_view name, absl::string_view op) {
  return name.empty() ? absl::StripPrefix(op, "_") : name;
}

}  // namespace

std::string NodeBuilder::RequestedName() const {
  if (HasFinalName()) return name_.substr(0, name_.size() - 1);
  return absl::StrCat(graph_.name_scope(), BaseName(name_, op_));
}

Node* NodeBuilder::Build() {
  if (graph_.finalized()) {
    graph_.Fail(FailedPrecondition("Graph is finalized and cannot be modified."));
    return nullptr;
  }
  std::unique_ptr<Node> node;
  NameIndex::FreeName name;
  absl::Status status = Make(&node, &name);
  status = status.ok() ? graph_.InferShapes(node.get()) : AnnotateWithNode(status);
  if (!status.ok()) {
    graph_.Fail(status);
    return nullptr;
  }
  if (HasFinalName()) {
    graph_.names_.Add(node.get());
    graph_.names_.Take(node->name_);
  } else {
    graph_.names_.AddUnique(node.get(), name);
  }
  if (!verbatim_) {
    for (const auto& group : graph_.context().control_groups) group->members.insert(node.get());
    if (!graph_.deferred_names_.empty()) graph_.ResolveDeferredNames(inputs_, node->name_);
  }
  if (named_after_user_) graph_.AddDeferredName({node.get(), graph_.name_scope(), RequestedName()});
  graph_.nodes_.push_back(std::move(node));
  return graph_.nodes_.back().get();
}

absl::Status NodeBuilder::AnnotateWithNode(const absl::Status& status) const {
  std::string inputs;
  for (const Output& in : inputs_) {
    const bool exists = in.valid() && in.CheckIndex().ok();
    absl::StrAppend(&inputs, inputs.empty() ? "" : ", ",
                    exists ? DataTypeName(in.dtype()) + in.shape().ToString() : "invalid");
  }
  if (!inputs.empty()) inputs = absl::StrCat(" (inputs: ", inputs, ")");
  return absl::Status(status.code(),
                      absl::StrCat(RequestedName(), " (", op_, "): ", status.message(), inputs));
}

// Builds everything except shapes, without modifying the graph.
absl::Status NodeBuilder::Make(std::unique_ptr<Node>* out, NameIndex::FreeName* name) {
  WEIR_ASSIGN_OR_RETURN(const OpSpec* op, graph_.ops().Lookup(op_));
  if (op->deprecated_version() > 0 && graph_.versions().producer >= op->deprecated_version()) {
    return Unimplemented("Op ", op_, " is not available in GraphDef version ",
                         graph_.versions().producer, ". It has been removed in version ",
                         op->deprecated_version(), ". ", op->deprecation(), ".");
  }
  auto node = std::make_unique<Node>();
  node->graph_ = &graph_;
  node->op_ = op;
  node->id_ = graph_.num_nodes();
  WEIR_RETURN_IF_ERROR(SetName(node.get(), name));
  WEIR_RETURN_IF_ERROR(CheckInputs(*op));
  WEIR_RETURN_IF_ERROR(SetTypes(node.get()));
  node->inputs_.assign(inputs_.begin(), inputs_.end());
  SetControls(node.get());
  WEIR_RETURN_IF_ERROR(SetDeviceAndColocation(node.get()));
  *out = std::move(node);
  return absl::OkStatus();
}

absl::Status NodeBuilder::SetName(Node* node, NameIndex::FreeName* name) const {
  std::string asked = RequestedName();
  if (!any_name_ && !IsNodeName(asked)) {
    return InvalidArgument("'", asked, "' is not a valid node name: it must match ",
                           "[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*");
  }
  if (HasFinalName()) {
    if (graph_.FindNode(asked) != nullptr)
      return InvalidArgument("Duplicate node name in graph: '", asked, "'");
    node->name_ = std::move(asked);
  } else {
    *name = graph_.names_.Unique(asked);
    node->name_ = name->text();
  }
  return absl::OkStatus();
}

absl::Status NodeBuilder::CheckInputs(const OpSpec& op) const {
  if (args_.size() != op.inputs().size()) {
    return InvalidArgument("Op takes ", op.inputs().size(), " arguments, but got ", args_.size(),
                           "; Op<", op.Signature(), ">");
  }
  for (size_t i = 0; i < args_.size(); ++i) {
    const ArgSpec& arg = op.inputs()[i];
    if (IsListArg(arg) != args_[i].is_list) {
      return InvalidArgument("Expected ", IsListArg(arg) ? "list" : "single tensor", " for '",
                             arg.name, "' argument to '", op.name(), "' Op, not ",
                             IsListArg(arg) ? "a single tensor" : "a list", ".");
    }
    for (const Output& in : InputsOf(i)) {
      if (in.expired()) {
        return FailedPrecondition("Input '", arg.name, "' of '", op.name(),
                                  "' Op belongs to a destroyed graph");
      }
      if (!in.valid()) {
        return InvalidArgument("Input '", arg.name, "' of '", op.name(),
                               "' Op is an invalid Output");
      }
      if (&in.graph() != &graph_) {
        return InvalidArgument("Input '", arg.name, "' of '", op.name(), "' Op: ", in.name(),
                               " must be from the same graph");
      }
      WEIR_RETURN_IF_ERROR(in.CheckIndex());
    }
  }
  for (const Node* control : controls_) {
    if (&control->graph() != &graph_) {
      return InvalidArgument("Control input ", control->name(), " must be from the same graph");
    }
  }
  return absl::OkStatus();
}

namespace {

using GivenAttr = std::pair<std::string, AttrValue>;

// Returns true if no type depends on the attribute, and the value is allowed.
bool IsTypeIndependent(const OpSpec& op, absl::string_view name, const AttrValue& value) {
  const AttrSpec* const spec = op.FindAttr(name);
  if (spec == nullptr) return true;  // a mark, such as _class
  switch (spec->kind) {
    case AttrSpec::Kind::kType:
    case AttrSpec::Kind::kInt:
    case AttrSpec::Kind::kFunction:
      return false;
    default:
      return spec->Check(value).ok();
  }
}

bool HasDuplicateName(absl::Span<const GivenAttr> attrs) {
  for (size_t i = 0; i < attrs.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (attrs[i].first == attrs[k].first) return true;
    }
  }
  return false;
}

}  // namespace

// Returns the caller's attributes, then those of the scopes, innermost first. Tensors, which may be
// large, are replaced by empty values.
std::vector<GivenAttr> NodeBuilder::GivenAttrs() const {
  std::vector<GivenAttr> given;
  const auto& scoped = graph_.context().attrs;
  given.reserve(attrs_.size() + scoped.size());
  const auto add = [&](const GivenAttr& attr) {
    given.emplace_back(attr.first, attr.second.is<Tensor>() ? AttrValue() : attr.second);
  };
  std::for_each(attrs_.begin(), attrs_.end(), add);
  std::for_each(scoped.rbegin(), scoped.rend(), add);
  return given;
}

// Sets the attributes of the op's last node, updated with this node's values where they differ, and
// makes the result the last one, so that more nodes share it. Returns false if the nodes were not
// built in the same way.
bool NodeBuilder::ReuseAttrs(Graph::LastBuilt& last, Node* node) const {
  const auto& scoped = graph_.context().attrs;
  std::vector<GivenAttr>& given = last.attrs_given;
  if (given.size() != attrs_.size() + scoped.size()) return false;
  AttrMap attrs = last.attrs;
  absl::InlinedVector<const AttrValue*, 8> changed(given.size());
  bool has_tensor = false;
  size_t i = 0;
  const auto take = [&](const GivenAttr& attr) {
    const auto& [name, before] = given[i];
    if (name != attr.first) return false;
    // The stored value of a tensor is empty, and so is a given value that is an error.
    if (before != attr.second || before.is<std::monostate>()) {
      if (!IsTypeIndependent(node->op(), name, attr.second)) return false;
      attrs.insert_or_assign(name, attr.second);
      changed[i] = &attr.second;
      has_tensor = has_tensor || attr.second.is<Tensor>();
    }
    ++i;
    return true;
  };
  if (!std::all_of(attrs_.begin(), attrs_.end(), take) ||
      !std::all_of(scoped.rbegin(), scoped.rend(), take))
    return false;
  if (!has_tensor) {
    last.attrs = attrs;
    for (size_t k = 0; k < given.size(); ++k) {
      if (changed[k] != nullptr) given[k].second = *changed[k];
    }
  }
  node->attrs_ = std::move(attrs);
  return true;
}

// Sets the attributes and the types that depend on them. Reuses those of the op's last node if this
// node is built from equal inputs and attributes, apart from attribute values that no type depends
// on.
absl::Status NodeBuilder::SetTypes(Node* node) {
  const OpSpec& op = node->op();
  const bool is_plain = graph_.context().container.empty();
  NodeTypes given;
  for (const Output& in : inputs_) given.push_back(in.node->output_type(in.index));
  // A stable reference: nothing else is built meanwhile.
  Graph::LastBuilt& last = graph_.last_built_[&op];
  if (is_plain && last.is_built && last.args == args_ && last.types_given == given &&
      ReuseAttrs(last, node)) {
    node->input_types_ = last.input_types;
    node->SetOutputTypes(last.output_types);
    return absl::OkStatus();
  }
  std::vector<GivenAttr> attrs_given;
  if (is_plain) attrs_given = GivenAttrs();
  WEIR_RETURN_IF_ERROR(SetAttrs(node));
  WEIR_ASSIGN_OR_RETURN(node->input_types_, ArgTypes(op, op.inputs(), node->attrs_, kMaxNodeArity));
  WEIR_ASSIGN_OR_RETURN(const NodeTypes output_types,
                        ArgTypes(op, op.outputs(), node->attrs_, kMaxNodeArity));
  node->SetOutputTypes(output_types);
  if (!is_plain || HasDuplicateName(attrs_given)) return absl::OkStatus();
  AttrMap attrs = node->attrs_;
  for (const auto& [name, value] : attrs_given) {
    if (value.is<std::monostate>()) attrs.insert_or_assign(name, AttrValue());
  }
  last = {.attrs = std::move(attrs),
          .is_built = true,
          .args = args_,
          .types_given = given,
          .attrs_given = std::move(attrs_given),
          .input_types = node->input_types_,
          .output_types = output_types};
  return absl::OkStatus();
}

// Precedence: the caller's attributes, values deduced from inputs, the attributes of scopes,
// defaults.
absl::Status NodeBuilder::SetAttrs(Node* node) {
  const OpSpec& op = node->op();
  AttrMap attrs;
  attrs.reserve(op.attrs().size() + 1);
  for (auto& [name, value] : attrs_) attrs.insert_or_assign(name, std::move(value));
  ArgMatcher matcher(op, &attrs);
  for (size_t i = 0; i < args_.size(); ++i) {
    WEIR_RETURN_IF_ERROR(matcher.Match(op.inputs()[i], InputsOf(i)));
  }
  const Graph::Context& context = graph_.context();
  for (auto it = context.attrs.rbegin(); it != context.attrs.rend(); ++it) attrs.insert(*it);
  WEIR_RETURN_IF_ERROR(CompleteAttrs(op, &attrs));
  if (!context.container.empty() && op.FindAttr("container") != nullptr) {
    AttrValue& container = attrs["container"];
    if (container == AttrValue("")) container = AttrValue(context.container);
  }
  graph_.SetSharedAttrs(node, std::move(attrs));
  return absl::OkStatus();
}

void NodeBuilder::SetControls(Node* node) const {
  if (controls_.empty() && (verbatim_ || graph_.context().control_groups.empty())) return;
  absl::flat_hash_set<const Node*> sources, seen;
  for (const Output& in : node->inputs_) sources.insert(in.node);
  const auto add = [&](Node* control) {
    if (seen.insert(control).second) node->control_inputs_.push_back(control);
  };
  if (!verbatim_) {
    for (const auto& group : graph_.context().control_groups) {
      const auto is_member = [&](const Node* source) { return group->members.contains(source); };
      if (std::any_of(sources.begin(), sources.end(), is_member)) continue;
      for (Node* control : group->controls) {
        if (!sources.contains(control)) add(control);
      }
    }
  }
  for (Node* control : controls_) add(control);
}

// Sets the device and the colocation marks. The device is the given one, or else that of the op
// colocated with, or else that of the scopes.
absl::Status NodeBuilder::SetDeviceAndColocation(Node* node) const {
  std::set<std::string> marks(colocations_.begin(), colocations_.end());
  if (!verbatim_) {
    const Graph::Context& context = graph_.context();
    WEIR_RETURN_IF_ERROR(MergeDevices(context.devices, graph_, node));
    marks.insert(context.colocations.begin(), context.colocations.end());
  }
  for (absl::string_view mark : marks) {
    const Node* other =
        absl::ConsumePrefix(&mark, kColocationPrefix) ? graph_.FindNode(mark) : nullptr;
    if (other != nullptr && !other->device().empty()) node->device_ = other->device_;
  }
  if (device_) {
    WEIR_RETURN_IF_ERROR(DeviceName::Parse(*device_).status());
    graph_.SetInternedDevice(node, *device_);
  }
  // As in TensorFlow, these marks replace a `_class` that was given as an attribute.
  if (!marks.empty()) {
    node->attrs_["_class"] = AttrValue(std::vector<std::string>(marks.begin(), marks.end()));
  }
  return absl::OkStatus();
}

Arg::Arg(const Output& o) : values{o}, is_list(false) {}
Arg::Arg(Outputs list) : values(std::move(list)), is_list(true) {}
Arg::~Arg() = default;
Arg::Arg(const Arg& other) = default;
Arg::Arg(Arg&& other) noexcept = default;
Arg& Arg::operator=(const Arg& other) = default;
Arg& Arg::operator=(Arg&& other) noexcept = default;

Node* AddNode(Graph& graph, absl::string_view op, absl::Span<const Arg> args,
              absl::Span<const NamedAttr> attrs, absl::string_view name) {
  NodeBuilder builder(graph, op);
  builder.Name(name);
  for (const Arg& arg : args) {
    if (arg.is_list) {
      builder.InputList(arg.values);
    } else {
      builder.Input(arg.values[0]);
    }
  }
  for (const auto& [attr, value] : attrs) builder.Attr(attr, value);
  return builder.Build();
}

Node* AddNode(absl::string_view op, absl::Span<const Arg> args, absl::Span<const NamedAttr> attrs,
              absl::string_view name) {
  for (const Arg& arg : args) {
    for (const Output& value : arg.values) {
      if (value.valid()) return AddNode(value.graph(), op, args, attrs, name);
    }
  }
  return nullptr;
}

Output AddOp(absl::string_view op, absl::Span<const Arg> args, absl::Span<const NamedAttr> attrs,
             absl::string_view name) {
  Node* node = AddNode(op, args, attrs, name);
  return node == nullptr ? Output() : Output(node, 0);
}

}  // namespace weir
