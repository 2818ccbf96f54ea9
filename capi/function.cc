#include "weir/core/io/function_library.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "weir/capi/objects.h"
#include "weir/core/import/edges.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/function.pb.h"
#include "weir/proto/graph.pb.h"

// Functions: made of a part of a graph, copied to graphs, and called like ops.

struct TF_Function {
  weir::proto::FunctionDef def;
};

namespace weir::capi {

namespace {

// What TF_GraphToFunction takes.
struct FunctionArguments {
  std::string name;
  bool append_hash;
  std::vector<Node*> nodes;  // of the body
  Outputs inputs, outputs;
  const char* const* output_names;  // null: those of the nodes
};

// Makes a function by way of a graph that has a placeholder for each input.
class FunctionMaker {
 public:
  FunctionMaker(const FunctionArguments& args, const Graph& graph)
      : args_(args), graph_(graph), body_(args.nodes.begin(), args.nodes.end()) {}

  absl::StatusOr<proto::FunctionDef> Make() {
    for (Node* node : args_.nodes) taken_.insert(node->name());
    for (const Output& input : args_.inputs) WEIR_RETURN_IF_ERROR(AddPlaceholder(input));
    for (Node* node : args_.nodes) WEIR_RETURN_IF_ERROR(AddNode(*node));
    if (graph_.functions() != nullptr) graph_.functions()->ToProto(part_.mutable_library());
    Graph body;
    WEIR_RETURN_IF_ERROR(ImportGraphDef(body, part_).status());
    Outputs inputs, results;
    for (const Output& input : args_.inputs)
      inputs.emplace_back(body.FindNode(placeholders_.at(input)));
    for (const Output& output : args_.outputs) {
      WEIR_ASSIGN_OR_RETURN(results.emplace_back(), InBody(output, body));
    }
    Graph holder;
    WEIR_RETURN_IF_ERROR(DefineFunction(holder, args_.name, body, inputs, results));
    proto::FunctionDef def = *holder.functions()->FindDef(args_.name);
    WEIR_RETURN_IF_ERROR(NameOutputs(&def));
    if (args_.append_hash) {
      def.mutable_signature()->set_name(
          absl::StrFormat("%s_%08x", args_.name, Crc32c(DeterministicBytes(def))));
    }
    return def;
  }

 private:
  absl::Status AddPlaceholder(const Output& input) {
    std::string name = input.node->name();
    for (int i = 1; !taken_.insert(name).second; ++i)
      name = absl::StrCat(input.node->name(), "_", i);
    if (!placeholders_.try_emplace(input, name).second)
      return InvalidArgument("TF_Output ", input.name(),
                             " appears more than once in the input list");
    proto::NodeDef* const node = part_.add_node();
    node->set_name(name);
    node->set_op("Placeholder");
    AttrToProto(AttrValue(input.dtype()), &(*node->mutable_attr())["dtype"]);
    AttrToProto(AttrValue(input.shape()), &(*node->mutable_attr())["shape"]);
    return absl::OkStatus();
  }

  absl::Status AddNode(const Node& node) {
    proto::NodeDef* const def = part_.add_node();
    NodeToProto(node, def);
    def->clear_input();
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output& input = node.input(i);
      const auto it = placeholders_.find(input);
      if (it == placeholders_.end() && !IsInBody(input.node)) {
        return InvalidArgument("Input ", i, ", '", input.name(), "', of node '", node.name(),
                               "' in function '", args_.name,
                               "' is not available. You might need to include it in inputs or "
                               "include its source node in the body");
      }
      def->add_input(it == placeholders_.end() ? input.name() : it->second);
    }
    for (const Node* control : node.control_inputs()) {
      const auto it = std::find_if(args_.inputs.begin(), args_.inputs.end(),
                                   [&](const Output& input) { return input.node == control; });
      if (it == args_.inputs.end() && !IsInBody(control)) {
        return InvalidArgument("The source of control edge ", control->name(), " -> ", node.name(),
                               " is not in the body. Encountered while creating function '",
                               args_.name, "'");
      }
      def->add_input("^" + (it == args_.inputs.end() ? control->name() : placeholders_.at(*it)));
    }
    return absl::OkStatus();
  }

  bool IsInBody(const Node* node) const { return body_.contains(node); }

  absl::StatusOr<Output> InBody(const Output& output, const Graph& body) const {
    const auto it = placeholders_.find(output);
    if (it != placeholders_.end()) return Output(body.FindNode(it->second));
    if (IsInBody(output.node)) return Output(body.FindNode(output.node->name()), output.index);
    return InvalidArgument("TF_Output ", output.name(), " is neither in the function body nor ",
                           "among function inputs. Encountered while creating function '",
                           args_.name, "'");
  }

