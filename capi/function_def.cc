#include "weir/capi/function_def.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/function.pb.h"

namespace weir::capi {

namespace {

constexpr char kShapesAttr[] = "_output_shapes";

// The names of a function: those of its results, arguments and nodes differ.
class FunctionNames {
 public:
  // Takes the name as it is. Returns false if it is taken.
  bool Take(const std::string& name) { return next_.try_emplace(name, 0).second; }

  // Returns the name, or if it is taken, the name with a number.
  std::string Unique(const std::string& name) {
    if (Take(name)) return name;
    std::string candidate;
    do {
      candidate = absl::StrCat(name, "_", next_[name]++);
    } while (!Take(candidate));
    return candidate;
  }

  // Same, of the name in the form of an argument: "[a-z][a-z0-9_]*".
  std::string UniqueArg(absl::string_view name) {
    std::string arg;
    for (const char c : name) {
      if (arg.empty() && !absl::ascii_isalpha(c)) continue;
      arg += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '_';
    }
    return Unique(arg.empty() ? "unknown" : arg);
  }

 private:
  absl::flat_hash_map<std::string, int> next_;  // the number for the next node of the name
};

class FunctionMaker {
 public:
  FunctionMaker(const FunctionArguments& args, const Graph& graph) : args_(args), graph_(graph) {}

  // Results come first, as in TensorFlow: their names are the only ones that callers may give.
  absl::StatusOr<proto::FunctionDef> Make() {
    def_.mutable_signature()->set_description(args_.description);
    WEIR_RETURN_IF_ERROR(AddResults());
    for (size_t i = 0; i < args_.inputs.size(); ++i) WEIR_RETURN_IF_ERROR(AddArg(i));
    for (const Node* node : args_.nodes) NameNode(*node);
    for (const Node* node : args_.nodes) WEIR_RETURN_IF_ERROR(AddNode(*node));
    WEIR_RETURN_IF_ERROR(SetReturnValues());
    SetName();
    return std::move(def_);
  }

 private:
  absl::Status AddResults() {
    for (size_t i = 0; i < args_.outputs.size(); ++i) {
      const Output& output = args_.outputs[i];
      auto* const arg = def_.mutable_signature()->add_output_arg();
      arg->set_type(static_cast<proto::DataType>(output.dtype()));
      if (args_.output_names == nullptr) {
        arg->set_name(names_.UniqueArg(output.node->name()));
        continue;
      }
      const char* const name = args_.output_names[i];
      if (name == nullptr) return InvalidArgument("the name of output ", i, " is null");
      if (!names_.Take(name)) {
        return InvalidArgument("Cannot have duplicate output names. Name '", name,
                               "' appears more than once in 'output_names' array.");
      }
      arg->set_name(name);
    }
    return absl::OkStatus();
  }

  absl::Status AddArg(size_t i) {
    const Output& input = args_.inputs[i];
    const std::string name = names_.UniqueArg(input.node->name());
    if (!tensors_.try_emplace(input, name).second)
      return InvalidArgument("TF_Output ", input.name(),
                             " appears more than once in the input list");
    auto* const arg = def_.mutable_signature()->add_input_arg();
    arg->set_name(name);
    arg->set_type(static_cast<proto::DataType>(input.dtype()));
    node_names_[input.node] = name;
    AddArgAttrs(static_cast<uint32_t>(i), *input.node);
    return absl::OkStatus();
  }

  // Keeps what the node of an argument knows: internal attributes, and the shape.
  void AddArgAttrs(uint32_t i, const Node& node) {
    proto::FunctionDef::ArgAttrs attrs;
    for (const auto& [name, value] : node.attrs()) {
      const auto* const shape = value.get_if<Shape>();
      const auto* const constant = value.get_if<Tensor>();
      if (absl::StartsWith(name, "_")) {
        AttrToProto(value, &(*attrs.mutable_attr())[name]);
      } else if (name == "shape" && shape != nullptr && node.output_type(0) != DT_RESOURCE) {
        AttrToProto(AttrValue(std::vector<Shape>{*shape}), &(*attrs.mutable_attr())[kShapesAttr]);
      } else if (node.op_name() == "Const" && constant != nullptr) {
        AttrToProto(AttrValue(std::vector<Shape>{constant->shape()}),
                    &(*attrs.mutable_attr())[kShapesAttr]);
      }
    }
    if (attrs.attr_size() > 0) (*def_.mutable_arg_attr())[i] = std::move(attrs);
  }

  void NameNode(const Node& node) {
    const std::string name = names_.Unique(node.name());
    node_names_[&node] = name;
    for (const ArgSpec& arg : node.op().outputs()) {
      const auto [first, last] = node.OutputRange(arg.name);
      for (int i = first; i < last; ++i) {
        tensors_.try_emplace(Output(const_cast<Node*>(&node), i),
                             absl::StrCat(name, ":", arg.name, ":", i - first));
      }
    }
  }

