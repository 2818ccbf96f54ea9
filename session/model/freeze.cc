#include "weir/session/model/freeze.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/import/edges.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/runtime/resource.h"
#include "weir/kernels/containers/lookup_table.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/model/captured_objects.h"
#include "weir/session/model/constant_node.h"
#include "weir/session/model/dead_branches.h"
#include "weir/session/model/needed_functions.h"
#include "weir/session/model/unneeded_writes.h"
#include "weir/session/model/variable_values.h"
#include "weir/session/plan/variable_use.h"

// A frozen graph is the message of the old one with some nodes replaced: the nodes that a
// variable's handle passes through. The handle starts at VarHandleOp, may be forwarded (Identity;
// Enter and Merge of loops, Switch of conditionals; arguments of functions), and ends at the ops
// that read. In the frozen graph the value takes the place of the handle: VarHandleOp becomes the
// Const, a forwarding node has another type, ReadVariableOp becomes an Identity, and a gather from
// a variable a gather from a tensor. A function that takes a handle is replaced by another
// function, whose argument is the value and whose body is rewritten in the same way. The key of the
// new function is the name of the old one and the types of its arguments, so that a function that
// two layers call is frozen once.
//
// A reference variable is simpler: a node that takes its reference where a value is expected has
// the value already, and only nodes for references (RefSwitch, ...) need another op.
//
// A node that writes to a variable has no place in a graph of constants. Outputs of inference need
// no such node, except for an order that nobody can see (unneeded_writes.h); where one is needed,
// as when a batch norm was built for training, the error names it.
namespace weir {
namespace {

constexpr size_t kMaxDepth = 100;  // of nested functions that take variables

using Key = std::pair<std::string, std::string>;  // container and name of a variable
// By node and output: the type of the variable, where the output is its handle or the value that
// replaces the handle.
using HandleTypes = std::map<std::pair<std::string, int>, DataType>;

// What the nodes of a graph, or of the functions that they call, do with variables; by name in the
// graph. The arguments of a function have the names of its parameters' nodes.
struct VariableUses {
  std::set<std::string> taken;  // their values matter
  std::set<std::string> lost;   // they have lost a write (unneeded_writes.h)
};
// The same for the arguments of a function, by index.
struct ArgumentUses {
  std::set<int> taken, lost;
};

// Returns {"a", 0} for "a" and "^a", and {"a", 1} for "a:1".
std::pair<std::string, int> Split(absl::string_view input) {
  const InputName name = ParseInputName(input);
  return {std::string(name.node), name.index};
}

bool IsControl(absl::string_view input) { return absl::StartsWith(input, "^"); }

// Returns "^a" for "a" and "a:1".
std::string AsControl(absl::string_view input) { return absl::StrCat("^", Split(input).first); }

bool IsResource(int wire_type) { return wire_type == static_cast<int>(proto::DT_RESOURCE); }

// True for nodes that forward a handle or a reference: all outputs are input 0; of Merge, any
// input.
bool ForwardsHandle(const proto::NodeDef& node) {
  const auto type = node.attr().find("T");
  if (!absl::StartsWith(node.op(), "Ref") &&
      (type == node.attr().end() || !IsResource(type->second.type()))) {
    return false;
  }
  const OpTraits& traits = BuiltinOps().TraitsOf(node.op());
  const ControlFlow flow = traits.control_flow;
  return traits.movement == Movement::kIdentity ||
         (flow != ControlFlow::kNone && flow != ControlFlow::kLoopCond);
}

// Returns null for an op that calls no functions.
const FunctionCalls* CallsOf(const std::string& op) { return BuiltinOps().TraitsOf(op).calls; }

void SetType(DataType type, const char* attr, proto::NodeDef* node) {
  (*node->mutable_attr())[attr].set_type(static_cast<proto::DataType>(type));
}

// Replaces the op of a node, which keeps its name, and removes its attributes.
void ChangeOp(const char* op, proto::NodeDef* node) {
  node->set_op(op);
  node->clear_attr();
}

// Rewrites a node that read a variable of this type through the handle at input 0, now that this
// input is the value. Returns false if the node does anything else than read. Additional nodes that
// it needs are appended to `more`.
bool ReplaceRead(const Graph& graph, DataType type, proto::NodeDef* node,
                 std::vector<proto::NodeDef>* more) {
  const std::string op = node->op();
  const VariableUse use = BuiltinOps().TraitsOf(op).variable_use;
  const auto attr = [node](const char* name) { return node->attr().at(name); };
  if (use == VariableUse::kReads) {
    ChangeOp("Identity", node);
    SetType(type, "T", node);
  } else if (op == "ResourceGather") {
    // The batch dimensions precede the rows.
    const proto::AttrValue indices = attr("Tindices"), batch = attr("batch_dims");
    ChangeOp("GatherV2", node);
    SetType(type, "Tparams", node);
    SetType(DT_INT32, "Taxis", node);
    (*node->mutable_attr())["Tindices"] = indices;
    (*node->mutable_attr())["batch_dims"] = batch;
    proto::NodeDef axis;
    axis.set_name(node->name() + "/axis");
    for (int i = 1; graph.FindNode(axis.name()) != nullptr; ++i)
      axis.set_name(absl::StrCat(node->name(), "/axis_", i));
    axis.set_device(node->device());
    ReplaceByConst(Tensor::Scalar(static_cast<int32_t>(batch.i())), &axis);
    axis.add_input(AsControl(node->input(0)));  // in the loop that the node is in
    node->mutable_input()->Add();
    for (int i = node->input_size() - 1; i > 2; --i) node->set_input(i, node->input(i - 1));
    node->set_input(2, axis.name());
    more->push_back(std::move(axis));
  } else if (op == "ResourceGatherNd") {
    const proto::AttrValue indices = attr("Tindices");
    ChangeOp("GatherNd", node);
    SetType(type, "Tparams", node);
    (*node->mutable_attr())["Tindices"] = indices;
  } else if (use == VariableUse::kReadsShape) {
    const proto::AttrValue out_type = attr("out_type");
    ChangeOp("Shape", node);
    SetType(type, "T", node);
    (*node->mutable_attr())["out_type"] = out_type;
  } else if (use == VariableUse::kTests) {
    node->set_input(0, AsControl(node->input(0)));
    ReplaceByConst(Tensor::Scalar(true), node);
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
    std::vector<proto::NodeDef> more;
    SetValues(&def, &more);
    PruneUnneeded(wanted, &def);
    WEIR_RETURN_IF_ERROR(ReadVariables(def));
    WEIR_RETURN_IF_ERROR(CheckTables(def));
    HandleTypes handles;
    WantedNodes nodes;
    for (const Operation& each : wanted) nodes.values.push_back(each.node->name());
    WEIR_RETURN_IF_ERROR(Rewrite(graph_, nodes, &def, &handles).status());
    for (proto::NodeDef& node : more) *def.add_node() = std::move(node);
    def.clear_library();
    if (options_.clear_devices) {
      for (proto::NodeDef& node : *def.mutable_node()) node.clear_device();
    }
    AddFunctions(&def);
    WEIR_RETURN_IF_ERROR(CheckNoVariableLeft(def));
    auto frozen = std::make_unique<Graph>(graph_.ops());
    WEIR_RETURN_IF_ERROR(ImportAndClear(*frozen, &def).status());
    return frozen;
  }

 private:
  // Replaces nodes by constants, and the conditionals that they decide by a branch.
  void SetValues(proto::GraphDef* def, std::vector<proto::NodeDef>* more) {
    if (options_.values.empty()) return;
    for (const auto& [output, value] : options_.values) set_values_[output.node->name()] = &value;
    for (proto::NodeDef& node : *def->mutable_node()) {
      const auto value = set_values_.find(node.name());
      if (value != set_values_.end()) ReplaceByConst(*value->second, &node);
    }
    ReplaceConstantConditionals(def, more);
  }

  // Returns the names of these nodes and of all nodes that they depend on.
  static absl::flat_hash_set<std::string> NeededBy(const std::vector<Operation>& wanted,
                                                   const proto::GraphDef& def) {
    absl::flat_hash_map<absl::string_view, const proto::NodeDef*> nodes;
    for (const proto::NodeDef& node : def.node()) nodes[node.name()] = &node;
    absl::flat_hash_set<std::string> needed;
    std::vector<std::string> stack;
    for (const Operation& each : wanted) stack.push_back(each.node->name());
    while (!stack.empty()) {
      const std::string name = std::move(stack.back());
      stack.pop_back();
      const auto node = nodes.find(name);
      if (node == nodes.end() || !needed.insert(name).second) continue;
      for (const std::string& input : node->second->input()) stack.push_back(Split(input).first);
    }
    return needed;
  }

  // Removes the nodes that `wanted` does not need, and colocations with removed nodes.
  static void PruneUnneeded(const std::vector<Operation>& wanted, proto::GraphDef* def) {
    const absl::flat_hash_set<std::string> needed = NeededBy(wanted, *def);
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

  // Reads the values of the variables among these nodes.
  absl::Status ReadVariables(const proto::GraphDef& def) {
    std::vector<Node*> variables;
    for (const proto::NodeDef& each : def.node()) {
      Node* const node = graph_.FindNode(each.name());
      if (IsVariable(*node)) variables.push_back(node);
    }
    WEIR_ASSIGN_OR_RETURN(Tensors values, weir::ReadVariables(session_, variables));
    for (size_t i = 0; i < values.size(); ++i)
      values_[VariableKey(*variables[i])] = std::move(values[i]);
    return absl::OkStatus();
  }

  // Replaces the variables in the nodes of a graph by constants. On entry `handles` has the
  // arguments that are handles of variables; on return, all outputs that such a handle passes
  // through.
  absl::StatusOr<VariableUses> Rewrite(const Graph& graph, const WantedNodes& wanted,
                                       proto::GraphDef* def, HandleTypes* handles) {
    for (const proto::NodeDef& node : def->node()) {
      if (const Tensor* value = ValueOf(*graph.FindNode(node.name())))
        (*handles)[{node.name(), 0}] = value->dtype();
    }
    const auto is_variable = [&](const std::string& node) { return handles->contains({node, 0}); };
    VariableUses uses;
    uses.lost = RemoveUnneededWrites(
        graph, wanted, is_variable,
        [&](const proto::NodeDef& write) { return WritesValue(graph, write); }, def);
    FollowHandles(*def, handles);
    std::vector<proto::NodeDef> more;
    for (proto::NodeDef& node : *def->mutable_node())
      WEIR_RETURN_IF_ERROR(RewriteNode(graph, *handles, &node, &more));
    WEIR_RETURN_IF_ERROR(AddUses(graph, *def, is_variable, &uses));
    for (proto::NodeDef& node : more) *def->add_node() = std::move(node);
    return uses;
  }

  // Adds what rewritten nodes do with variables. Returns an error if a function has lost a write to
  // one whose value matters elsewhere.
  absl::Status AddUses(const Graph& graph, const proto::GraphDef& def,
                       absl::FunctionRef<bool(const std::string&)> is_variable,
                       VariableUses* uses) const {
    HandleSources sources(graph);
    bool takes_any = false;
    for (const proto::NodeDef& node : def.node()) {
      const FunctionCalls* const calls = CallsOf(node.op());
      const ArgumentUses of_call = calls != nullptr ? UsesOfCall(*calls, node) : ArgumentUses();
      for (int i = 0; i < node.input_size() && !IsControl(node.input(i)); ++i) {
        const HandleSource source = sources.Of(node.input(i));
        const bool is_argument = calls != nullptr && i >= calls->first_argument;
        const bool is_taken = !is_argument || of_call.taken.contains(i);
        takes_any = takes_any || (source.is_any && is_taken);
        if (!is_variable(source.node)) continue;
        if (is_taken) uses->taken.insert(source.node);
        if (of_call.lost.contains(i)) uses->lost.insert(source.node);
      }
    }
    for (const std::string& variable : uses->lost) {
      if (!takes_any && !uses->taken.contains(variable)) continue;
      return FailedPrecondition("Cannot freeze the graph: a function writes to the variable ",
                                variable,
                                ", and the requested outputs depend on it. Request outputs that "
                                "were built for inference");
    }
    return absl::OkStatus();
  }

  // Returns the uses by the functions of a call, by input of the node. A loop passes its variables
  // on from one iteration to the next, so what holds for one of them is taken to hold for all.
  ArgumentUses UsesOfCall(const FunctionCalls& calls, const proto::NodeDef& node) const {
    ArgumentUses uses;
    const auto add = [&](const proto::NameAttrList& function) {
      const auto known = argument_uses_.find(function.name());
      if (known == argument_uses_.end()) return;
      const int offset = calls.first_argument - (calls.takes_index ? 1 : 0);
      for (const int i : known->second.taken) uses.taken.insert(i + offset);
      for (const int i : known->second.lost) uses.lost.insert(i + offset);
    };
    for (const char* name : calls.functions) {
      const proto::AttrValue& attr = node.attr().at(name);
      if (attr.has_func()) add(attr.func());
      for (const proto::NameAttrList& function : attr.list().func()) add(function);
    }
    if (!calls.is_loop) return uses;
    for (std::set<int>* set : {&uses.taken, &uses.lost}) {
      for (int i = 0; i < node.input_size() && !set->empty(); ++i) set->insert(i);
    }
    return uses;
  }

  // Returns an error for a table with entries that nothing puts into the frozen graph's table.
  absl::Status CheckTables(const proto::GraphDef& def) {
    if (!options_.targets.empty()) return absl::OkStatus();  // which may fill it
    Outputs handles;
    for (const proto::NodeDef& each : def.node()) {
      const Node& node = *graph_.FindNode(each.name());
      if (IsTable(node)) handles.push_back(node.output(0));
    }
    if (handles.empty()) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const Tensors values, session_.Run(handles));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto table =
          std::dynamic_pointer_cast<LookupTable>(values[i].data<ResourceHandle>()->resource);
      if (table == nullptr || table->is_initializable() || table->size() == 0) continue;
      return FailedPrecondition(
          "Cannot freeze the graph: the table ", handles[i].node->name(), " (",
          handles[i].node->op_name(), ") has ", table->size(),
          " entries, and no node of a GraphDef would fill it again: keep a node that does (a "
          "target), or write a SavedModel");
    }
    return absl::OkStatus();
  }

