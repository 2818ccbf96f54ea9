#include "weir/core/io/function_library.h"

#include <algorithm>

#include "weir/capi/function_def.h"
#include "weir/capi/objects.h"
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

// Converts the inputs or the outputs of a function.
absl::StatusOr<Outputs> EndsOf(const TF_Output* ends, int count, const Graph& graph,
                               absl::string_view kind, const char* function) {
  WEIR_RETURN_IF_ERROR(ArrayOf(ends, count, absl::StrCat(kind, "s")).status());
  Outputs converted;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<Output> end = OutputOf(ends[i], graph);
    if (end.ok() && IsRef(end->node->output_type(end->index))) {
      end = InvalidArgument("Output ", end->index, " of node '", end->node->name(),
                            "' has a reference type ",
                            DataTypeName(end->node->output_type(end->index)));
    }
    if (!end.ok()) {
      return absl::Status(
          end.status().code(),
          absl::StrCat(end.status().message(), "\n\tEncountered while processing ", kind, " ", i,
                       kind == "input" ? " into" : " from", " function '", function, "'"));
    }
    converted.push_back(*end);
  }
  return converted;
}

// Returns the nodes of a function's body: those given, or all that make no input.
absl::StatusOr<std::vector<Node*>> BodyNodes(const Graph& graph, int count,
                                             const TF_Operation* const* operations,
                                             const Outputs& inputs, const char* function) {
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
    if (!is_input) {
      nodes.push_back(node.get());
    } else if (node->num_outputs() != 1) {
      return InvalidArgument(
          "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single output. ",
          "Node ", node->name(), " has ", node->num_outputs(),
          " outputs. Encountered while creating function '", function, "'");
    }
  }
  return nodes;
}

absl::Status CopyFunction(Graph& graph, const TF_Function& function, const TF_Function* gradient) {
  proto::FunctionDefLibrary addition;
  const std::string& name = function.def.signature().name();
  *addition.add_function() = function.def;
  if (gradient != nullptr) {
    const std::string& gradient_name = gradient->def.signature().name();
    const std::string known =
        graph.functions() == nullptr ? "" : graph.functions()->GradientOf(name);
    if (!known.empty() && known != gradient_name) {
      return InvalidArgument("Cannot assign gradient function '", gradient_name, "' to '", name,
                             "' because it already has gradient function '", known, "'");
    }
    *addition.add_function() = gradient->def;
    proto::GradientDef* const def = addition.add_gradient();
    def->set_function_name(name);
    def->set_gradient_func(gradient_name);
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
    weir::capi::FunctionArguments args{.name = fn_name,
                                       .description = description == nullptr ? "" : description,
                                       .append_hash = append_hash_to_fn_name != 0,
                                       .output_names = output_names};
    WEIR_ASSIGN_OR_RETURN(args.inputs,
                          weir::capi::EndsOf(inputs, ninputs, graph, "input", fn_name));
    WEIR_ASSIGN_OR_RETURN(args.outputs,
                          weir::capi::EndsOf(outputs, noutputs, graph, "output", fn_name));
    WEIR_ASSIGN_OR_RETURN(args.nodes,
                          weir::capi::BodyNodes(graph, num_opers, opers, args.inputs, fn_name));
    WEIR_ASSIGN_OR_RETURN(function->def, weir::capi::MakeFunctionDef(args, graph));
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
  if (!weir::capi::ParseMessage(proto, proto_len, &function->def)) {
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
  if (!weir::capi::ParseMessage(proto, proto_len, &value)) {
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
  if (!HaveAll("TF_GraphCopyFunction", {g}, status)) return;
  if (func == nullptr) {
    return SetStatus(
        status, weir::InvalidArgument("'func' argument to TF_GraphCopyFunction cannot be null"));
  }
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