  absl::Status AddNode(const Node& node) {
    proto::NodeDef* const def = def_.add_node_def();
    NodeToProto(node, def);
    def->set_name(node_names_.at(&node));
    def->clear_input();
    for (int i = 0; i < node.num_inputs(); ++i) {
      const auto it = tensors_.find(node.input(i));
      if (it == tensors_.end()) {
        return InvalidArgument("Input ", i, ", '", node.input(i).name(), "', of node '",
                               node.name(), "' in function '", args_.name,
                               "' is not available. You might need to include it in inputs or "
                               "include its source node in the body");
      }
      def->add_input(it->second);
    }
    WEIR_RETURN_IF_ERROR(AddControls(node, def));
    if (node.op().stateful()) def_.mutable_signature()->set_is_stateful(true);
    return AddPlaceholders(node);
  }

  absl::Status AddControls(const Node& node, proto::NodeDef* def) const {
    std::vector<const Node*> controls(node.control_inputs().begin(), node.control_inputs().end());
    std::sort(controls.begin(), controls.end(),
              [](const Node* a, const Node* b) { return a->name() < b->name(); });
    for (const Node* control : controls) {
      const auto it = node_names_.find(control);
      if (it == node_names_.end()) {
        return InvalidArgument("The source of control edge ", EdgeName(*control, node),
                               " is not in the body. Encountered while creating function '",
                               args_.name, "'");
      }
      def->add_input("^" + it->second);
    }
    return absl::OkStatus();
  }

  // Returns the edge as TensorFlow's messages name it, with its number: edges are counted in the
  // order of the nodes that they lead to.
  std::string EdgeName(const Node& control, const Node& node) const {
    int64_t id = 1;
    for (const auto& earlier : graph_.nodes().first(node.id()))
      id += earlier->num_inputs() + static_cast<int64_t>(earlier->control_inputs().size());
    const auto controls = node.control_inputs();
    id += node.num_inputs() +
          (std::find(controls.begin(), controls.end(), &control) - controls.begin());
    return absl::StrCat("[id=", id, " ", control.name(), ":-1 -> ", node.name(), ":-1]");
  }

  // Adds the attributes of the function that attributes of the node stand for.
  absl::Status AddPlaceholders(const Node& node) {
    for (const auto& [name, value] : node.attrs()) {
      const auto* const placeholder = value.get_if<AttrPlaceholder>();
      if (placeholder == nullptr || !placeholders_.insert(placeholder->name).second) continue;
      const AttrSpec* const spec = node.op().FindAttr(name);
      if (spec == nullptr) {
        return Unimplemented("Placeholder value is not supported for attributes not in OpDef. ",
                             "Attribute: ", name, ", OpDef: ", node.op_name());
      }
      auto* const attr = def_.mutable_signature()->add_attr();
      attr->set_name(placeholder->name);
      attr->set_type(spec->TypeName());
    }
    return absl::OkStatus();
  }

  absl::Status SetReturnValues() {
    for (size_t i = 0; i < args_.outputs.size(); ++i) {
      const auto it = tensors_.find(args_.outputs[i]);
      if (it == tensors_.end()) {
        return InvalidArgument("TF_Output ", args_.outputs[i].name(),
                               " is neither in the function body nor among function inputs. "
                               "Encountered while creating function '",
                               args_.name, "'");
      }
      const int result = static_cast<int>(i);
      (*def_.mutable_ret())[def_.signature().output_arg(result).name()] = it->second;
    }
    return absl::OkStatus();
  }

  // Appends the hash of the function without its name, in the letters that names may have.
  void SetName() {
    std::string name = args_.name;
    if (args_.append_hash) {
      const uint64_t hash = FunctionDefHash(def_);
      std::string bytes;
      for (int i = 0; i < 8; ++i) bytes += static_cast<char>(hash >> 8 * i);
      const std::string text = absl::WebSafeBase64Escape(bytes);
      absl::StrAppend(&name, "_", absl::StrReplaceAll(text, {{"-", "a"}, {"_", "A"}}));
    }
    def_.mutable_signature()->set_name(name);
  }

  const FunctionArguments& args_;
  const Graph& graph_;
  proto::FunctionDef def_;
  FunctionNames names_;
  absl::flat_hash_map<Output, std::string> tensors_;
  absl::flat_hash_map<const Node*, std::string> node_names_;
  std::set<std::string> placeholders_;  // the attributes of the function
};

}  // namespace

absl::StatusOr<proto::FunctionDef> MakeFunctionDef(const FunctionArguments& args,
                                                   const Graph& graph) {
  return FunctionMaker(args, graph).Make();
}

}  // namespace weir::capi