  // True if the write assigns the value that the variable has in the frozen graph.
  bool WritesValue(const Graph& graph, const proto::NodeDef& write) const {
    const Node& node = *graph.FindNode(write.name());
    if (node.op().traits().variable_use != VariableUse::kReplaces || write.input_size() < 2)
      return false;
    const Tensor* const value = ValueOf(*node.input(0).node);
    const auto constant = set_values_.find(std::string(ParseInputName(write.input(1)).node));
    return value != nullptr && constant != set_values_.end() &&
           IdenticalTensors(*value, *constant->second);
  }

  // Returns the value of the variable whose handle or reference the node creates; null for other
  // nodes.
  const Tensor* ValueOf(const Node& node) const {
    if (!IsVariable(node)) return nullptr;
    const auto value = values_.find(VariableKey(node));
    return value == values_.end() ? nullptr : &value->second;
  }

  // Propagates handles from the nodes that create them along the nodes that forward them; visits
  // each edge once.
  static void FollowHandles(const proto::GraphDef& def, HandleTypes* handles) {
    struct Forwarder {
      const proto::NodeDef* node;
      int output;
    };
    std::map<std::pair<std::string, int>, std::vector<Forwarder>> forwarders;
    for (const proto::NodeDef& node : def.node()) {
      const FunctionCalls* calls = CallsOf(node.op());
      const bool is_loop = calls && calls->is_loop, forwards = ForwardsHandle(node);
      const ControlFlow flow = BuiltinOps().TraitsOf(node.op()).control_flow;
      if (!is_loop && !forwards) continue;
      for (int i = 0; i < node.input_size() && !IsControl(node.input(i)); ++i) {
        std::vector<Forwarder>& from = forwarders[Split(node.input(i))];
        if (is_loop && TakesHandle(*calls, node, i - calls->first_argument)) {
          from.push_back({&node, i - calls->first_argument});
        } else if (forwards && (i == 0 || flow == ControlFlow::kMerge)) {
          from.push_back({&node, 0});
          const auto outputs = node.attr().find("num_outs");
          const int64_t count = flow != ControlFlow::kSwitch   ? 1
                                : outputs == node.attr().end() ? 2
                                                               : outputs->second.i();
          for (int k = 1; k < count; ++k) from.push_back({&node, k});
        }
      }
    }
    std::vector<HandleTypes::value_type> queue(handles->begin(), handles->end());
    while (!queue.empty()) {
      const auto [from, type] = queue.back();
      queue.pop_back();
      const auto here = forwarders.find(from);
      if (here == forwarders.end()) continue;
      for (const Forwarder& forwarder : here->second) {
        const auto [handle, is_new] =
            handles->insert({{forwarder.node->name(), forwarder.output}, type});
        if (is_new) queue.push_back(*handle);
      }
    }
  }

