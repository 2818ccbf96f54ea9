#include "weir/session/model/dead_branches.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weir/core/import/edges.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/model/scoped_names.h"

// TensorFlow's executor runs a conditional by dead values: a Switch sends its value to one of its
// outputs and a dead value to the other, a node with a dead input is dead, and a Merge takes the
// input that is not. Where the predicate is a constant, so is what is dead. The rules are applied
// until nothing changes; nodes are mostly in the order of their edges, so two passes suffice.
//
// The Merge at the head of a loop has an input from the loop's end, which is dead if the loop is.
// So such an input does not keep a Merge alive.
namespace weir {
namespace {

using Value = std::pair<std::string, int>;  // node and output

bool IsControl(absl::string_view input) { return absl::StartsWith(input, "^"); }

Value ValueOf(absl::string_view input) {
  const InputName name = ParseInputName(input);
  return {std::string(name.node), name.index};
}

class Conditionals {
 public:
  explicit Conditionals(proto::GraphDef* def) : def_(*def) {
    for (const proto::NodeDef& node : def_.node()) {
      names_.insert(node.name());
      if (node.op() == "NextIteration") next_iterations_.insert(node.name());
      for (const std::string& input : node.input()) {
        if (!IsControl(input)) used_.insert(ValueOf(input));
      }
    }
  }

  void Replace(std::vector<proto::NodeDef>* more) {
    while (FindConstants() || FindDead()) {
    }
    // Where a Merge of several live inputs tells which one it took, the dead ones stay.
    for (const proto::NodeDef& node : def_.node()) {
      if (IsMerge(node) && !dead_nodes_.contains(node.name()) && CountLive(node) > 1 &&
          CountLive(node) < CountValues(node) && used_.contains({node.name(), 1}))
        return;
    }
    for (proto::NodeDef& node : *def_.mutable_node()) {
      if (dead_nodes_.contains(node.name())) continue;
      if (IsSwitch(node)) {
        ReplaceSwitch(&node);
      } else if (IsMerge(node)) {
        ReplaceMerge(&node, more);
      } else if (node.op() == "If" || node.op() == "StatelessIf") {
        ReplaceIf(&node);
      }
    }
    for (proto::NodeDef& node : *def_.mutable_node()) {
      for (std::string& input : *node.mutable_input()) Redirect(&input);
    }
  }

 private:
  static bool IsSwitch(const proto::NodeDef& node) {
    return node.op() == "Switch" || node.op() == "RefSwitch";
  }
  static bool IsMerge(const proto::NodeDef& node) {
    return node.op() == "Merge" || node.op() == "RefMerge";
  }

  std::optional<bool> Known(const std::string& input) const {
    const auto found = constants_.find(ValueOf(input).first);
    return found == constants_.end() ? std::nullopt : std::optional(found->second);
  }

  // Returns true if it has found another one.
  bool FindConstants() {
    const size_t before = constants_.size();
    for (const proto::NodeDef& node : def_.node()) {
      if (node.op() == "Const") {
        const auto value = node.attr().find("value");
        if (value == node.attr().end() || value->second.tensor().dtype() != proto::DT_BOOL)
          continue;
        const absl::StatusOr<Tensor> tensor = TensorFromProto(value->second.tensor());
        if (tensor.ok() && tensor->num_elements() == 1)
          constants_.emplace(node.name(), tensor->data<bool>()[0]);
      } else if (node.input_size() > 0 && (node.op() == "Identity" || node.op() == "LogicalNot")) {
        const std::optional<bool> known = Known(node.input(0));
        if (known) constants_.emplace(node.name(), *known == (node.op() == "Identity"));
      }
    }
    return constants_.size() > before;
  }

  bool IsDead(const std::string& input) const {
    if (IsControl(input)) return dead_nodes_.contains(input.substr(1));
    const Value value = ValueOf(input);
    return dead_nodes_.contains(value.first) || dead_values_.contains(value);
  }

  bool IsDeadNode(const proto::NodeDef& node) const {
    int dead = 0, live = 0;
    for (const std::string& input : node.input()) {
      const bool is_dead = IsDead(input);
      if (is_dead && (IsControl(input) || !IsMerge(node))) return true;
      if (IsControl(input)) continue;
      if (is_dead) ++dead;
      if (!is_dead && !next_iterations_.contains(ValueOf(input).first)) ++live;
    }
    return IsMerge(node) && dead > 0 && live == 0;
  }

