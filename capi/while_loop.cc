#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/strip.h"
#include "weir/capi/objects.h"
#include "weir/core/import/edges.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/graph.pb.h"

// Loops. The caller builds the condition and the body as graphs. The loop has copies of their
// nodes, with TensorFlow's names, and nodes of control flow around them.

namespace weir::capi {

namespace {

constexpr TF_Output kUnset{nullptr, -1};

TF_Graph* NewPart(TF_Graph* parent, const std::vector<TF_Output>& inputs, const Outputs& from,
                  absl::string_view kind, TF_Output* placeholders) {
  TF_Graph* const part = TF_NewGraph();
  part->parent = parent;
  part->parent_inputs = inputs;
  const MutexLock lock(part->mutex);
  for (size_t i = 0; i < from.size(); ++i) {
    Node* const node = NodeBuilder(*part->graph, "Placeholder")
                           .Name(absl::StrCat(kind, "_input", i, "/"))
                           .Attr("dtype", from[i].dtype())
                           .Attr("shape", from[i].shape())
                           .Build();
    placeholders[i] = {OperationOf(node), 0};
  }
  return part;
}

absl::Status CheckParams(const TF_WhileParams& params) {
  if (params.cond_graph == nullptr || params.body_graph == nullptr ||
      params.cond_graph->parent == nullptr)
    return InvalidArgument("TF_WhileParams is not one of TF_NewWhile");
  if (params.cond_output.oper == nullptr)
    return InvalidArgument("TF_WhileParams `cond_output` field isn't set");
  for (int i = 0; i < params.ninputs; ++i) {
    if (params.body_outputs[i].oper == nullptr)
      return InvalidArgument("TF_WhileParams `body_outputs[", i, "]` field isn't set");
  }
  if (params.name == nullptr) return InvalidArgument("TF_WhileParams `name` field is null");
  return absl::OkStatus();
}

absl::Status CheckOutput(const TF_Output& output, const Graph& part) {
  const Node& node = *NodeOf(output.oper);
  if (&node.graph() != &part) {
    return InvalidArgument("Requested return tensor '", node.name(), ":", output.index,
                           "' not found in graph def");
  }
  if (output.index >= 0 && output.index < node.num_outputs()) return absl::OkStatus();
  return InvalidArgument("Invalid return output ", output.index, " of node '", node.name(),
                         "', which has ", node.num_outputs(), " output(s)");
}

// Writes a loop of the nodes that TensorFlow builds, in the same order, for each variable:
//
//     x -> Enter -> Merge -+-> (condition) -> LoopCond
//                     ^    |                     |
//                     |    +------> Switch <-----+
//                     |              |   '-> Exit -> the last value
//                     |          Identity
//                     |              |
//                NextIteration <- (body)
//
// TensorFlow has no Identity: nodes of the body without inputs wait for the Switch, and run once
// more than the body does, which does not end if their values are what the body returns.
class LoopWriter {
 public:
  LoopWriter(const TF_WhileParams& params, std::string name, const Outputs& inputs)
      : params_(params), inputs_(inputs) {
    options_.prefix = std::move(name);
    options_.unknown = UnknownParts::kReject;
  }

  // Adds the loop to the graph, and returns its results.
  absl::StatusOr<Outputs> AddTo(Graph& graph) {
    AddEnters();
    WEIR_RETURN_IF_ERROR(AddCondition());
    AddSwitches();
    WEIR_RETURN_IF_ERROR(AddBody());
    for (int i = 0; i < params_.ninputs; ++i) {
      Add("Exit", i, {Name("Switch", i)});
      options_.return_elements.push_back(Name("Exit", i));
    }
    return ImportGraphDef(graph, def_, options_);
  }

 private:
  // Returns the name of a node of variable i.
  static std::string Name(absl::string_view op, int i) {
    return i == 0 ? std::string(op) : absl::StrCat(op, "_", i);
  }

  proto::NodeDef* Add(absl::string_view op, int i, const std::vector<std::string>& inputs) {
    proto::NodeDef* const node = def_.add_node();
    node->set_name(Name(op, i));
    node->set_op(std::string(op));
    for (const std::string& input : inputs) node->add_input(input);
    SetAttr("T", AttrValue(inputs_[i].dtype()), node);
    return node;
  }