  // True if argument i of the call is declared a handle. (For a reference, the call takes the
  // value.)
  static bool TakesHandle(const FunctionCalls& calls, const proto::NodeDef& node, int i) {
    const auto types = node.attr().find(calls.types);
    return i >= 0 && types != node.attr().end() && i < types->second.list().type_size() &&
           IsResource(types->second.list().type(i));
  }

  // Returns, by input, the type of the variable whose handle or reference it is.
  static std::vector<std::optional<DataType>> InputHandleTypes(const HandleTypes& handles,
                                                               const proto::NodeDef& node) {
    std::vector<std::optional<DataType>> handle_types;
    for (const std::string& input : node.input()) {
      if (IsControl(input)) break;
      const auto handle = handles.find(Split(input));
      handle_types.push_back(handle != handles.end() ? std::optional(handle->second)
                                                     : std::nullopt);
    }
    return handle_types;
  }

  // The same by argument of a call, for arguments that are handles.
  static std::vector<std::optional<DataType>> Arguments(const HandleTypes& handles,
                                                        const FunctionCalls& calls,
                                                        const proto::NodeDef& node) {
    std::vector<std::optional<DataType>> handle_types = InputHandleTypes(handles, node);
    handle_types.erase(
        handle_types.begin(),
        handle_types.begin() + std::min<size_t>(calls.first_argument, handle_types.size()));
    for (size_t i = 0; i < handle_types.size(); ++i) {
      if (!TakesHandle(calls, node, static_cast<int>(i))) handle_types[i].reset();
    }
    return handle_types;
  }

