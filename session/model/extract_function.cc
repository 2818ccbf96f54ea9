#include "weir/session/model/extract_function.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/proto_values.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/model/scoped_names.h"
#include "weir/session/plan/variable_use.h"

// The body of the function is the message of the graph's nodes that the results need, with a
// placeholder for each argument. Where the graph has the reference of a variable, the body has the
// handle of a resource variable: a consumer of the value reads it by a ReadVariableOp, one for each
// variable, and the forms of control flow for references become those for values. A body is for
// inference, so that one read stands for all: nodes that write to a reference are rejected.
namespace weir {
namespace {

class FunctionExtractor {
 public:
  FunctionExtractor(const Graph& graph, const FunctionPart& part, const CapturedNodes& captured)
      : graph_(graph), part_(part), captured_(captured) {
    def_.mutable_versions()->set_producer(graph.versions().producer);
  }

  absl::StatusOr<std::vector<Node*>> Define(Graph& out) {
    Collect();
    std::vector<Node*> captures(used_.begin(), used_.end());
    std::sort(captures.begin(), captures.end(),
              [](const Node* a, const Node* b) { return a->id() < b->id(); });
    std::vector<std::string> args;
    for (const auto& [name, input] : part_.inputs)
      args.push_back(AddInput(input, name, BaseType(input.dtype()), input.shape()));
    for (const Node* node : captures) {
      const DataType type = IsRef(node->output_type(0)) ? DT_RESOURCE : node->output_type(0);
      args.push_back(AddInput(node->output(), node->name(), type, Shape::UnknownRank()));
    }
    for (const std::unique_ptr<Node>& node : graph_.nodes()) {
      if (needed_.contains(node.get())) WEIR_RETURN_IF_ERROR(AddNode(*node));
    }
    Outputs results;
    std::vector<std::string> result_names;
    for (const Output& result : part_.results) result_names.push_back(ValueName(result));

    Graph body(out.ops());
    body.set_functions(out.functions());
    WEIR_RETURN_IF_ERROR(
        ImportAndClear(body, &def_, {.unknown = UnknownParts::kKeepQuietly}).status());
    for (const std::string& name : result_names) {
      WEIR_ASSIGN_OR_RETURN(results.emplace_back(), body.FindOutput(name));
    }
    if (results.empty()) results.push_back(Const(body, int32_t{1}));
    Outputs arguments;
    for (const std::string& name : args) arguments.push_back(body.FindNode(name)->output());
    std::vector<Operation> effects;
    for (const Operation& effect : part_.effects) effects.push_back(body.FindNode(effect.name()));
    WEIR_RETURN_IF_ERROR(DefineFunction(out, part_.name, body, arguments, results, effects));
    return captures;
  }

 private:
  using TensorKey = std::pair<const Node*, int>;

  bool IsInput(const Node* node, int index) const {
    return std::any_of(part_.inputs.begin(), part_.inputs.end(), [&](const auto& input) {
      return input.second.node == node && input.second.index == index;
    });
  }

  // Finds the nodes that the results need, up to the inputs and to what is captured.
  void Collect() {
    std::vector<const Node*> queue;
    const auto visit = [&](const Node* node) {
      if (const auto found = captured_.find(node); found != captured_.end()) {
        used_.insert(found->second);
      } else if (needed_.insert(node).second) {
        queue.push_back(node);
      }
    };
    const auto visit_value = [&](const Output& value) {
      if (!IsInput(value.node, value.index)) visit(value.node);
    };
    for (const Output& result : part_.results) visit_value(result);
    for (const Operation& effect : part_.effects) visit(effect.node);
    while (!queue.empty()) {
      const Node* const node = queue.back();
      queue.pop_back();
      for (const Output& input : node->inputs()) visit_value(input);
      for (const Node* control : node->control_inputs()) {
        if (!IsInput(control, 0) && captured_.count(control) == 0) visit(control);
      }
    }
  }

  // Returns a name that no node of the graph or of the body has.
  std::string NewName(absl::string_view wanted) {
    std::string name = UnusedName(AsNodeName(wanted), [this](const std::string& candidate) {
      const Node* const node = graph_.FindNode(candidate);
      return (node != nullptr && needed_.contains(node)) || names_.contains(candidate);
    });
    names_.insert(name);
    return name;
  }

  std::string AddInput(const Output& value, absl::string_view wanted, DataType type,
                       const Shape& shape) {
    const std::string name = NewName(wanted);
    proto::NodeDef& node = *def_.add_node();
    node.set_name(name);
    node.set_op("Placeholder");
    AttrToProto(AttrValue(type), &(*node.mutable_attr())["dtype"]);
    AttrToProto(AttrValue(shape), &(*node.mutable_attr())["shape"]);
    arguments_[{value.node, value.index}] = name;
    return name;
  }

