#include "weir/rpc/cluster/lower_functional_ops.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "weir/core/graph/op.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/function.pb.h"
#include "weir/proto/graph.pb.h"

// Lowering of functional control flow, with TensorFlow's structure (lower_while_op.cc,
// lower_if_op.cc). A loop variable gets an Enter, a Merge, a Switch, an Exit and a NextIteration;
// the nodes of the condition use the Merges, those of the body the Switches. A resource that the
// body returns unchanged gets a constant Enter only. All NextIterations wait for the effects of the
// body, and the LoopCond for those of the condition: iterations do not overlap in their effects.
//
// The arguments of a branch are Switches on the predicate, and the results of both meet in Merges.
// The branch that runs also ends at a node behind its effects; a Merge of both such nodes is what
// the outputs wait for.
//
// A node of a function without inputs would run outside of the frame or branch, so it gets a
// control input from the pivot: a node that is alive exactly when the function runs. So does one
// that takes a resource: on a task that has nothing else of a loop, no iteration would follow the
// first.
namespace weir::rpc {

namespace {

constexpr int kMaxDepth = 16;
constexpr int64_t kMaxNodes = 50'000;

bool IsLoop(const proto::NodeDef& node) {
  return node.op() == "While" || node.op() == "StatelessWhile";
}
bool IsBranch(const proto::NodeDef& node) {
  return node.op() == "If" || node.op() == "StatelessIf";
}
bool MayLower(const proto::NodeDef& node) {
  if (!IsLoop(node) && !IsBranch(node)) return false;
  const auto wanted = node.attr().find("_lower_using_switch_merge");
  return wanted == node.attr().end() || wanted->second.b();
}

bool HasStateByName(const Node& node) {
  const auto has_no = [&](absl::string_view name) {
    return node.op().FindAttr(name) != nullptr && node.attr_or<std::string>(name, "").empty();
  };
  return node.op().stateful() && (has_no("shared_name") || has_no("var_name"));
}

void AddControl(const std::string& node, proto::NodeDef* def) {
  def->add_input(absl::StrCat("^", node));
}

class Lowering {
 public:
  Lowering(std::shared_ptr<const FunctionLibrary> library, proto::GraphDef* def)
      : library_(std::move(library)), def_(*def) {
    versions_.producer = def_.versions().producer();
  }

  void Run() {
    // The nodes of functions come later, and are lowered in their turn.
    for (int i = 0; i < def_.node_size(); ++i) {
      if (MayLower(def_.node(i))) Lower(i);
    }
    if (replaced_.empty()) return;
    for (proto::NodeDef& node : *def_.mutable_node()) {
      for (std::string& input : *node.mutable_input()) Replace(&input);
    }
  }

 private:
  // ---- functions

  struct Caller {
    proto::NodeDef node;
    std::vector<std::string> inputs, controls;
    int depth = 0;
  };

  // Returns the function of an attribute, if it can be lowered.
  std::optional<FunctionBody> Find(const Caller& caller, const char* attr) {
    const auto found = caller.node.attr().find(attr);
    if (found == caller.node.attr().end()) return std::nullopt;
    const absl::StatusOr<AttrValue> value = AttrFromProto(found->second);
    const FunctionRef* const function = value.ok() ? value->get_if<FunctionRef>() : nullptr;
    if (function == nullptr) return std::nullopt;
    absl::StatusOr<FunctionBody> body = InstantiateFunction(
        library_, *function, BuiltinOps(), versions_, absl::StrCat(PrefixOf(caller), attr));
    if (!body.ok() || body->args.size() > caller.inputs.size()) return std::nullopt;
    const auto& nodes = body->graph->nodes();
    num_nodes_ += static_cast<int64_t>(nodes.size());
    const bool is_odd = std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
      return HasStateByName(*node) || node->op().traits().control_flow != ControlFlow::kNone;
    });
    if (is_odd || num_nodes_ > kMaxNodes) return std::nullopt;
    return *std::move(body);
  }