  absl::Status RewriteNode(const Graph& graph, const HandleTypes& handles, proto::NodeDef* node,
                           std::vector<proto::NodeDef>* more) {
    const Node& old = *graph.FindNode(node->name());
    if (const Tensor* value = ValueOf(old)) {
      ReplaceByConst(*value, node);
      return absl::OkStatus();
    }
    const std::vector<std::optional<DataType>> handle_types = InputHandleTypes(handles, *node);
    const auto first =
        absl::c_find_if(handle_types, [](const auto& type) { return type.has_value(); });
    if (first == handle_types.end()) return absl::OkStatus();
    if (ForwardsHandle(*node)) {
      if (absl::StartsWith(node->op(), "Ref")) node->set_op(node->op().substr(3));
      if (const auto handle = handles.find({node->name(), 0}); handle != handles.end())
        SetType(handle->second, "T", node);
      return absl::OkStatus();
    }
    if (const FunctionCalls* calls = CallsOf(node->op())) return RewriteCall(handles, *calls, node);
    if (first == handle_types.begin() && ReplaceRead(graph, **first, node, more))
      return absl::OkStatus();
    return TakesValues(old, handle_types) ? absl::OkStatus() : CannotFreeze(*node);
  }

  // True if no input that gets a variable's value is declared a reference or a handle.
  static bool TakesValues(const Node& node,
                          const std::vector<std::optional<DataType>>& handle_types) {
    for (size_t i = 0; i < handle_types.size(); ++i) {
      const DataType type = node.input_type(static_cast<int>(i));
      if (handle_types[i] && (IsRef(type) || type == DT_RESOURCE)) return false;
    }
    return true;
  }

