#include "weir/core/io/function_library.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/function.pb.h"

namespace weir {

struct FunctionLibrary::Function {
  proto::FunctionDef def;
  absl::StatusOr<OpSpec> op;
};

absl::StatusOr<std::shared_ptr<const FunctionLibrary>> FunctionLibrary::Extend(
    const std::shared_ptr<const FunctionLibrary>& base, const proto::FunctionDefLibrary& def) {
  if (def.function().empty() && def.gradient().empty() && def.registered_gradients().empty())
    return base;
  auto library = base == nullptr ? std::make_shared<FunctionLibrary>()
                                 : std::make_shared<FunctionLibrary>(*base);
  for (const proto::FunctionDef& function : def.function()) {
    const std::string& name = function.signature().name();
    if (const auto it = library->by_name_.find(name); it != library->by_name_.end()) {
      if (DeterministicBytes(it->second->def) == DeterministicBytes(function)) continue;
      return InvalidArgument("Cannot add function '", name,
                             "' because a different function with the same name already exists.");
    }
    auto entry = std::make_shared<Function>(Function{function, OpFromProto(function.signature())});
    if (entry->op.ok()) entry->op->Function();
    library->by_name_[name] = entry.get();
    library->functions_.push_back(std::move(entry));
  }
  for (const proto::GradientDef& gradient : def.gradient())
    library->gradients_.try_emplace(gradient.function_name(), gradient.gradient_func());
  for (const proto::RegisteredGradient& gradient : def.registered_gradients()) {
    std::pair<std::string, std::string> item(gradient.gradient_func(),
                                             gradient.registered_op_type());
    auto& known = library->registered_gradients_;
    if (std::find(known.begin(), known.end(), item) == known.end())
      known.push_back(std::move(item));
  }
  return std::shared_ptr<const FunctionLibrary>(std::move(library));
}

std::shared_ptr<const FunctionLibrary> FunctionLibrary::WithCaptures(
    const FunctionLibrary& base, std::map<std::string, FunctionCaptures, std::less<>> captures) {
  auto library = std::make_shared<FunctionLibrary>(base);
  ++library->num_models_;
  for (auto& [name, own] : captures) {
    for (CapturedValue& value : own.values) {
      if (value.object >= 0) value.model = library->num_models_;
    }
    library->captures_.insert_or_assign(name, std::move(own));
  }
  return library;
}

const FunctionCaptures* FunctionLibrary::FindCaptures(absl::string_view name) const {
  const auto it = captures_.find(name);
  return it == captures_.end() ? nullptr : &it->second;
}

const proto::FunctionDef* FunctionLibrary::FindDef(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &it->second->def;
}

absl::StatusOr<const OpSpec*> FunctionLibrary::FindOp(absl::string_view name) const {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return NotFound("Function '", name, "' is not defined.");
  if (!it->second->op.ok()) return it->second->op.status();
  return &*it->second->op;
}

std::string FunctionLibrary::GradientOf(absl::string_view name) const {
  const auto it = gradients_.find(name);
  return it == gradients_.end() ? "" : it->second;
}

std::vector<std::string> FunctionLibrary::RegisteredGradients(absl::string_view name) const {
  std::vector<std::string> functions;
  for (const auto& [function, registered] : registered_gradients_) {
    if (registered == name) functions.push_back(function);
  }
  return functions;
}

std::vector<std::string> FunctionLibrary::Names() const {
  std::vector<std::string> names;
  for (const auto& function : functions_) names.push_back(function->def.signature().name());
  return names;
}

absl::StatusOr<std::shared_ptr<const FunctionLibrary>> FunctionLibrary::Extend(
    const std::shared_ptr<const FunctionLibrary>& base, absl::string_view bytes) {
  proto::FunctionDefLibrary def;
  WEIR_RETURN_IF_ERROR(ParseBytes(bytes, &def));
  return Extend(base, def);
}

std::string FunctionLibrary::ToBytes() const {
  proto::FunctionDefLibrary def;
  ToProto(&def);
  return DeterministicBytes(def);
}

void FunctionLibrary::ToProto(proto::FunctionDefLibrary* def) const {
  def->Clear();
  for (const auto& function : functions_) *def->add_function() = function->def;
  for (const auto& [function, gradient] : gradients_) {
    proto::GradientDef* item = def->add_gradient();
    item->set_function_name(function);
    item->set_gradient_func(gradient);
  }
  for (const auto& [gradient, op] : registered_gradients_) {
    proto::RegisteredGradient* item = def->add_registered_gradients();
    item->set_gradient_func(gradient);
    item->set_registered_op_type(op);
  }
}

std::string FunctionKey(const FunctionRef& function) {
  proto::AttrValue value;
  AttrToProto(AttrValue(function), &value);
  return DeterministicBytes(value);
}

namespace {

// Converts the nodes of a graph to a FunctionDef.
class FunctionWriter {
 public:
  FunctionWriter(const Graph& body, proto::FunctionDef* def) : body_(body), def_(*def) {}