  // Adds the nodes of a function, with these values as its arguments. Returns its results.
  std::vector<std::string> Inline(const Caller& caller, const FunctionBody& body,
                                  const std::vector<std::string>& args, const std::string& pivot) {
    absl::flat_hash_map<const Node*, std::string> arg_of;
    for (size_t i = 0; i < body.args.size(); ++i) arg_of[body.args[i].node] = args[i];
    const auto name_of = [&](const Output& value) {
      const auto arg = arg_of.find(value.node);
      return arg == arg_of.end() ? value.name() : arg->second;
    };
    for (const auto& node : body.graph->nodes()) {
      if (arg_of.contains(node.get())) continue;
      proto::NodeDef* const made = def_.add_node();
      NodeToProto(*node, made);
      made->clear_input();
      bool needs_pivot = node->inputs().empty() && node->control_inputs().empty();
      for (const Output& input : node->inputs()) {
        made->add_input(name_of(input));
        needs_pivot |= input.dtype() == DT_RESOURCE && arg_of.contains(input.node);
      }
      for (const Node* control : node->control_inputs()) {
        AddControl(arg_of.contains(control) ? pivot : control->name(), made);
      }
      if (needs_pivot) AddControl(pivot, made);
      made->set_device(MergeDevices(caller.node.device(), node->device()));
      if (MayLower(*made)) depth_[made->name()] = caller.depth + 1;
    }
    std::vector<std::string> results;
    for (const Output& result : body.results) results.push_back(name_of(result));
    return results;
  }

  // A device that cannot be parsed stays, for the error of the placement.
  static std::string MergeDevices(const std::string& caller, const std::string& node) {
    absl::StatusOr<DeviceName> merged = DeviceName::Parse(caller);
    const absl::StatusOr<DeviceName> own = DeviceName::Parse(node);
    if (caller.empty() || (!node.empty() && (!merged.ok() || !own.ok()))) return node;
    if (node.empty()) return caller;
    merged->MergeFrom(*own);
    return merged->ToString();
  }

  // ---- nodes

  // Clients name nodes "while/Identity" themselves.
  static std::string PrefixOf(const Caller& caller) {
    return absl::StrCat(caller.node.name(), "/lowered/");
  }

  // Adds a node "CALLER/lowered/name" on the device of the caller.
  proto::NodeDef* Add(const Caller& caller, absl::string_view name, const char* op, DataType type,
                      const std::vector<std::string>& inputs) {
    proto::NodeDef* const def = def_.add_node();
    def->set_name(absl::StrCat(PrefixOf(caller), name));
    def->set_op(op);
    def->set_device(caller.node.device());
    for (const std::string& input : inputs) def->add_input(input);
    if (type != DT_INVALID)
      (*def->mutable_attr())["T"].set_type(static_cast<proto::DataType>(type));
    return def;
  }

  std::string AsBool(const Caller& caller, const std::string& value, DataType type) {
    return type == DT_BOOL ? value : Add(caller, "ToBool", "ToBool", type, {value})->name();
  }

  // Puts a node in the place of the caller that returns `outputs` and waits for `after`.
  void ReplaceCaller(int i, const Caller& caller, std::vector<std::string> outputs,
                     const DataTypes& types, const std::string& after) {
    proto::NodeDef& def = *def_.mutable_node(i);
    def.clear_attr();
    def.clear_input();
    def.set_op(outputs.empty() ? "NoOp" : "IdentityN");
    for (size_t k = 0; k < outputs.size(); ++k) {
      def.add_input(outputs[k]);
      (*def.mutable_attr())["T"].mutable_list()->add_type(static_cast<proto::DataType>(types[k]));
    }
    if (!after.empty()) AddControl(after, &def);
    for (const std::string& control : caller.controls) AddControl(control, &def);
  }

  // Users of a resource that a loop returns use the one that the loop takes.
  void Replace(std::string* input) const {
    constexpr int kMaxLoops = 100;  // one after another; they may form a cycle
    for (int i = 0; i < kMaxLoops; ++i) {
      const auto it = replaced_.find(*input);
      if (it == replaced_.end()) return;
      *input = it->second;
    }
  }
  void ReplaceOutput(const Caller& caller, size_t k, const std::string& value) {
    const std::string& name = caller.node.name();
    if (k == 0) replaced_[name] = value;
    replaced_[absl::StrCat(name, ":", k)] = value;
  }

  // ---- loops and branches