  static absl::Status CannotFreeze(const proto::NodeDef& node) {
    const std::string label = absl::StrCat(node.name(), " (", node.op(), ")");
    if (BuiltinOps().TraitsOf(node.op()).writes_variables()) {
      return FailedPrecondition("Cannot freeze the graph: ", label,
                                " writes to a variable, and the requested outputs depend on it. "
                                "Request outputs that were built for inference");
    }
    return Unimplemented("Cannot freeze the graph: ", label,
                         " uses a variable's handle in a way that a constant cannot replace");
  }

  // ---- functions

  absl::Status RewriteCall(const HandleTypes& handles, const FunctionCalls& calls,
                           proto::NodeDef* node) {
    const std::vector<std::optional<DataType>> arguments = Arguments(handles, calls, *node);
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

  // Replaces the function by one that takes values in the place of handles.
  absl::Status RewriteFunction(const proto::NodeDef& caller, const FunctionCalls& calls,
                               std::vector<std::optional<DataType>> arguments,
                               proto::NameAttrList* function) {
    proto::AttrValue attr;
    *attr.mutable_func() = *function;
    WEIR_ASSIGN_OR_RETURN(const AttrValue value, AttrFromProto(attr));
    const FunctionRef& ref = *value.get_if<FunctionRef>();
    if (calls.takes_index) arguments.insert(arguments.begin(), std::nullopt);
    std::string key = FunctionKey(ref);
    for (const std::optional<DataType>& type : arguments)
      absl::StrAppend(&key, ",", type ? DataTypeName(*type) : "");
    auto frozen = frozen_functions_.find(key);
    if (frozen == frozen_functions_.end()) {
      if (!started_.insert(key).second || started_.size() - frozen_functions_.size() > kMaxDepth) {
        return Unimplemented("Cannot freeze the graph: the function ", ref.name, ", which ",
                             caller.name(), " (", caller.op(),
                             ") passes a variable, is recursive or is nested more than ", kMaxDepth,
                             " deep");
      }
      absl::StatusOr<std::string> name = FreezeFunction(ref, calls, arguments);
      if (!name.ok()) return Annotate(name.status(), absl::StrCat("In the function ", ref.name));
      frozen = frozen_functions_.emplace(key, *std::move(name)).first;
    }
    function->set_name(frozen->second);
    function->clear_attr();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> FreezeFunction(
      const FunctionRef& ref, const FunctionCalls& calls,
      const std::vector<std::optional<DataType>>& arguments) {
    WEIR_ASSIGN_OR_RETURN(const FunctionBody body,
                          InstantiateFunction(functions_, ref, graph_.ops(), graph_.versions()));
    if (body.args.size() != arguments.size()) {
      return InvalidArgument("Function ", ref.name, " takes ", body.args.size(),
                             " arguments but got ", arguments.size());
    }
    proto::GraphDef def;
    ExportGraphDef(*body.graph, &def);
    HandleTypes handles;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i]) handles[{body.args[i].node->name(), 0}] = *arguments[i];
    }
    for (proto::NodeDef& node : *def.mutable_node()) {
      if (const auto handle = handles.find({node.name(), 0}); handle != handles.end())
        SetType(handle->second, "T", &node);
    }
    WantedNodes wanted;
    for (const Output& each : body.args) wanted.values.push_back(each.node->name());
    for (const Output& each : body.results) wanted.values.push_back(each.node->name());
    for (const Operation& each : body.effects) wanted.effects.push_back(each.name());
    WEIR_ASSIGN_OR_RETURN(const VariableUses uses, Rewrite(*body.graph, wanted, &def, &handles));
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
      if (node != nullptr && node->op().stateful()) effects.push_back(node);
    }
    std::string name = ref.name + "_frozen";
    for (int i = 1; functions_->FindDef(name) != nullptr; ++i)
      name = absl::StrCat(ref.name, "_frozen_", i);
    WEIR_RETURN_IF_ERROR(DefineFunction(changed, name, changed, args, results, effects));
    functions_ = changed.functions();
    ArgumentUses& arguments_of_name = argument_uses_[name];
    for (int i = 0; i < static_cast<int>(body.args.size()); ++i) {
      const std::string& arg = body.args[i].node->name();
      if (uses.taken.contains(arg)) arguments_of_name.taken.insert(i);
      if (uses.lost.contains(arg)) arguments_of_name.lost.insert(i);
    }
    return name;
  }

  // Adds the functions that the nodes call, and the functions that these call.
  void AddFunctions(proto::GraphDef* def) const {
    if (functions_ == nullptr) return;
    functions_->ToProto(def->mutable_library());
    def->mutable_library()->clear_registered_gradients();
    RemoveUnneededFunctions({}, def);
  }

  // Returns an error if variables are left: those that a function creates by name are not replaced.
  static absl::Status CheckNoVariableLeft(const proto::GraphDef& def) {
    const auto check = [](const proto::NodeDef& node, absl::string_view where) {
      if (BuiltinOps().TraitsOf(node.op()).variable_use != VariableUse::kDeclares)
        return absl::OkStatus();
      return Unimplemented("Cannot freeze the graph: ", node.name(), " (", node.op(), ")", where,
                           " creates a variable that is not passed to it");
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
  std::shared_ptr<const FunctionLibrary> functions_;            // the graph's, and the frozen ones
  absl::flat_hash_map<std::string, const Tensor*> set_values_;  // of the options, by node
  std::map<Key, Tensor> values_;
  std::map<std::string, std::string>
      frozen_functions_;  // by function and types: the name of the frozen function
  std::map<std::string, ArgumentUses> argument_uses_;  // by name of the frozen function
  absl::flat_hash_set<std::string>
      started_;  // the same keys, including functions that are not finished
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> FreezeGraph(Session& session, const Outputs& outputs,
                                                   const FreezeOptions& options) {
  if (outputs.empty() && options.targets.empty())
    return InvalidArgument("Cannot freeze a graph: there are neither outputs nor targets");
  std::vector<Operation> wanted(outputs.begin(), outputs.end());
  wanted.insert(wanted.end(), options.targets.begin(), options.targets.end());
  for (const Operation& each : wanted) {
    if (!each.valid() || &each.node->graph() != &session.graph()) {
      return InvalidArgument("Cannot freeze ",
                             each.valid() ? each.name() : "an invalid graph element",
                             ", which does not belong to the session's graph");
    }
  }
  for (const auto& [output, value] : options.values) {
    if (!output.valid() || &output.node->graph() != &session.graph() ||
        output.node->num_outputs() != 1 || output.dtype() != value.dtype()) {
      return InvalidArgument("Cannot freeze ", output.valid() ? output.name() : "an invalid output",
                             " as ", value.Description(),
                             ": a value is for the only output of a node, and of its type");
    }
  }
  WEIR_RETURN_IF_ERROR(session.graph().status());
  return Freezer(session, options).Freeze(wanted);
}

}  // namespace weir
