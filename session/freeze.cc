#include "weir/session/freeze.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/function_library.h"
#include "weir/core/graph_io.h"
#include "weir/core/proto_values.h"
#include "weir/core/resource.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/ancestors.h"
#include "weir/session/variable_use.h"

// A frozen graph is the old one's message with other nodes in it. What changes are the nodes that a
// variable's handle passes through. The handle leaves VarHandleOp, may be handed on (Identity;
// Enter and Merge of loops, Switch of conditionals; arguments of functions), and ends where
// somebody reads. In the frozen graph the value goes that way instead: VarHandleOp becomes the
// Const, a node that hands on has another type, ReadVariableOp is an Identity, and a gather from a
// variable one from a tensor. A function that is given a handle becomes another function, whose
// argument is the value and whose body has been changed likewise; the name of the old one and the
// types of its arguments are the key to it, so that one function called for two layers is made
// once.
//
// A reference variable is simpler: whoever takes its reference where a value is wanted has the
// value already, and only nodes for references (RefSwitch, ...) have another op then.
//
// What writes to a variable has no place in a graph of constants. Nobody who asks for outputs of
// inference needs such a node; where one is needed, as when a batch norm was built for training,
// the error says which.
namespace weir {
namespace {

constexpr size_t kDeepest = 100;  // functions in one another that are given variables

using Key = std::pair<std::string, std::string>;  // container and name of a variable
// By node and output: the type of the variable whose handle, or the value in its place, it is.
using Ways = std::map<std::pair<std::string, int>, DataType>;

// "a", 0 for "a"; "a", 1 for "a:1".
std::pair<std::string, int> Split(absl::string_view input) {
  const size_t colon = input.rfind(':');
  int index = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(input.substr(colon + 1), &index))
    return {std::string(input), 0};
  return {std::string(input.substr(0, colon)), index};
}

bool IsControl(absl::string_view input) { return absl::StartsWith(input, "^"); }

// "^a" for "a" and "a:1".
std::string AsControl(absl::string_view input) { return absl::StrCat("^", Split(input).first); }

bool IsResource(int wire_type) { return wire_type == static_cast<int>(proto::DT_RESOURCE); }

// Nodes that hand on a handle or a reference: all outputs are input 0, of Merge any input.
bool HandsOn(const proto::NodeDef& node) {
  absl::string_view op = node.op();
  const bool takes_reference = absl::ConsumePrefix(&op, "Ref");
  const auto type = node.attr().find("T");
  if (!takes_reference && (type == node.attr().end() || !IsResource(type->second.type())))
    return false;
  return op == "Identity" || op == "Enter" || op == "Exit" || op == "NextIteration" ||
         op == "Switch" || op == "_SwitchN" || op == "Merge";
}

// The functions that a node calls, and which of its inputs are their arguments.
struct Calls {
  std::vector<const char*> functions;  // attributes of kind func, or list(func)
  const char* types = "Tin";           // the attribute with the types of the arguments
  int first_argument = 0;
  bool is_loop = false;  // outputs are what the arguments have become
  bool counts = false;   // the function is given a number before the arguments
};
std::optional<Calls> CallsOf(absl::string_view op) {
  if (op == "PartitionedCall" || op == "StatefulPartitionedCall") return Calls{{"f"}};
  if (op == "If" || op == "StatelessIf") return Calls{{"then_branch", "else_branch"}, "Tin", 1};
  if (op == "Case" || op == "StatelessCase") return Calls{{"branches"}, "Tin", 1};
  if (op == "For") return Calls{{"body"}, "T", 3, true, true};
  if (op == "While" || op == "StatelessWhile") return Calls{{"cond", "body"}, "T", 0, true};
  return std::nullopt;
}

void SetType(DataType type, const char* attr, proto::NodeDef* node) {
  (*node->mutable_attr())[attr].set_type(static_cast<proto::DataType>(type));
}

// Keeps of the inputs the control inputs alone.
void KeepControls(proto::NodeDef* node) {
  std::vector<std::string> controls;
  absl::c_copy_if(node->input(), std::back_inserter(controls), IsControl);
  *node->mutable_input() = {controls.begin(), controls.end()};
}

// Nodes of the same name with another op, and no attributes but these.
void Become(const char* op, proto::NodeDef* node) {
  node->set_op(op);
  node->clear_attr();
}
void BecomeConstant(const Tensor& value, proto::NodeDef* node) {
  Become("Const", node);
  KeepControls(node);
  SetType(value.dtype(), "dtype", node);
  AttrToProto(AttrValue(value), &(*node->mutable_attr())["value"]);
}

// What a node is that has the value at input 0, where it had the handle of a variable of this type.
// False if it does something else than read. Nodes that it needs besides go to `more`.
bool BecomeReader(const Graph& graph, DataType type, proto::NodeDef* node,
                  std::vector<proto::NodeDef>* more) {
  const std::string op = node->op();
  const auto attr = [node](const char* name) { return node->attr().at(name); };
  if (op == "ReadVariableOp") {
    Become("Identity", node);
    SetType(type, "T", node);
  } else if (op == "ResourceGather") {
    // Its batch dimensions stand before the rows.
    const proto::AttrValue indices = attr("Tindices"), batch = attr("batch_dims");
    Become("GatherV2", node);
    SetType(type, "Tparams", node);
    SetType(DT_INT32, "Taxis", node);
    (*node->mutable_attr())["Tindices"] = indices;
    (*node->mutable_attr())["batch_dims"] = batch;
    proto::NodeDef axis;
    axis.set_name(node->name() + "/axis");
    for (int i = 1; graph.FindNode(axis.name()) != nullptr; ++i)
      axis.set_name(absl::StrCat(node->name(), "/axis_", i));
    axis.set_device(node->device());
    BecomeConstant(Tensor::Scalar(static_cast<int32_t>(batch.i())), &axis);
    axis.add_input(AsControl(node->input(0)));  // in the loop that the node is in
    node->mutable_input()->Add();
    for (int i = node->input_size() - 1; i > 2; --i) node->set_input(i, node->input(i - 1));
    node->set_input(2, axis.name());
    more->push_back(std::move(axis));
  } else if (op == "ResourceGatherNd") {
    const proto::AttrValue indices = attr("Tindices");
    Become("GatherNd", node);
    SetType(type, "Tparams", node);
    (*node->mutable_attr())["Tindices"] = indices;
  } else if (op == "VariableShape") {
    const proto::AttrValue out_type = attr("out_type");
    Become("Shape", node);
    SetType(type, "T", node);
    (*node->mutable_attr())["out_type"] = out_type;
  } else if (op == "VarIsInitializedOp" || op == "IsVariableInitialized") {
    node->set_input(0, AsControl(node->input(0)));
    BecomeConstant(Tensor::Scalar(true), node);
  } else {
    return false;
  }
  return true;
}

class Freezer {
 public:
  Freezer(Session& session, const FreezeOptions& options)
      : session_(session),
        graph_(session.graph()),
        options_(options),
        functions_(graph_.functions()) {}