  void Lower(int i) {
    Caller caller = {def_.node(i), {}, {}, 0};
    if (const auto depth = depth_.find(caller.node.name()); depth != depth_.end())
      caller.depth = depth->second;
    for (const std::string& input : caller.node.input()) {
      if (absl::StartsWith(input, "^")) {
        caller.controls.push_back(input.substr(1));
      } else {
        caller.inputs.push_back(input);
      }
    }
    if (caller.depth >= kMaxDepth || num_nodes_ > kMaxNodes) return;
    if (IsLoop(caller.node)) {
      LowerLoop(i, caller);
    } else {
      LowerBranch(i, caller);
    }
  }

  void LowerLoop(int i, const Caller& caller) {
    const std::optional<FunctionBody> cond = Find(caller, "cond");
    const std::optional<FunctionBody> body = cond ? Find(caller, "body") : std::nullopt;
    const size_t n = caller.inputs.size();
    if (!body || cond->args.size() != n || body->args.size() != n || body->results.size() != n ||
        cond->results.size() != 1) {
      return;
    }
    std::vector<bool> is_resource(n);
    size_t first = n;  // a variable that is none
    for (size_t k = n; k-- > 0;) {
      is_resource[k] = body->args[k].dtype() == DT_RESOURCE;
      if (is_resource[k] && body->results[k].node != body->args[k].node) return;
      if (!is_resource[k]) first = k;
    }
    if (first == n) return;
    std::vector<std::string> values, merges(n);
    for (size_t k = 0; k < n; ++k) {
      const DataType type = body->args[k].dtype();
      proto::NodeDef* const enter =
          Add(caller, absl::StrCat("Enter_", k), "Enter", type, {caller.inputs[k]});
      for (const std::string& control : caller.controls) AddControl(control, enter);
      (*enter->mutable_attr())["frame_name"].set_s(caller.node.name());
      (*enter->mutable_attr())["is_constant"].set_b(is_resource[k]);
      if (const auto parallel = caller.node.attr().find("parallel_iterations");
          parallel != caller.node.attr().end()) {
        (*enter->mutable_attr())["parallel_iterations"] = parallel->second;
      }
      values.push_back(enter->name());
      if (is_resource[k]) continue;
      const std::string next = absl::StrCat(PrefixOf(caller), "NextIteration_", k);
      proto::NodeDef* const merge =
          Add(caller, absl::StrCat("Merge_", k), "Merge", type, {enter->name(), next});
      (*merge->mutable_attr())["N"].set_i(2);
      values.back() = merges[k] = merge->name();
    }
    const std::string predicate =
        AsBool(caller, Inline(caller, *cond, values, merges[first])[0], cond->results[0].dtype());
    proto::NodeDef* const loop_cond = Add(caller, "LoopCond", "LoopCond", DT_INVALID, {predicate});
    for (const Operation& effect : cond->effects) AddControl(effect.node->name(), loop_cond);
    const std::string condition = loop_cond->name();
    std::string pivot;
    std::vector<std::string> outputs = caller.inputs;
    for (size_t k = 0; k < n; ++k) {
      if (is_resource[k]) continue;
      const DataType type = body->args[k].dtype();
      const std::string turn =
          Add(caller, absl::StrCat("Switch_", k), "Switch", type, {merges[k], condition})->name();
      values[k] =
          Add(caller, absl::StrCat("Identity_", k), "Identity", type, {turn + ":1"})->name();
      if (pivot.empty()) pivot = values[k];
      outputs[k] = Add(caller, absl::StrCat("Exit_", k), "Exit", type, {turn})->name();
    }
    const std::vector<std::string> results = Inline(caller, *body, values, pivot);
    DataTypes types;
    for (size_t k = 0; k < n; ++k) {
      types.push_back(body->args[is_resource[k] ? first : k].dtype());
      if (is_resource[k]) {
        ReplaceOutput(caller, k, caller.inputs[k]);
        outputs[k] = outputs[first];  // an output that nobody uses
        continue;
      }
      proto::NodeDef* const next =
          Add(caller, absl::StrCat("NextIteration_", k), "NextIteration", types[k], {results[k]});
      for (const Operation& effect : body->effects) AddControl(effect.node->name(), next);
    }
    ReplaceCaller(i, caller, std::move(outputs), types, "");
  }

