#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/capi/objects.h"
#include "weir/core/import/edges.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/graph.pb.h"

// Imports. What Weir's own import does not do (unique names, default devices, control inputs for
// all) is done to the message before, and to the nodes after.

struct TF_ImportGraphDefOptions {
  std::string prefix, device;
  bool uniquify_names = false, uniquify_prefix = false;
  std::map<std::pair<std::string, int>, TF_Output> inputs;  // index -1: the control output
  std::vector<TF_Operation*> controls;
  std::vector<std::pair<std::string, int>> return_outputs;
  std::vector<std::string> return_operations;
};

struct TF_ImportGraphDefResults {
  std::vector<TF_Output> outputs;
  std::vector<TF_Operation*> operations;
  std::vector<std::string> missing;
  std::vector<const char*> missing_names;
  std::vector<int> missing_indexes;
};

namespace weir::capi {

namespace {

constexpr absl::string_view kColocationPrefix = "loc:@";

class Importer {
 public:
  Importer(Graph& graph, const TF_ImportGraphDefOptions& options, TF_ImportGraphDefResults* results)
      : graph_(graph), options_(options), results_(*results) {}

  absl::Status Import(absl::string_view bytes) {
    if (!ParseMessage(bytes, &def_)) return InvalidArgument("Invalid GraphDef");
    WEIR_RETURN_IF_ERROR(SetPrefix());
    WEIR_RETURN_IF_ERROR(SetNames());
    for (proto::NodeDef& node : *def_.mutable_node()) {
      if (node.device().empty()) node.set_device(options_.device);
    }
    WEIR_RETURN_IF_ERROR(MapInputs());
    for (const auto& [name, index] : options_.return_outputs)
      import_.return_elements.push_back(absl::StrCat(NewName(name), ":", index));
    for (const std::string& name : options_.return_operations)
      import_.return_elements.push_back(NewName(name));
    import_.unknown = UnknownParts::kReject;
    const int num_before = graph_.num_nodes();
    WEIR_ASSIGN_OR_RETURN(const Outputs returned, ImportGraphDef(graph_, def_, import_));
    WEIR_RETURN_IF_ERROR(AddControls(num_before));
    Return(returned);
    return absl::OkStatus();
  }

 private:
  absl::Status SetPrefix() {
    import_.prefix = std::string(absl::StripSuffix(options_.prefix, "/"));
    if (options_.uniquify_prefix && !import_.prefix.empty())
      import_.prefix = graph_.UniqueName(import_.prefix, false);
    return absl::OkStatus();
  }

  std::string InGraph(absl::string_view name) const {
    return import_.prefix.empty() ? std::string(name) : absl::StrCat(import_.prefix, "/", name);
  }

  // Renames nodes whose names the graph has.
  absl::Status SetNames() {
    std::set<std::string> taken;
    for (const proto::NodeDef& node : def_.node()) taken.insert(node.name());
    for (const proto::NodeDef& node : def_.node()) {
      if (graph_.FindNode(InGraph(node.name())) == nullptr) continue;
      // Within a prefix TensorFlow makes a second node of the name, which no GraphDef may have.
      if (!options_.uniquify_names && import_.prefix.empty()) {
        return InvalidArgument("Node name '", InGraph(node.name()),
                               "' already exists in the Graph");
      }
      std::string name;
      int i = 0;
      do {
        name = absl::StrCat(node.name(), "_", ++i);
      } while (graph_.FindNode(InGraph(name)) != nullptr || taken.count(name) > 0);
      taken.insert(name);
      new_names_.try_emplace(node.name(), name);
    }
    if (new_names_.empty()) return absl::OkStatus();
    for (proto::NodeDef& node : *def_.mutable_node()) {
      node.set_name(NewName(node.name()));
      for (std::string& input : *node.mutable_input()) RenameInput(&input);
      const auto marks = node.mutable_attr()->find("_class");
      if (marks == node.mutable_attr()->end()) continue;
      for (std::string& mark : *marks->second.mutable_list()->mutable_s()) {
        absl::string_view name = mark;
        if (absl::ConsumePrefix(&name, kColocationPrefix))
          mark = absl::StrCat(kColocationPrefix, NewName(name));
      }
    }
    return absl::OkStatus();
  }

  std::string NewName(absl::string_view name) const {
    const auto it = new_names_.find(name);
    return it == new_names_.end() ? std::string(name) : it->second;
  }