  // Returns the name of an argument in the body; null for another tensor.
  const std::string* ArgumentFor(const Output& value) const {
    const auto found = captured_.find(value.node);
    const auto argument =
        arguments_.find(found != captured_.end() && !IsInput(value.node, value.index)
                            ? TensorKey(found->second, 0)
                            : TensorKey(value.node, value.index));
    return argument == arguments_.end() ? nullptr : &argument->second;
  }

  // Returns the name of a tensor in the body, where a reference of the graph is its value.
  std::string ValueName(const Output& value) {
    const std::string* const argument = ArgumentFor(value);
    if (argument == nullptr) return value.name();
    if (IsVariable(*value.node) && IsRef(value.node->output_type(0)) &&
        !IsInput(value.node, value.index))
      return ReadOf(*value.node, *argument);
    return *argument;
  }

  std::string ReadOf(const Node& variable, const std::string& handle) {
    std::string& name = reads_[handle];
    if (!name.empty()) return name;
    name = NewName(absl::StrCat(variable.name(), "/ReadVariableOp"));
    proto::NodeDef& node = *def_.add_node();
    node.set_name(name);
    node.set_op("ReadVariableOp");
    node.add_input(handle);
    AttrToProto(AttrValue(BaseType(variable.output_type(0))), &(*node.mutable_attr())["dtype"]);
    return name;
  }

  absl::Status AddNode(const Node& node) {
    if (node.op().traits().placeholder) {
      return InvalidArgument("the function '", part_.name, "' depends on ", node.Label(),
                             ", which is not one of its inputs");
    }
    proto::NodeDef& def = *def_.add_node();  // stays in place when others are added
    NodeToProto(node, &def);
    def.clear_input();
    def.mutable_attr()->erase("_class");  // may name nodes that are not in the body
    bool takes_handle = false;
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (!IsRef(node.input_type(i))) continue;
      WEIR_RETURN_IF_ERROR(ReplaceReferenceOp(node, &def));
      takes_handle = node.op().traits().variable_use == VariableUse::kTests;
      break;
    }
    for (const Output& input : node.inputs()) {
      const std::string* const argument = takes_handle ? ArgumentFor(input) : nullptr;
      def.add_input(argument != nullptr ? *argument : ValueName(input));
    }
    for (const Node* control : node.control_inputs()) {
      if (needed_.contains(control)) def.add_input(absl::StrCat("^", control->name()));
    }
    return absl::OkStatus();
  }

  // Replaces an op that takes a reference by the one that takes a value, or a handle.
  absl::Status ReplaceReferenceOp(const Node& node, proto::NodeDef* def) const {
    const OpTraits& traits = node.op().traits();
    if (traits.variable_use == VariableUse::kTests) {
      def->set_op("VarIsInitializedOp");
      def->clear_attr();
      return absl::OkStatus();
    }
    const bool forwards =
        traits.movement == Movement::kIdentity || traits.control_flow != ControlFlow::kNone;
    if (forwards && absl::StartsWith(node.op_name(), "Ref")) {
      def->set_op(node.op_name().substr(3));
      return absl::OkStatus();
    }
    if (traits.writes_variables()) {
      return FailedPrecondition("the function '", part_.name, "' needs ", node.Label(),
                                ", which writes to a reference variable. Request outputs that were "
                                "built for inference, or build the graph with resource variables");
    }
    return Unimplemented("the function '", part_.name, "' needs ", node.Label(),
                         ", which uses a reference in a way that a function cannot");
  }

  const Graph& graph_;
  const FunctionPart& part_;
  const CapturedNodes& captured_;
  absl::flat_hash_set<const Node*> needed_;     // the nodes of the body
  std::set<Node*> used_;                        // the captured nodes that these need
  absl::flat_hash_set<std::string> names_;      // of the body's other nodes
  std::map<TensorKey, std::string> arguments_;  // the nodes that stand for tensors of the graph
  std::map<std::string, std::string> reads_;    // by handle: the node that reads the variable
  proto::GraphDef def_;
};

}  // namespace

absl::StatusOr<std::vector<Node*>> ExtractFunction(const Graph& graph, const FunctionPart& part,
                                                   const CapturedNodes& captured, Graph& out) {
  return FunctionExtractor(graph, part, captured).Define(out);
}

}  // namespace weir