  // One of the branches of an If.
  struct Branch {
    const FunctionBody& body;
    std::vector<std::string> results;
    std::string done;  // a node that ends after the effects
  };

  Branch AddBranch(const Caller& caller, const FunctionBody& body, bool taken,
                   const std::vector<std::string>& turns, const std::string& decision) {
    const char* const port = taken ? ":1" : "";
    const auto named = [&](const char* name) { return absl::StrCat(name, taken ? "_t" : "_f"); };
    const std::string pivot =
        Add(caller, named("pivot"), "Identity", DT_BOOL, {decision + port})->name();
    std::vector<std::string> args;
    for (const std::string& turn : turns) args.push_back(turn + port);
    Branch branch = {body, Inline(caller, body, args, pivot), ""};
    proto::NodeDef* const done = Add(caller, named("done"), "Identity", DT_BOOL, {pivot});
    for (const Operation& effect : body.effects) AddControl(effect.node->name(), done);
    branch.done = done->name();
    return branch;
  }

  void LowerBranch(int i, const Caller& caller) {
    const std::optional<FunctionBody> then_body = Find(caller, "then_branch");
    const std::optional<FunctionBody> else_body =
        then_body ? Find(caller, "else_branch") : std::nullopt;
    if (!else_body || then_body->results.size() != else_body->results.size() ||
        then_body->args.size() + 1 != caller.inputs.size() ||
        else_body->args.size() + 1 != caller.inputs.size()) {
      return;
    }
    for (size_t k = 0; k < then_body->results.size(); ++k) {
      const DataType type = then_body->results[k].dtype();
      if (type == DT_RESOURCE || type != else_body->results[k].dtype()) return;
    }
    const auto type = caller.node.attr().find("Tcond");
    if (type == caller.node.attr().end()) return;
    const std::string predicate =
        AsBool(caller, caller.inputs[0], static_cast<DataType>(type->second.type()));
    proto::NodeDef* const decide = Add(caller, "Switch", "Switch", DT_BOOL, {predicate, predicate});
    for (const std::string& control : caller.controls) AddControl(control, decide);
    const std::string decision = decide->name();
    std::vector<std::string> turns;
    for (size_t k = 0; k < then_body->args.size(); ++k) {
      proto::NodeDef* const turn =
          Add(caller, absl::StrCat("Switch_", k), "Switch", then_body->args[k].dtype(),
              {caller.inputs[k + 1], predicate});
      for (const std::string& control : caller.controls) AddControl(control, turn);
      turns.push_back(turn->name());
    }
    const Branch otherwise = AddBranch(caller, *else_body, false, turns, decision);
    const Branch then = AddBranch(caller, *then_body, true, turns, decision);
    const auto merge = [&](const std::string& name, DataType of, const std::string& a,
                           const std::string& b) {
      proto::NodeDef* const def = Add(caller, name, "Merge", of, {a, b});
      (*def->mutable_attr())["N"].set_i(2);
      return def->name();
    };
    const std::string after = merge("done", DT_BOOL, otherwise.done, then.done);
    std::vector<std::string> outputs;
    DataTypes types;
    for (size_t k = 0; k < then.results.size(); ++k) {
      types.push_back(then_body->results[k].dtype());
      outputs.push_back(
          merge(absl::StrCat("Merge_", k), types[k], otherwise.results[k], then.results[k]));
    }
    ReplaceCaller(i, caller, std::move(outputs), types, after);
  }

  const std::shared_ptr<const FunctionLibrary> library_;
  proto::GraphDef& def_;
  GraphVersions versions_;
  int64_t num_nodes_ = 0;                                   // of functions
  absl::flat_hash_map<std::string, int> depth_;             // of nodes to lower, by name; others: 0
  absl::flat_hash_map<std::string, std::string> replaced_;  // by output of a loop: a resource
};

}  // namespace

void LowerFunctionalOps(const std::shared_ptr<const FunctionLibrary>& library,
                        proto::GraphDef* def) {
  if (std::none_of(def->node().begin(), def->node().end(), MayLower)) return;
  auto extended = FunctionLibrary::Extend(library, def->library());
  // The import reports functions that contradict each other.
  if (extended.ok()) Lowering(*std::move(extended), def).Run();
}

}  // namespace weir::rpc
