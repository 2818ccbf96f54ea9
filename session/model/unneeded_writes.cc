#include "weir/session/model/unneeded_writes.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weir/core/import/edges.h"
#include "weir/proto/graph.pb.h"

// A function of TensorFlow 2 runs its stateful nodes in the order in which Python met them: each
// has control edges from those before it, and the results from the last one. So a result "depends"
// on all writes of its function. Here a control edge from a write counts only where the write can
// be seen: where a node that the result needs takes the same variable, be it before the write,
// since the next call comes after it. Without such a node, the edge is replaced by edges from what
// the write itself waited for, and the write, and what only it needed, is removed. The same goes
// for reads whose value nobody takes, such as that of the new value after a write.
//
// Which variable a node takes is known where its handle comes, through nodes that forward it, from
// the node that creates it or from an argument of the function. A handle from anywhere else (a
// merge of two, the result of a call) may be any variable's.
namespace weir {
namespace {

using Names = absl::flat_hash_set<std::string>;

bool IsControl(absl::string_view input) { return absl::StartsWith(input, "^"); }

bool IsHandle(const Output& value) { return value.dtype() == DT_RESOURCE || value.is_ref(); }

// True for a node whose outputs are the handle at input 0.
bool Forwards(const Node& node) {
  switch (node.op().traits().control_flow) {
    case ControlFlow::kNone:
      return node.num_inputs() == 1 && node.op().traits().movement == Movement::kIdentity &&
             IsHandle(node.output());
    case ControlFlow::kSwitch:
    case ControlFlow::kEnter:
    case ControlFlow::kExit:
    case ControlFlow::kNextIteration:
      return true;
    case ControlFlow::kMerge:
    case ControlFlow::kLoopCond:
      return false;
  }
  return false;
}

class WriteRemover {
 public:
  WriteRemover(const Graph& graph, absl::FunctionRef<bool(const std::string&)> is_variable,
               proto::GraphDef* def)
      : graph_(graph), sources_(graph), is_variable_(is_variable), def_(*def) {
    for (proto::NodeDef& node : *def->mutable_node()) nodes_[node.name()] = &node;
  }

  std::set<std::string> Run(const WantedNodes& nodes,
                            absl::FunctionRef<bool(const proto::NodeDef&)> changes_nothing) {
    FindUses(nodes.values);
    std::vector<std::string> wanted = nodes.values;
    absl::c_copy_if(nodes.effects, std::back_inserter(wanted), [&](const std::string& name) {
      return !writes_.contains(name) && !reads_.contains(name);
    });
    // A write that has to stay may need nodes that take other variables.
    for (bool again = true; again;) {
      FindNeeded(wanted);
      again = false;
      for (auto write = writes_.begin(); write != writes_.end();) {
        const bool stays = needed_.contains(write->first) ||
                           (IsTaken(write->second) && !changes_nothing(*nodes_.at(write->first)));
        if (!stays) {
          ++write;
          continue;
        }
        again = true;
        if (absl::c_linear_search(nodes.effects, write->first)) wanted.push_back(write->first);
        writes_.erase(write++);
      }
    }
    std::set<std::string> changed;
    for (const auto& [name, variable] : writes_) {
      if (!changes_nothing(*nodes_.at(name))) changed.insert(variable);
    }
    if (!writes_.empty()) Remove();
    return changed;
  }

 private:
  static std::string NameOf(absl::string_view input) {
    return std::string(ParseInputName(input).node);
  }

  // Finds the writes with their variables, and the reads.
  void FindUses(const std::vector<std::string>& values) {
    const Names wanted(values.begin(), values.end());
    for (const proto::NodeDef& node : def_.node()) {
      const Node* old = graph_.FindNode(node.name());
      if (old == nullptr || node.input_size() == 0 || wanted.contains(node.name())) continue;
      const OpTraits& traits = old->op().traits();
      const bool changes_state = old->op().stateful() && traits.calls == nullptr &&
                                 traits.variable_use == VariableUse::kNone;
      HandleSource source = sources_.Of(node.input(0));
      // In a branch or a loop, what follows by a control edge has its place from that alone.
      if (!is_variable_(source.node) || source.in_flow) continue;
      if (traits.writes_variables() || changes_state) {
        writes_.emplace(node.name(), std::move(source.node));
      } else if (traits.variable_use == VariableUse::kReads) {
        reads_.insert(node.name());
      }
    }
  }

  bool IsUse(const std::string& name) const {
    return writes_.contains(name) || reads_.contains(name);
  }

  // True for a control edge that does not count.
  bool IsOnlyOrder(const std::string& input) const {
    return IsControl(input) && IsUse(NameOf(input));
  }

  // Returns what a write or read follows, as control inputs: also the write that gives it the
  // reference.
  std::vector<std::string> OrderOf(const std::string& name) const {
    std::vector<std::string> order;
    for (const std::string& input : nodes_.at(name)->input()) {
      if (IsControl(input)) {
        order.push_back(input);
      } else if (IsUse(NameOf(input))) {
        order.push_back(absl::StrCat("^", NameOf(input)));
      }
    }
    return order;
  }