  static void SetAttr(const char* name, const AttrValue& value, proto::NodeDef* node) {
    AttrToProto(value, &(*node->mutable_attr())[name]);
  }

  void AddEnters() {
    for (int i = 0; i < params_.ninputs; ++i) {
      const std::string input = absl::StrCat("input_", i);
      options_.input_map[input] = inputs_[i];
      SetAttr("frame_name", AttrValue(options_.prefix), Add("Enter", i, {input}));
    }
    for (int i = 0; i < params_.ninputs; ++i) {
      SetAttr("N", AttrValue(int64_t{2}),
              Add("Merge", i, {Name("Enter", i), Name("NextIteration", i)}));
    }
  }

  absl::Status AddCondition() {
    const MutexLock lock(params_.cond_graph->mutex);
    const Graph& part = *params_.cond_graph->graph;
    WEIR_RETURN_IF_ERROR(CheckOutput(params_.cond_output, part));
    const DataType type = NodeOf(params_.cond_output.oper)->output_type(params_.cond_output.index);
    if (type != DT_BOOL) {
      return InvalidArgument("BuildWhileLoop: 'cond' argument must return a boolean output, got ",
                             DataTypeName(type));
    }
    AddPart(part, "cond", params_.cond_inputs, "Merge");
    proto::NodeDef* const condition = def_.add_node();
    condition->set_name("LoopCond");
    condition->set_op("LoopCond");
    condition->add_input(NameInLoop(params_.cond_output, "cond"));
    return absl::OkStatus();
  }

  void AddSwitches() {
    for (int i = 0; i < params_.ninputs; ++i) Add("Switch", i, {Name("Merge", i), "LoopCond"});
    for (int i = 0; i < params_.ninputs; ++i) Add("Identity", i, {Name("Switch", i) + ":1"});
  }

  absl::Status AddBody() {
    const MutexLock lock(params_.body_graph->mutex);
    const Graph& part = *params_.body_graph->graph;
    for (int i = 0; i < params_.ninputs; ++i) {
      const TF_Output& output = params_.body_outputs[i];
      WEIR_RETURN_IF_ERROR(CheckOutput(output, part));
      const DataType type = NodeOf(output.oper)->output_type(output.index);
      if (type != inputs_[i].dtype()) {
        return InvalidArgument("'", params_.name, "': input ", i, " is ",
                               DataTypeName(inputs_[i].dtype()), ", but the body returns ",
                               DataTypeName(type));
      }
    }
    AddPart(part, "body", params_.body_inputs, "Identity");
    for (int i = 0; i < params_.ninputs; ++i)
      Add("NextIteration", i, {NameInLoop(params_.body_outputs[i], "body")});
    return absl::OkStatus();
  }

  // Adds the nodes of a part, with the variables, which nodes of the op `source` have, instead of
  // its inputs. Nodes without inputs wait for the first variable.
  void AddPart(const Graph& part, const std::string& scope, const TF_Output* inputs,
               absl::string_view source) {
    variables_.clear();
    for (int i = 0; i < params_.ninputs; ++i)
      variables_[NodeOf(inputs[i].oper)->name()] = Name(source, i);
    proto::GraphDef def;
    ExportGraphDef(part, &def);
    for (proto::NodeDef& node : *def.mutable_node()) {
      if (variables_.contains(node.name())) continue;
      node.set_name(absl::StrCat(scope, "/", node.name()));
      for (std::string& input : *node.mutable_input()) input = InputInLoop(input, scope);
      if (node.input().empty()) node.add_input(absl::StrCat("^", source));
      PrefixAttrs(scope, &node);
      *def_.add_node() = std::move(node);
    }
    def_.mutable_library()->MergeFrom(def.library());
    def_.mutable_versions()->MergeFrom(def.versions());
  }

  std::string InputInLoop(const std::string& input, const std::string& scope) const {
    const InputName parsed = ParseInputName(input);
    const auto variable = variables_.find(parsed.node);
    if (variable != variables_.end())
      return absl::StrCat(parsed.control ? "^" : "", variable->second);
    return parsed.control ? absl::StrCat("^", scope, "/", parsed.node)
                          : absl::StrCat(scope, "/", input);
  }

