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
// on all writes of its function. Here a control edge from a write counts only where the order can
// be seen: where a node that the result needs takes the same variable after the write. Without such
// a node, the edge is replaced by edges from what the write itself waited for, and the write, and
// what only it needed, is removed.
//
// Which variable a node takes is known where its handle comes, through nodes that forward it, from
// the node that creates it or from an argument of the function. A handle from anywhere else (a
// merge of two, a loop's result) may be any variable's, and a write to such a handle stays.
namespace weir {
namespace {

using Names = absl::flat_hash_set<std::string>;

bool IsControl(absl::string_view input) { return absl::StartsWith(input, "^"); }

class WriteRemover {
 public:
  WriteRemover(const Graph& graph, absl::FunctionRef<bool(const std::string&)> is_variable,
               proto::GraphDef* def)
      : graph_(graph), is_variable_(is_variable), def_(*def) {
    for (proto::NodeDef& node : *def->mutable_node()) nodes_[node.name()] = &node;
    for (const proto::NodeDef& node : def->node()) {
      for (const std::string& input : node.input()) users_[NameOf(input)].push_back(&node);
    }
  }

  void Run(const WantedNodes& nodes,
           absl::FunctionRef<bool(const proto::NodeDef&)> changes_nothing) {
    FindUses(nodes.values);
    std::vector<std::string> wanted = nodes.values;
    absl::c_copy_if(nodes.effects, std::back_inserter(wanted), [&](const std::string& name) {
      return !writes_.contains(name) && !reads_.contains(name);
    });
    // A write that has to stay may need nodes that read after other writes.
    for (bool again = true; again;) {
      again = false;
      FindNeeded(wanted);
      for (auto write = writes_.begin(); write != writes_.end();) {
        const proto::NodeDef& node = *nodes_.at(write->first);
        const bool stays = needed_.contains(write->first) ||
                           (IsReadAfter(node, write->second) && !changes_nothing(node));
        if (!stays) {
          ++write;
          continue;
        }
        again = true;
        if (absl::c_linear_search(nodes.effects, write->first)) wanted.push_back(write->first);
        writes_.erase(write++);
      }
    }
    if (!writes_.empty()) Remove();
  }

 private:
  static std::string NameOf(absl::string_view input) {
    return std::string(ParseInputName(input).node);
  }

  const Node* Find(absl::string_view name) const { return graph_.FindNode(std::string(name)); }

  // Returns the node that the handle at this input comes from, or the variable whose shared read it
  // is: whoever is ordered after a write gets the new value from that. Empty if it is neither.
  std::string VariableAt(const std::string& input) const {
    const InputName name = ParseInputName(input);
    const Node* node = Find(name.node);
    if (IsControl(input) || node == nullptr || name.index >= node->num_outputs()) return "";
    const DataType type = node->output(name.index).dtype();
    while (IsPassedThrough(*node)) node = node->input(0).node;
    const bool is_handle = type == DT_RESOURCE || IsRef(type);
    return is_handle || is_variable_(node->name()) ? node->name() : "";
  }

  static bool IsPassedThrough(const Node& node) {
    const OpTraits& traits = node.op().traits();
    return node.num_inputs() == 1 &&
           (traits.movement == Movement::kIdentity || traits.variable_use == VariableUse::kReads);
  }

  // True if a handle that comes from this node may be the variable's.
  bool MayBe(const std::string& source, const std::string& variable) const {
    return source == variable || Find(source)->num_inputs() > 0;
  }

  // Finds the writes with their variables, and the reads.
  void FindUses(const std::vector<std::string>& values) {
    const Names wanted(values.begin(), values.end());
    for (const proto::NodeDef& node : def_.node()) {
      const Node* old = Find(node.name());
      if (old == nullptr || node.input_size() == 0 || wanted.contains(node.name())) continue;
      const OpTraits& traits = old->op().traits();
      const bool changes_state = old->op().stateful() && traits.calls == nullptr &&
                                 traits.variable_use == VariableUse::kNone;
      std::string variable = VariableAt(node.input(0));
      if (variable.empty() || !is_variable_(variable)) continue;
      if (traits.writes_variables() || changes_state) {
        writes_.emplace(node.name(), std::move(variable));
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
    std::vector<std::string> stack(wanted.begin(), wanted.end());
    Names passed;  // nodes whose own control inputs count instead
    while (!stack.empty()) {
      const std::string name = std::move(stack.back());
      stack.pop_back();
      const auto node = nodes_.find(name);
      if (node == nodes_.end() || !needed_.insert(name).second) continue;
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

  // True if a needed node that follows the write takes the variable, or one that is not known.
  bool IsReadAfter(const proto::NodeDef& write, const std::string& variable) const {
    Names seen;
    std::vector<std::string> stack = {write.name()};
    while (!stack.empty()) {
      const auto users = users_.find(stack.back());
      stack.pop_back();
      if (users == users_.end()) continue;
      for (const proto::NodeDef* user : users->second) {
        if (!seen.insert(user->name()).second) continue;
        stack.push_back(user->name());
        if (!needed_.contains(user->name())) continue;
        for (const std::string& input : user->input()) {
          const std::string taken = VariableAt(input);
          if (!taken.empty() && MayBe(taken, variable)) return true;
        }
      }
    }
    return false;
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
  const absl::FunctionRef<bool(const std::string&)> is_variable_;
  proto::GraphDef& def_;
  absl::flat_hash_map<std::string, proto::NodeDef*> nodes_;
  absl::flat_hash_map<std::string, std::vector<const proto::NodeDef*>> users_;
  absl::flat_hash_map<std::string, std::string> writes_;  // by name: the variable's source
  Names reads_;
  Names needed_;
};

}  // namespace

void RemoveUnneededWrites(const Graph& graph, const WantedNodes& wanted,
                          absl::FunctionRef<bool(const std::string& node)> is_variable,
                          absl::FunctionRef<bool(const proto::NodeDef& write)> changes_nothing,
                          proto::GraphDef* def) {
  WriteRemover(graph, is_variable, def).Run(wanted, changes_nothing);
}

}  // namespace weir