  absl::StatusOr<std::unique_ptr<Graph>> Freeze(const std::vector<Operation>& wanted) {
    proto::GraphDef def;
    ExportGraphDef(graph_, &def);
    KeepNeeded(wanted, &def);
    WEIR_RETURN_IF_ERROR(ReadVariables(def));
    Ways ways;
    WEIR_RETURN_IF_ERROR(Rewrite(graph_, &def, &ways));
    def.clear_library();
    if (options_.clear_devices) {
      for (proto::NodeDef& node : *def.mutable_node()) node.clear_device();
    }
    AddFunctions(&def);
    WEIR_RETURN_IF_ERROR(CheckNoneIsLeft(def));
    auto frozen = std::make_unique<Graph>(graph_.ops());
    WEIR_RETURN_IF_ERROR(ImportAndClear(*frozen, &def).status());
    return frozen;
  }

 private:
  // The nodes that these need, and of their places those that are there.
  static void KeepNeeded(const std::vector<Operation>& wanted, proto::GraphDef* def) {
    std::vector<const Node*> roots;
    for (const Operation& each : wanted) roots.push_back(each.node);
    absl::flat_hash_set<std::string> needed;
    for (const Node* node : Ancestors(roots)) needed.insert(node->name());
    google::protobuf::RepeatedPtrField<proto::NodeDef> kept;
    for (proto::NodeDef& node : *def->mutable_node()) {
      if (!needed.contains(node.name())) continue;
      if (const auto place = node.attr().find("_class"); place != node.attr().end()) {
        auto* marks = (*node.mutable_attr())["_class"].mutable_list()->mutable_s();
        const auto is_gone = [&](absl::string_view mark) {
          return absl::ConsumePrefix(&mark, "loc:@") && !needed.contains(mark);
        };
        marks->erase(std::remove_if(marks->begin(), marks->end(), is_gone), marks->end());
        if (marks->empty()) node.mutable_attr()->erase("_class");
      }
      *kept.Add() = std::move(node);
    }
    def->mutable_node()->Swap(&kept);
  }