  std::string NameInLoop(const TF_Output& output, const std::string& scope) const {
    return InputInLoop(Output(NodeOf(output.oper), output.index).name(), scope);
  }

  // Prefixes the names in the attributes of a node: of nodes, and of the frames of inner loops.
  void PrefixAttrs(const std::string& scope, proto::NodeDef* node) const {
    const auto frame = node->mutable_attr()->find("frame_name");
    if (frame != node->mutable_attr()->end())
      frame->second.set_s(absl::StrCat(options_.prefix, "/", scope, "/", frame->second.s()));
    const auto marks = node->mutable_attr()->find("_class");
    if (marks == node->mutable_attr()->end()) return;
    for (std::string& mark : *marks->second.mutable_list()->mutable_s()) {
      absl::string_view other = mark;
      if (absl::ConsumePrefix(&other, "loc:@")) mark = absl::StrCat("loc:@", scope, "/", other);
    }
  }

  const TF_WhileParams& params_;
  const Outputs& inputs_;
  ImportOptions options_;
  proto::GraphDef def_;
  absl::flat_hash_map<std::string, std::string> variables_;  // by the names of inputs of a part
};

absl::Status AddLoop(const TF_WhileParams& params, Graph& graph, TF_Output* outputs) {
  const TF_Graph& part = *params.cond_graph;
  WEIR_ASSIGN_OR_RETURN(const Outputs inputs,
                        OutputsOf(part.parent_inputs.data(), params.ninputs, graph));
  const std::string name = graph.UniqueName(params.name, false);
  WEIR_ASSIGN_OR_RETURN(const Outputs results, LoopWriter(params, name, inputs).AddTo(graph));
  for (int i = 0; i < params.ninputs; ++i) outputs[i] = HandleOf(results[i]);
  return absl::OkStatus();
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status) {
  constexpr TF_Output kUnset = weir::capi::kUnset;
  if (!HaveAll("TF_NewWhile", {g}, status))
    return {0, nullptr, nullptr, kUnset, nullptr, nullptr, nullptr, nullptr};
  absl::StatusOr<weir::Outputs> from;
  {
    const weir::MutexLock lock(g->mutex);
    from = weir::capi::OutputsOf(inputs, ninputs, *g->graph);
    if (from.ok() && from->empty())
      from = weir::InvalidArgument("TF_NewWhile() must be passed at least one input");
  }
  SetStatus(status, from.status());
  if (!from.ok()) return {0, nullptr, nullptr, kUnset, nullptr, nullptr, nullptr, nullptr};
  const std::vector<TF_Output> parent_inputs(inputs, inputs + ninputs);
  auto* const cond_inputs = new TF_Output[ninputs];
  auto* const body_inputs = new TF_Output[ninputs];
  auto* const body_outputs = new TF_Output[ninputs];
  std::fill_n(body_outputs, ninputs, kUnset);
  TF_Graph* const cond = weir::capi::NewPart(g, parent_inputs, *from, "cond", cond_inputs);
  TF_Graph* const body = weir::capi::NewPart(g, parent_inputs, *from, "body", body_inputs);
  return {ninputs, cond, cond_inputs, kUnset, body, body_inputs, body_outputs, nullptr};
}

void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs) {
  if (params != nullptr && outputs != nullptr)
    std::fill_n(outputs, std::max(0, params->ninputs), weir::capi::kUnset);
  if (!HaveAll("TF_FinishWhile", {params, outputs}, status)) return;
  absl::Status finished = weir::capi::CheckParams(*params);
  if (finished.ok()) {
    finished = params->cond_graph->parent->Change(
        [&](weir::Graph& graph) { return weir::capi::AddLoop(*params, graph, outputs); });
  }
  SetStatus(status, finished);
  TF_AbortWhile(params);
}

void TF_AbortWhile(const TF_WhileParams* params) {
  if (params == nullptr) return;
  TF_DeleteGraph(params->cond_graph);
  TF_DeleteGraph(params->body_graph);
  delete[] params->cond_inputs;
  delete[] params->body_inputs;
  delete[] params->body_outputs;
}