  absl::Status Write(absl::string_view name, const Outputs& args, const Outputs& results,
                     const std::vector<Operation>& effects) {
    WEIR_RETURN_IF_ERROR(body_.status());
    proto::OpDef& signature = *def_.mutable_signature();
    signature.set_name(std::string(name));
    for (const Output& arg : args) {
      WEIR_RETURN_IF_ERROR(Check(arg.node));
      if (arg.node->num_outputs() != 1)
        return InvalidArgument(arg.node->Label(), " cannot be the argument of a function");
      args_[arg.node] = AddArg(arg.node->name(), arg.dtype(), signature.mutable_input_arg());
    }
    for (const auto& node : body_.nodes()) {
      if (args_.count(node.get()) == 0) AddNode(*node);
      if (node->op().stateful()) signature.set_is_stateful(true);
    }
    for (const Output& result : results) {
      WEIR_RETURN_IF_ERROR(Check(result.node));
      const std::string key =
          AddArg(result.node->name(), result.dtype(), signature.mutable_output_arg());
      (*def_.mutable_ret())[key] = TensorName(result);
    }
    for (const Operation& effect : effects) {
      WEIR_RETURN_IF_ERROR(Check(effect.node));
      signature.add_control_output(effect.node->name());
      (*def_.mutable_control_ret())[effect.node->name()] = effect.node->name();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Check(const Node* node) const {
    if (node != nullptr && &node->graph() == &body_) return absl::OkStatus();
    return InvalidArgument("An argument, result or effect does not belong to the function's graph");
  }

  // Returns a valid name for an argument or result: [a-z][a-z0-9_]*.
  template <class List>
  std::string AddArg(absl::string_view wanted, DataType type, List* list) {
    std::string base;
    for (const char c : wanted) base += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '_';
    if (base.empty() || !absl::ascii_isalpha(base[0])) base.insert(0, "arg_");
    std::string name = base;
    for (int i = 1; !taken_.insert(name).second; ++i) name = absl::StrCat(base, "_", i);
    auto* arg = list->Add();
    arg->set_name(name);
    arg->set_type(static_cast<proto::DataType>(type));
    return name;
  }

  // Returns "node:product:0", or an argument's name.
  std::string TensorName(const Output& value) const {
    if (const auto arg = args_.find(value.node); arg != args_.end()) return arg->second;
    for (const ArgSpec& arg : value.node->op().outputs()) {
      const auto [first, last] = value.node->OutputRange(arg.name);
      if (value.index >= first && value.index < last)
        return absl::StrCat(value.node->name(), ":", arg.name, ":", value.index - first);
    }
    return value.name();
  }

  void AddNode(const Node& node) {
    proto::NodeDef* def = def_.add_node_def();
    NodeToProto(node, def);
    def->clear_input();
    for (const Output& input : node.inputs()) def->add_input(TensorName(input));
    for (const Node* control : node.control_inputs()) {
      const auto arg = args_.find(control);
      def->add_input(absl::StrCat("^", arg == args_.end() ? control->name() : arg->second));
    }
  }

  const Graph& body_;
  proto::FunctionDef& def_;
  std::map<const Node*, std::string> args_;
  std::set<std::string> taken_;
};

}  // namespace

absl::Status DefineFunction(Graph& graph, absl::string_view name, const Graph& body,
                            const Outputs& args, const Outputs& results,
                            const std::vector<Operation>& effects) {
  proto::FunctionDefLibrary addition;
  const bool knows_all = body.functions() == nullptr || body.functions() == graph.functions();
  if (!knows_all) body.functions()->ToProto(&addition);
  WEIR_RETURN_IF_ERROR(
      FunctionWriter(body, addition.add_function()).Write(name, args, results, effects));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<const FunctionLibrary> library,
                        FunctionLibrary::Extend(graph.functions(), addition));
  graph.set_functions(std::move(library));
  return absl::OkStatus();
}

}  // namespace weir