  // The values of the variables among these nodes, all in one step.
  absl::Status ReadVariables(const proto::GraphDef& def) {
    absl::flat_hash_map<const Node*, Output> reads;  // that wait for nothing, by the handle's node
    for (const std::unique_ptr<Node>& node : graph_.nodes()) {
      if (node->op_name() == "ReadVariableOp" && node->control_inputs().empty())
        reads.emplace(node->input(0).node, node->output());
    }
    std::vector<Key> keys;
    Outputs fetches;
    for (const proto::NodeDef& each : def.node()) {
      Node* const node = graph_.FindNode(each.name());
      if (!IsVariable(*node)) continue;
      const auto read = reads.find(node);
      keys.push_back(VariableKey(*node));
      fetches.push_back(read != reads.end() ? read->second : node->output());
    }
    if (fetches.empty()) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(Tensors values, session_.Run(fetches));
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].dtype() == DT_RESOURCE) {
        WEIR_ASSIGN_OR_RETURN(values[i], ValueBehind(values[i], fetches[i].node->name()));
      }
      values_[keys[i]] = std::move(values[i]);
    }
    return absl::OkStatus();
  }

  // Of a variable that no node of the graph reads by itself.
  static absl::StatusOr<Tensor> ValueBehind(const Tensor& handle, const std::string& name) {
    const auto state =
        std::dynamic_pointer_cast<VariableState>(handle.data<ResourceHandle>()->resource);
    if (state == nullptr || !state->on_host()) {
      return Unimplemented("Cannot freeze the variable '", name,
                           "', whose value is not in this process's memory and which no node of "
                           "the graph reads: add a ReadVariableOp");
    }
    return state->Read();
  }

  // Replaces variables by constants in nodes of a graph. `ways` has the arguments among them that
  // are handles of variables, and then all that such a handle passes through.
  absl::Status Rewrite(const Graph& graph, proto::GraphDef* def, Ways* ways) {
    for (const proto::NodeDef& node : def->node()) {
      if (const Tensor* value = ValueOf(*graph.FindNode(node.name())))
        (*ways)[{node.name(), 0}] = value->dtype();
    }
    FollowHandles(*def, ways);
    std::vector<proto::NodeDef> more;
    for (proto::NodeDef& node : *def->mutable_node())
      WEIR_RETURN_IF_ERROR(RewriteNode(graph, *ways, &node, &more));
    for (proto::NodeDef& node : more) *def->add_node() = std::move(node);
    return absl::OkStatus();
  }

  // The value of a variable that this node makes the handle or the reference of; null if it makes
  // none.
  const Tensor* ValueOf(const Node& node) const {
    if (!IsVariable(node)) return nullptr;
    const auto value = values_.find(VariableKey(node));
    return value == values_.end() ? nullptr : &value->second;
  }

  // From where handles are made along the nodes that hand them on, each edge once.
  static void FollowHandles(const proto::GraphDef& def, Ways* ways) {
    struct Taker {
      const proto::NodeDef* node;
      int output;
    };
    std::map<std::pair<std::string, int>, std::vector<Taker>> takers;
    for (const proto::NodeDef& node : def.node()) {
      const std::optional<Calls> calls = CallsOf(node.op());
      const bool is_loop = calls && calls->is_loop, hands_on = HandsOn(node);
      if (!is_loop && !hands_on) continue;
      for (int i = 0; i < node.input_size() && !IsControl(node.input(i)); ++i) {
        std::vector<Taker>& from = takers[Split(node.input(i))];
        if (is_loop && TakesHandle(*calls, node, i - calls->first_argument)) {
          from.push_back({&node, i - calls->first_argument});
        } else if (hands_on && (i == 0 || absl::EndsWith(node.op(), "Merge"))) {
          from.push_back({&node, 0});
          if (absl::EndsWith(node.op(), "Switch")) from.push_back({&node, 1});
          for (int k = 1; node.op() == "_SwitchN" && k < node.attr().at("num_outs").i(); ++k)
            from.push_back({&node, k});
        }
      }
    }
    std::vector<Ways::value_type> queue(ways->begin(), ways->end());
    while (!queue.empty()) {
      const auto [from, type] = queue.back();
      queue.pop_back();
      const auto here = takers.find(from);
      if (here == takers.end()) continue;
      for (const Taker& taker : here->second) {
        const auto [way, is_new] = ways->insert({{taker.node->name(), taker.output}, type});
        if (is_new) queue.push_back(*way);
      }
    }
  }

  // Argument i of the call is declared a handle. (Of a reference the call is given the value.)
  static bool TakesHandle(const Calls& calls, const proto::NodeDef& node, int i) {
    const auto types = node.attr().find(calls.types);
    return i >= 0 && types != node.attr().end() && i < types->second.list().type_size() &&
           IsResource(types->second.list().type(i));
  }

  // By input: the type of the variable whose handle or reference it is.
  static std::vector<std::optional<DataType>> Given(const Ways& ways, const proto::NodeDef& node) {
    std::vector<std::optional<DataType>> given;
    for (const std::string& input : node.input()) {
      if (IsControl(input)) break;
      const auto way = ways.find(Split(input));
      given.push_back(way != ways.end() ? std::optional(way->second) : std::nullopt);
    }
    return given;
  }

  // The same by argument of a call, where it takes a handle.
  static std::vector<std::optional<DataType>> Arguments(const Ways& ways, const Calls& calls,
                                                        const proto::NodeDef& node) {
    std::vector<std::optional<DataType>> given = Given(ways, node);
    given.erase(given.begin(),
                given.begin() + std::min<size_t>(calls.first_argument, given.size()));
    for (size_t i = 0; i < given.size(); ++i) {
      if (!TakesHandle(calls, node, static_cast<int>(i))) given[i].reset();
    }
    return given;
  }

  absl::Status RewriteNode(const Graph& graph, const Ways& ways, proto::NodeDef* node,
                           std::vector<proto::NodeDef>* more) {
    const Node& old = *graph.FindNode(node->name());
    if (const Tensor* value = ValueOf(old)) {
      BecomeConstant(*value, node);
      return absl::OkStatus();
    }
    const std::vector<std::optional<DataType>> given = Given(ways, *node);
    const auto first = absl::c_find_if(given, [](const auto& type) { return type.has_value(); });
    if (first == given.end()) return absl::OkStatus();
    if (HandsOn(*node)) {
      if (absl::StartsWith(node->op(), "Ref")) node->set_op(node->op().substr(3));
      if (const auto way = ways.find({node->name(), 0}); way != ways.end())
        SetType(way->second, "T", node);
      return absl::OkStatus();
    }
    if (const std::optional<Calls> calls = CallsOf(node->op()))
      return RewriteCall(ways, *calls, node);
    if (first == given.begin() && BecomeReader(graph, **first, node, more)) return absl::OkStatus();
    return TakesValues(old, given) ? absl::OkStatus() : CannotFreeze(*node);
  }

  // Where the references of variables are given, values are asked for.
  static bool TakesValues(const Node& node, const std::vector<std::optional<DataType>>& given) {
    for (size_t i = 0; i < given.size(); ++i) {
      const DataType type = node.input_type(static_cast<int>(i));
      if (given[i] && (IsRef(type) || type == DT_RESOURCE)) return false;
    }
    return true;
  }

  static absl::Status CannotFreeze(const proto::NodeDef& node) {
    const std::string label = absl::StrCat(node.name(), " (", node.op(), ")");
    if (absl::StrContains(node.op(), "Assign") || absl::StrContains(node.op(), "Apply") ||
        absl::StrContains(node.op(), "Scatter")) {
      return FailedPrecondition("Cannot freeze the graph: ", label,
                                " writes to a variable, and is needed for what is asked for. Ask "
                                "for outputs that were built for inference");
    }
    return Unimplemented("Cannot freeze the graph: ", label,
                         " uses a variable's handle, and it is not known how to give it a value");
  }

  // ---- functions

  absl::Status RewriteCall(const Ways& ways, const Calls& calls, proto::NodeDef* node) {
    const std::vector<std::optional<DataType>> arguments = Arguments(ways, calls, *node);
    if (absl::c_none_of(arguments, [](const auto& type) { return type.has_value(); }))
      return absl::OkStatus();
    for (const char* name : calls.functions) {
      proto::AttrValue& attr = (*node->mutable_attr())[name];
      if (attr.has_func()) {
        WEIR_RETURN_IF_ERROR(RewriteFunction(*node, calls, arguments, attr.mutable_func()));
      } else {
        for (proto::NameAttrList& function : *attr.mutable_list()->mutable_func())
          WEIR_RETURN_IF_ERROR(RewriteFunction(*node, calls, arguments, &function));
      }
    }
    auto* types = (*node->mutable_attr())[calls.types].mutable_list();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i])
        types->set_type(static_cast<int>(i), static_cast<proto::DataType>(*arguments[i]));
    }
    return absl::OkStatus();
  }

  // Makes the function over to one that is given values, where it was given handles.
  absl::Status RewriteFunction(const proto::NodeDef& caller, const Calls& calls,
                               std::vector<std::optional<DataType>> arguments,
                               proto::NameAttrList* function) {
    proto::AttrValue attr;
    *attr.mutable_func() = *function;
    WEIR_ASSIGN_OR_RETURN(const AttrValue value, AttrFromProto(attr));
    const FunctionRef& ref = *value.get_if<FunctionRef>();
    if (calls.counts) arguments.insert(arguments.begin(), std::nullopt);
    std::string key = FunctionKey(ref);
    for (const std::optional<DataType>& type : arguments)
      absl::StrAppend(&key, ",", type ? DataTypeName(*type) : "");
    auto made = made_.find(key);
    if (made == made_.end()) {
      if (!begun_.insert(key).second || begun_.size() - made_.size() > kDeepest) {
        return Unimplemented("Cannot freeze the graph: the function ", ref.name, ", which ",
                             caller.name(), " (", caller.op(),
                             ") gives a variable, calls itself, or is called by more than ",
                             kDeepest, " others one inside the other");
      }
      absl::StatusOr<std::string> name = MakeFunction(ref, calls, arguments);
      if (!name.ok()) return Annotate(name.status(), absl::StrCat("In the function ", ref.name));
      made = made_.emplace(key, *std::move(name)).first;
    }
    function->set_name(made->second);
    function->clear_attr();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> MakeFunction(const FunctionRef& ref, const Calls& calls,
                                           const std::vector<std::optional<DataType>>& arguments) {
    WEIR_ASSIGN_OR_RETURN(const FunctionBody body,
                          InstantiateFunction(functions_, ref, graph_.ops(), graph_.versions()));
    if (body.args.size() != arguments.size()) {
      return InvalidArgument("Function ", ref.name, " takes ", body.args.size(),
                             " arguments and is given ", arguments.size());
    }
    proto::GraphDef def;
    ExportGraphDef(*body.graph, &def);
    Ways ways;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i]) ways[{body.args[i].node->name(), 0}] = *arguments[i];
    }
    for (proto::NodeDef& node : *def.mutable_node()) {
      if (const auto way = ways.find({node.name(), 0}); way != ways.end())
        SetType(way->second, "T", &node);
    }
    WEIR_RETURN_IF_ERROR(Rewrite(*body.graph, &def, &ways));
    def.clear_library();

    Graph changed(graph_.ops());
    changed.set_functions(functions_);
    WEIR_RETURN_IF_ERROR(ImportAndClear(changed, &def).status());
    const auto same = [&](const Output& old) {
      return changed.FindNode(old.node->name())->output(old.index);
    };
    Outputs args, results;
    absl::c_transform(body.args, std::back_inserter(args), same);
    absl::c_transform(body.results, std::back_inserter(results), same);
    for (size_t i = 0; i < results.size() && !calls.is_loop; ++i) {
      if (results[i].dtype() != body.results[i].dtype())
        return Unimplemented("Cannot freeze the graph: result ", i, " is the handle of a variable");
    }
    std::vector<Operation> effects;
    for (const Operation& effect : body.effects) {
      Node* node = changed.FindNode(effect.name());
      if (node->op().stateful()) effects.push_back(node);
    }
    std::string name = ref.name + "_frozen";
    for (int i = 1; functions_->FindDef(name) != nullptr; ++i)
      name = absl::StrCat(ref.name, "_frozen_", i);
    WEIR_RETURN_IF_ERROR(DefineFunction(changed, name, changed, args, results, effects));
    functions_ = changed.functions();
    return name;
  }

  // Those that the nodes call, and that these call.
  void AddFunctions(proto::GraphDef* def) const {
    if (functions_ == nullptr) return;
    absl::flat_hash_set<std::string> needed;
    std::vector<const proto::FunctionDef*> queue;
    const auto need = [&](const std::string& name) {
      const proto::FunctionDef* function = functions_->FindDef(name);
      if (function != nullptr && needed.insert(name).second) queue.push_back(function);
    };
    const auto visit = [&](const proto::NodeDef& node) {
      need(node.op());
      for (const auto& [name, value] : node.attr()) {
        if (value.has_func()) need(value.func().name());
        for (const proto::NameAttrList& function : value.list().func()) need(function.name());
      }
    };
    for (const proto::NodeDef& node : def->node()) visit(node);
    while (!queue.empty()) {
      const proto::FunctionDef* function = queue.back();
      queue.pop_back();
      need(functions_->GradientOf(function->signature().name()));
      for (const proto::NodeDef& node : function->node_def()) visit(node);
    }
    proto::FunctionDefLibrary all;
    functions_->ToProto(&all);
    for (proto::FunctionDef& function : *all.mutable_function()) {
      if (needed.contains(function.signature().name()))
        *def->mutable_library()->add_function() = std::move(function);
    }
    for (proto::GradientDef& gradient : *all.mutable_gradient()) {
      if (needed.contains(gradient.function_name()))
        *def->mutable_library()->add_gradient() = std::move(gradient);
    }
  }

  // Of variables: those that a function makes by their names have not been met.
  static absl::Status CheckNoneIsLeft(const proto::GraphDef& def) {
    const auto check = [](const proto::NodeDef& node, absl::string_view where) {
      if (!IsVariableOp(node.op())) return absl::OkStatus();
      return Unimplemented("Cannot freeze the graph: ", node.name(), " (", node.op(), ")", where,
                           " makes a variable that is not given to it");
    };
    for (const proto::NodeDef& node : def.node()) WEIR_RETURN_IF_ERROR(check(node, ""));
    for (const proto::FunctionDef& function : def.library().function()) {
      const std::string where = absl::StrCat(" in the function ", function.signature().name());
      for (const proto::NodeDef& node : function.node_def())
        WEIR_RETURN_IF_ERROR(check(node, where));
    }
    return absl::OkStatus();
  }

  Session& session_;
  const Graph& graph_;
  const FreezeOptions& options_;
  std::shared_ptr<const FunctionLibrary> functions_;  // the graph's, and those made here
  std::map<Key, Tensor> values_;
  std::map<std::string, std::string>
      made_;                                // by function and types: the name of the one made of it
  absl::flat_hash_set<std::string> begun_;  // the same keys, before the function is made
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> FreezeGraph(Session& session, const Outputs& outputs,
                                                   const FreezeOptions& options) {
  if (outputs.empty() && options.targets.empty())
    return InvalidArgument("Cannot freeze a graph for no outputs");
  std::vector<Operation> wanted(outputs.begin(), outputs.end());
  wanted.insert(wanted.end(), options.targets.begin(), options.targets.end());
  for (const Operation& each : wanted) {
    if (!each.valid() || &each.node->graph() != &session.graph()) {
      return InvalidArgument("Cannot freeze ",
                             each.valid() ? each.name() : "an invalid element of a graph",
                             ", which is not of the session's graph");
    }
  }
  WEIR_RETURN_IF_ERROR(session.graph().status());
  return Freezer(session, options).Freeze(wanted);
}

}  // namespace weir