  void RenameInput(std::string* input) const {
    const InputName parsed = ParseInputName(*input);
    const auto it = new_names_.find(parsed.node);
    if (it == new_names_.end()) return;
    *input = parsed.control      ? absl::StrCat("^", it->second)
             : parsed.index == 0 ? it->second
                                 : absl::StrCat(it->second, ":", parsed.index);
  }

  // Maps the tensors that inputs of the message name, and reports the others.
  absl::Status MapInputs() {
    std::set<std::pair<std::string, int>> used, produced;
    for (const proto::NodeDef& node : def_.node()) {
      produced.insert({node.name(), 0});
      for (const std::string& input : node.input()) {
        const InputName parsed = ParseInputName(input);
        used.insert({std::string(parsed.node), parsed.control ? -1 : parsed.index});
      }
    }
    for (const auto& [source, to] : options_.inputs) {
      const auto& [old_name, index] = source;
      const std::string name = NewName(old_name);
      if (used.count({name, index}) == 0) {
        if (produced.count({name, 0}) == 0) AddMissing(old_name, index);
        continue;
      }
      Output output(NodeOf(to.oper));
      if (index >= 0) {
        WEIR_ASSIGN_OR_RETURN(output, OutputOf(to, graph_));
      } else if (!output.valid()) {
        return InvalidArgument("the operation for ^", name, " is null");
      }
      import_.input_map[index < 0 ? absl::StrCat("^", name) : absl::StrCat(name, ":", index)] =
          output;
    }
    return absl::OkStatus();
  }

  void AddMissing(const std::string& name, int index) {
    results_.missing.push_back(name);
    results_.missing_indexes.push_back(index);
  }

  // Lets the nodes that no other imported node precedes run after the given operations.
  absl::Status AddControls(int num_before) {
    for (Node* control : Controls()) {
      if (control == nullptr || &control->graph() != &graph_)
        return InvalidArgument("a control dependency is not of the graph");
      for (const auto& node : graph_.nodes().subspan(num_before)) {
        const auto is_new = [&](const Node* n) { return n->id() >= num_before; };
        const auto inputs = node->inputs();
        const auto controls = node->control_inputs();
        const bool follows = std::any_of(inputs.begin(), inputs.end(),
                                         [&](const Output& input) { return is_new(input.node); }) ||
                             std::any_of(controls.begin(), controls.end(), is_new);
        if (!follows) WEIR_RETURN_IF_ERROR(graph_.AddControlInput(node.get(), control));
      }
    }
    return absl::OkStatus();
  }

  std::vector<Node*> Controls() const {
    std::vector<Node*> nodes;
    for (TF_Operation* control : options_.controls) nodes.push_back(NodeOf(control));
    return nodes;
  }

  void Return(const Outputs& returned) {
    size_t i = 0;
    for (; i < options_.return_outputs.size(); ++i)
      results_.outputs.push_back({OperationOf(returned[i].node), returned[i].index});
    for (; i < returned.size(); ++i) results_.operations.push_back(OperationOf(returned[i].node));
    for (const std::string& name : results_.missing) results_.missing_names.push_back(name.c_str());
  }

  Graph& graph_;
  const TF_ImportGraphDefOptions& options_;
  TF_ImportGraphDefResults& results_;
  proto::GraphDef def_;
  ImportOptions import_;
  absl::flat_hash_map<std::string, std::string> new_names_;
};

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions() { return new TF_ImportGraphDefOptions; }

void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts) { delete opts; }

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts, const char* prefix) {
  if (HaveAll("TF_ImportGraphDefOptionsSetPrefix", {opts, prefix})) opts->prefix = prefix;
}

void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts, const char* device) {
  if (HaveAll("TF_ImportGraphDefOptionsSetDefaultDevice", {opts, device})) opts->device = device;
}

void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* opts,
                                              unsigned char uniquify_names) {
  if (HaveAll("TF_ImportGraphDefOptionsSetUniquifyNames", {opts}))
    opts->uniquify_names = uniquify_names != 0;
}

void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* opts,
                                               unsigned char uniquify_prefix) {
  if (HaveAll("TF_ImportGraphDefOptionsSetUniquifyPrefix", {opts}))
    opts->uniquify_prefix = uniquify_prefix != 0;
}

void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* opts, const char* src_name,
                                             int src_index, TF_Output dst) {
  if (HaveAll("TF_ImportGraphDefOptionsAddInputMapping", {opts, src_name}))
    opts->inputs[{src_name, src_index}] = dst;
}