  // Finds what the wanted nodes need, where control edges from writes and reads do not count.
  void FindNeeded(const std::vector<std::string>& wanted) {
    needed_.clear();
    taken_.clear();
    takes_unknown_ = false;
    std::vector<std::string> stack(wanted.begin(), wanted.end());
    Names passed;  // nodes whose own control inputs count instead
    while (!stack.empty()) {
      const std::string name = std::move(stack.back());
      stack.pop_back();
      const auto node = nodes_.find(name);
      if (node == nodes_.end() || !needed_.insert(name).second) continue;
      AddTaken(*node->second);
      std::vector<std::string> inputs = {node->second->input().begin(),
                                         node->second->input().end()};
      while (!inputs.empty()) {
        const std::string input = std::move(inputs.back());
        inputs.pop_back();
        if (!IsOnlyOrder(input)) {
          stack.push_back(NameOf(input));
        } else if (passed.insert(NameOf(input)).second) {
          absl::c_move(OrderOf(NameOf(input)), std::back_inserter(inputs));
        }
      }
    }
  }

  // True if a needed node takes the variable, or one that is not known.
  bool IsTaken(const std::string& variable) const {
    return takes_unknown_ || taken_.contains(variable);
  }

  // Notes what a needed node takes.
  void AddTaken(const proto::NodeDef& node) {
    for (const std::string& input : node.input()) {
      HandleSource source = sources_.Of(input);
      takes_unknown_ = takes_unknown_ || source.is_any;
      if (is_variable_(source.node)) taken_.insert(std::move(source.node));
    }
  }

  // Adds the control inputs that take the place of one from this node.
  void AddControlsOf(const std::string& name, Names* done, std::vector<std::string>* controls) {
    if (!done->insert(name).second) return;
    for (const std::string& input : OrderOf(name)) {
      if (IsOnlyOrder(input)) {
        AddControlsOf(NameOf(input), done, controls);
      } else if (done->insert(NameOf(input)).second) {
        controls->push_back(input);
      }
    }
  }

  void Remove() {
    for (proto::NodeDef& node : *def_.mutable_node()) {
      if (!needed_.contains(node.name())) continue;
      std::vector<std::string> inputs;
      Names done;
      for (const std::string& input : node.input()) {
        if (IsOnlyOrder(input)) {
          AddControlsOf(NameOf(input), &done, &inputs);
        } else {
          inputs.push_back(input);
        }
      }
      *node.mutable_input() = {inputs.begin(), inputs.end()};
    }
    auto* const nodes = def_.mutable_node();
    nodes->erase(
        std::remove_if(nodes->begin(), nodes->end(),
                       [&](const proto::NodeDef& node) { return !needed_.contains(node.name()); }),
        nodes->end());
  }

  const Graph& graph_;
  HandleSources sources_;
  const absl::FunctionRef<bool(const std::string&)> is_variable_;
  proto::GraphDef& def_;
  absl::flat_hash_map<std::string, proto::NodeDef*> nodes_;
  absl::flat_hash_map<std::string, std::string> writes_;  // by name: the variable's source
  Names reads_;
  Names needed_;                // what the wanted nodes need
  Names taken_;                 // the variables that these take
  bool takes_unknown_ = false;  // one of them takes a variable that is not known
};

}  // namespace

HandleSource HandleSources::Of(absl::string_view input) {
  const InputName name = ParseInputName(input);
  const Node* node = name.control ? nullptr : graph_.FindNode(std::string(name.node));
  if (node == nullptr || name.index >= node->num_outputs() || !IsHandle(node->output(name.index)))
    return {};
  std::vector<const Node*> passed;
  auto known = of_forwarders_.end();
  while (Forwards(*node) && (known = of_forwarders_.find(node)) == of_forwarders_.end()) {
    passed.push_back(node);
    node = node->input(0).node;
  }
  HandleSource source;
  if (known != of_forwarders_.end()) {
    source = known->second;
  } else {
    const OpTraits& traits = node->op().traits();
    const bool merges = traits.control_flow == ControlFlow::kMerge || traits.calls != nullptr ||
                        node->op().is_function();
    source.node = node->name();
    source.is_any = merges && absl::c_any_of(node->inputs(), IsHandle);
  }
  for (auto it = passed.rbegin(); it != passed.rend(); ++it) {
    source.in_flow = source.in_flow || (*it)->op().traits().control_flow != ControlFlow::kNone;
    of_forwarders_[*it] = source;
  }
  return source;
}

std::set<std::string> RemoveUnneededWrites(
    const Graph& graph, const WantedNodes& wanted,
    absl::FunctionRef<bool(const std::string& node)> is_variable,
    absl::FunctionRef<bool(const proto::NodeDef& write)> changes_nothing, proto::GraphDef* def) {
  return WriteRemover(graph, is_variable, def).Run(wanted, changes_nothing);
}

}  // namespace weir