  static int CountValues(const proto::NodeDef& node) {
    return static_cast<int>(std::count_if(node.input().begin(), node.input().end(),
                                          [](const auto& input) { return !IsControl(input); }));
  }
  int CountLive(const proto::NodeDef& node) const {
    return static_cast<int>(
        std::count_if(node.input().begin(), node.input().end(),
                      [this](const auto& input) { return !IsControl(input) && !IsDead(input); }));
  }

  // Returns true if it has found another one.
  bool FindDead() {
    const size_t before = dead_nodes_.size() + dead_values_.size();
    for (const proto::NodeDef& node : def_.node()) {
      if (IsDeadNode(node)) {
        dead_nodes_.insert(node.name());
      } else if (IsSwitch(node) && node.input_size() > 1) {
        if (const std::optional<bool> known = Known(node.input(1)))
          dead_values_.insert({node.name(), *known ? 0 : 1});
      }
    }
    return dead_nodes_.size() + dead_values_.size() > before;
  }

  void ReplaceSwitch(proto::NodeDef* node) {
    if (node->input_size() < 2 || !Known(node->input(1))) return;
    redirected_[{node->name(), 1}] = node->name();  // an Identity has one output
    node->set_op(node->op() == "Switch" ? "Identity" : "RefIdentity");
    node->set_input(1, "^" + ValueOf(node->input(1)).first);
  }

  // A node that was dead is not when its Switch is an Identity, so no Merge may take its value.
  void ReplaceMerge(proto::NodeDef* node, std::vector<proto::NodeDef>* more) {
    const int values = CountValues(*node), live = CountLive(*node);
    if (live == 0 || live == values) return;
    int taken = -1;
    for (int i = values - 1; i >= 0; --i) {
      if (IsDead(node->input(i))) {
        node->mutable_input()->DeleteSubrange(i, 1);
      } else {
        taken = i;
      }
    }
    if (live > 1) {
      (*node->mutable_attr())["N"].set_i(live);
      return;
    }
    if (used_.contains({node->name(), 1})) more->push_back(ValueIndex(*node, taken));
    node->set_op(node->op() == "Merge" ? "Identity" : "RefIdentity");
    node->mutable_attr()->erase("N");
  }

  // Returns a node for the second output of a Merge, to which it redirects the edges.
  proto::NodeDef ValueIndex(const proto::NodeDef& merge, int32_t taken) {
    proto::NodeDef index;
    index.set_name(NewName(merge.name() + "/value_index"));
    index.set_op("Const");
    index.set_device(merge.device());
    (*index.mutable_attr())["dtype"].set_type(proto::DT_INT32);
    AttrToProto(AttrValue(Tensor::Scalar(taken)), &(*index.mutable_attr())["value"]);
    redirected_[{merge.name(), 1}] = index.name();
    return index;
  }

  void ReplaceIf(proto::NodeDef* node) {
    const std::optional<bool> known = node->input_size() > 0 ? Known(node->input(0)) : std::nullopt;
    const auto branch = node->attr().find(known.value_or(false) ? "then_branch" : "else_branch");
    if (!known || branch == node->attr().end()) return;
    const proto::AttrValue function = branch->second;
    node->set_op(node->op() == "If" ? "StatefulPartitionedCall" : "PartitionedCall");
    for (const char* attr : {"then_branch", "else_branch", "Tcond", "output_shapes"})
      node->mutable_attr()->erase(attr);
    (*node->mutable_attr())["f"] = function;
    node->mutable_input()->DeleteSubrange(0, 1);
  }

  void Redirect(std::string* input) const {
    if (IsControl(*input)) return;
    if (const auto found = redirected_.find(ValueOf(*input)); found != redirected_.end())
      *input = found->second;
  }

  std::string NewName(const std::string& wanted) {
    std::string name = UnusedName(
        wanted, [this](const std::string& candidate) { return names_.contains(candidate); });
    names_.insert(name);
    return name;
  }

  proto::GraphDef& def_;
  absl::flat_hash_set<std::string> names_, next_iterations_, dead_nodes_;
  absl::flat_hash_map<std::string, bool> constants_;  // nodes of one known boolean
  absl::flat_hash_set<Value> used_;                   // by nodes
  absl::flat_hash_set<Value> dead_values_;            // outputs of switches
  absl::flat_hash_map<Value, std::string> redirected_;
};

}  // namespace

void ReplaceConstantConditionals(proto::GraphDef* def, std::vector<proto::NodeDef>* more) {
  Conditionals(def).Replace(more);
}

}  // namespace weir