void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions* opts,
                                                    const char* src_name, TF_Operation* dst) {
  if (HaveAll("TF_ImportGraphDefOptionsRemapControlDependency", {opts, src_name, dst}))
    opts->inputs[{src_name, -1}] = {dst, -1};
}

void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* opts,
                                                  TF_Operation* oper) {
  if (HaveAll("TF_ImportGraphDefOptionsAddControlDependency", {opts, oper}))
    opts->controls.push_back(oper);
}

void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* opts, const char* oper_name,
                                             int index) {
  if (HaveAll("TF_ImportGraphDefOptionsAddReturnOutput", {opts, oper_name}))
    opts->return_outputs.emplace_back(oper_name, index);
}

int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts) {
  if (!HaveAll("TF_ImportGraphDefOptionsNumReturnOutputs", {opts})) return -1;
  return static_cast<int>(opts->return_outputs.size());
}

void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts,
                                                const char* oper_name) {
  if (HaveAll("TF_ImportGraphDefOptionsAddReturnOperation", {opts, oper_name}))
    opts->return_operations.emplace_back(oper_name);
}

int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions* opts) {
  if (!HaveAll("TF_ImportGraphDefOptionsNumReturnOperations", {opts})) return -1;
  return static_cast<int>(opts->return_operations.size());
}

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* results, int* num_outputs,
                                           TF_Output** outputs) {
  if (!HaveAll("TF_ImportGraphDefResultsReturnOutputs", {results, num_outputs, outputs})) return;
  *num_outputs = static_cast<int>(results->outputs.size());
  *outputs = results->outputs.data();
}

void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* results, int* num_opers,
                                              TF_Operation*** opers) {
  if (!HaveAll("TF_ImportGraphDefResultsReturnOperations", {results, num_opers, opers})) return;
  *num_opers = static_cast<int>(results->operations.size());
  *opers = results->operations.data();
}

void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults* results,
                                                        int* num_missing_unused_input_mappings,
                                                        const char*** src_names,
                                                        int** src_indexes) {
  if (!HaveAll("TF_ImportGraphDefResultsMissingUnusedInputMappings",
               {results, num_missing_unused_input_mappings, src_names, src_indexes}))
    return;
  *num_missing_unused_input_mappings = static_cast<int>(results->missing.size());
  *src_names = results->missing_names.data();
  *src_indexes = results->missing_indexes.data();
}

void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results) { delete results; }

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(TF_Graph* graph,
                                                            const TF_Buffer* graph_def,
                                                            const TF_ImportGraphDefOptions* options,
                                                            TF_Status* status) {
  if (!HaveAll("TF_GraphImportGraphDef", {graph, graph_def}, status)) return nullptr;
  const TF_ImportGraphDefOptions defaults;
  auto results = std::make_unique<TF_ImportGraphDefResults>();
  const absl::Status imported = graph->Change([&](weir::Graph& changed) {
    return weir::capi::Importer(changed, options == nullptr ? defaults : *options, results.get())
        .Import(weir::capi::BytesOf(graph_def));
  });
  SetStatus(status, imported);
  return imported.ok() ? results.release() : nullptr;
}

void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def,
                            const TF_ImportGraphDefOptions* options, TF_Status* status) {
  TF_DeleteImportGraphDefResults(
      TF_GraphImportGraphDefWithResults(graph, graph_def, options, status));
}

void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph* graph, const TF_Buffer* graph_def,
                                             const TF_ImportGraphDefOptions* options,
                                             TF_Output* return_outputs, int num_return_outputs,
                                             TF_Status* status) {
  if (return_outputs != nullptr)
    std::fill_n(return_outputs, std::max(0, num_return_outputs), TF_Output{nullptr, -1});
  if (!HaveAll("TF_GraphImportGraphDefWithReturnOutputs", {graph, graph_def}, status)) return;
  const size_t wanted = options == nullptr ? 0 : options->return_outputs.size();
  if (num_return_outputs < 0 || static_cast<size_t>(num_return_outputs) != wanted ||
      (wanted > 0 && return_outputs == nullptr)) {
    return SetStatus(status, weir::InvalidArgument("Expected 'num_return_outputs' to be ", wanted,
                                                   ", got ", num_return_outputs));
  }
  const std::unique_ptr<TF_ImportGraphDefResults> results(
      TF_GraphImportGraphDefWithResults(graph, graph_def, options, status));
  if (results != nullptr)
    std::copy(results->outputs.begin(), results->outputs.end(), return_outputs);
}