  absl::Status NameOutputs(proto::FunctionDef* def) const {
    if (args_.output_names == nullptr) return absl::OkStatus();
    std::map<std::string, std::string> results;
    for (int i = 0; i < def->signature().output_arg_size(); ++i) {
      const char* const name = args_.output_names[i];
      if (name == nullptr) return InvalidArgument("the name of output ", i, " is null");
      auto* const arg = def->mutable_signature()->mutable_output_arg(i);
      if (!results.try_emplace(name, def->ret().at(arg->name())).second) {
        return InvalidArgument("Cannot have duplicate output names. Name '", name,
                               "' appears more than once in 'output_names' array.");
      }
      arg->set_name(name);
    }
    def->mutable_ret()->clear();
    for (const auto& [name, tensor] : results) (*def->mutable_ret())[name] = tensor;
    return absl::OkStatus();
  }

  const FunctionArguments& args_;
  const Graph& graph_;
  const absl::flat_hash_set<const Node*> body_;
  proto::GraphDef part_;
  std::set<std::string> taken_;
  absl::flat_hash_map<Output, std::string> placeholders_;
};

// Returns the nodes of a function's body: those given, or all that make no input.
absl::StatusOr<std::vector<Node*>> BodyNodes(const Graph& graph, int count,
                                             const TF_Operation* const* operations,
                                             const Outputs& inputs) {
  std::vector<Node*> nodes;
  if (count >= 0) {
    WEIR_ASSIGN_OR_RETURN(const auto given, TargetsOf(operations, count, graph));
    for (const Operation& operation : given) nodes.push_back(operation.node);
    return nodes;
  }
  for (const auto& node : graph.nodes()) {
    const bool is_input = std::any_of(inputs.begin(), inputs.end(), [&](const Output& input) {
      return input.node == node.get();
    });
    if (!is_input) nodes.push_back(node.get());
  }
  return nodes;
}

absl::Status CopyFunction(Graph& graph, const TF_Function& function, const TF_Function* gradient) {
  proto::FunctionDefLibrary addition;
  *addition.add_function() = function.def;
  if (gradient != nullptr) {
    *addition.add_function() = gradient->def;
    proto::GradientDef* const def = addition.add_gradient();
    def->set_function_name(function.def.signature().name());
    def->set_gradient_func(gradient->def.signature().name());
  }
  WEIR_ASSIGN_OR_RETURN(auto library, FunctionLibrary::Extend(graph.functions(), addition));
  graph.set_functions(std::move(library));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Node*> AddCall(const TF_OperationDescription& desc, Graph& graph) {
  proto::GraphDef def;
  ImportOptions options;
  proto::NodeDef* const node = def.add_node();
  node->set_name(desc.name);
  node->set_op(desc.op);
  node->set_device(desc.device);
  const auto map = [&](const char* kind, const Output& to) {
    const std::string name = absl::StrCat("weir_", kind, options.input_map.size());
    node->add_input(absl::StrCat(*kind == 'c' ? "^" : "", name));
    options.input_map.emplace(node->input(node->input_size() - 1), to);
  };
  for (const auto& argument : desc.arguments) {
    WEIR_ASSIGN_OR_RETURN(
        const Outputs inputs,
        OutputsOf(argument.inputs.data(), static_cast<int>(argument.inputs.size()), graph));
    for (const Output& input : inputs) map("input", input);
  }
  for (TF_Operation* control : desc.controls) map("control", Output(NodeOf(control)));
  for (const auto& [name, value] : desc.attrs) AttrToProto(value, &(*node->mutable_attr())[name]);
  WEIR_RETURN_IF_ERROR(ImportGraphDef(graph, def, options).status());
  return graph.FindNode(desc.name);
}

}  // namespace weir::capi

using weir::MutexLock;
using weir::capi::HaveAll;
using weir::capi::SetBuffer;
using weir::capi::SetStatus;

TF_Function* TF_GraphToFunction(const TF_Graph* fn_body, const char* fn_name,
                                unsigned char append_hash_to_fn_name, int num_opers,
                                const TF_Operation* const* opers, int ninputs,
                                const TF_Output* inputs, int noutputs, const TF_Output* outputs,
                                const char* const* output_names, const TF_FunctionOptions* opts,
                                const char* description, TF_Status* status) {
  static_cast<void>(opts);  // there are none
  if (!HaveAll("TF_GraphToFunction", {fn_body, fn_name}, status)) return nullptr;
  auto function = std::make_unique<TF_Function>();
  const auto make = [&]() -> absl::Status {
    const MutexLock lock(const_cast<TF_Graph*>(fn_body)->mutex);
    const weir::Graph& graph = *fn_body->graph;
    weir::capi::FunctionArguments args{
        .name = fn_name, .append_hash = append_hash_to_fn_name != 0, .output_names = output_names};
    WEIR_ASSIGN_OR_RETURN(args.inputs, weir::capi::OutputsOf(inputs, ninputs, graph));
    WEIR_ASSIGN_OR_RETURN(args.outputs, weir::capi::OutputsOf(outputs, noutputs, graph));
    WEIR_ASSIGN_OR_RETURN(args.nodes, weir::capi::BodyNodes(graph, num_opers, opers, args.inputs));
    WEIR_ASSIGN_OR_RETURN(function->def, weir::capi::FunctionMaker(args, graph).Make());
    if (description != nullptr) function->def.mutable_signature()->set_description(description);
    return absl::OkStatus();
  };
  const absl::Status made = make();
  SetStatus(status, made);
  return made.ok() ? function.release() : nullptr;
}

void TF_DeleteFunction(TF_Function* func) { delete func; }

const char* TF_FunctionName(TF_Function* func) {
  return HaveAll("TF_FunctionName", {func}) ? func->def.signature().name().c_str() : nullptr;
}

void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def, TF_Status* status) {
  if (!HaveAll("TF_FunctionToFunctionDef", {func, output_func_def}, status)) return;
  SetBuffer(weir::DeterministicBytes(func->def), output_func_def);
  SetStatus(status, absl::OkStatus());
}

TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len, TF_Status* status) {
  if (!HaveAll("TF_FunctionImportFunctionDef", {proto}, status)) return nullptr;
  auto function = std::make_unique<TF_Function>();
  if (proto_len > INT32_MAX || !function->def.ParseFromArray(proto, static_cast<int>(proto_len))) {
    SetStatus(status,
              weir::InvalidArgument("Invalid FunctionDef given to TF_FunctionImportFunctionDef"));
    return nullptr;
  }
  SetStatus(status, absl::OkStatus());
  return function.release();
}

void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name, const void* proto,
                                  size_t proto_len, TF_Status* status) {
  if (!HaveAll("TF_FunctionSetAttrValueProto", {func, attr_name, proto}, status)) return;
  weir::proto::AttrValue value;
  if (proto_len > INT32_MAX || !value.ParseFromArray(proto, static_cast<int>(proto_len))) {
    return SetStatus(status, weir::InvalidArgument("Unparseable AttrValue proto passed to "
                                                   "TF_FunctionSetAttrValueProto"));
  }
  (*func->def.mutable_attr())[attr_name] = value;
  SetStatus(status, absl::OkStatus());
}

void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name,
                                  TF_Buffer* output_attr_value, TF_Status* status) {
  if (!HaveAll("TF_FunctionGetAttrValueProto", {func, attr_name, output_attr_value}, status))
    return;
  const auto it = func->def.attr().find(attr_name);
  if (it == func->def.attr().end()) {
    return SetStatus(status, weir::InvalidArgument("Function '", func->def.signature().name(),
                                                   "' has no attr named '", attr_name, "'."));
  }
  SetBuffer(weir::DeterministicBytes(it->second), output_attr_value);
  SetStatus(status, absl::OkStatus());
}

void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func, const TF_Function* grad,
                          TF_Status* status) {
  if (!HaveAll("TF_GraphCopyFunction", {g, func}, status)) return;
  SetStatus(status, g->Change([&](weir::Graph& graph) {
    return weir::capi::CopyFunction(graph, *func, grad);
  }));
}

int TF_GraphNumFunctions(TF_Graph* g) {
  if (!HaveAll("TF_GraphNumFunctions", {g})) return -1;
  const MutexLock lock(g->mutex);
  const auto& functions = g->graph->functions();
  return functions == nullptr ? 0 : static_cast<int>(functions->Names().size());
}

int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func, TF_Status* status) {
  if (funcs != nullptr) std::fill_n(funcs, std::max(0, max_func), nullptr);
  if (!HaveAll("TF_GraphGetFunctions", {g}, status)) return -1;
  SetStatus(status, absl::OkStatus());
  const MutexLock lock(g->mutex);
  if (g->graph->functions() == nullptr || funcs == nullptr) return 0;
  int count = 0;
  for (const std::string& name : g->graph->functions()->Names()) {
    if (count >= max_func) break;
    funcs[count++] = new TF_Function{*g->graph->functions()->FindDef(name)};
  }
  return count;
}
