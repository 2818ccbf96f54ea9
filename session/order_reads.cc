#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "weir/session/plan.h"

// Reads of references see every assignment that their users are ordered after.
//
// TensorFlow 1 graphs share one read of a reference variable, `w/read`, among all users, and a user
// that waits for an assignment (by a control edge, say) expects the new value from it: there a read
// is an alias of the variable. Here a read takes a snapshot, so it is made to wait for the
// assignment too, unless the assignment itself needs the read. For each writer the nodes that run
// after it are collected (few: writers stand at the end of a step); a read of the same variable
// that has a user among them, and does not lead to the writer, gets a control edge from it.
namespace weir {

namespace {

bool IsReferenceVariable(const PlanNode& n) {
  return n.kind == PlanNode::Kind::kOp && n.inputs.empty() && n.node->num_outputs() == 1 &&
         IsRef(n.node->output_type(0));
}

class ReadOrder {
 public:
  explicit ReadOrder(PlanGraph& plan) : plan_(plan), successors_(plan.nodes.size()) {
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      const int id = static_cast<int>(i);
      for (const PlanValue& v : plan.nodes[i].inputs) successors_[v.node].push_back(id);
      for (const int control : plan.nodes[i].controls) successors_[control].push_back(id);
    }
  }

  absl::Status Run() {
    bool changed = false;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (!IsReferenceVariable(plan_.nodes[i])) continue;
      for (const int writer : successors_[i]) {
        if (Writes(writer, static_cast<int>(i))) changed |= OrderAfter(writer, static_cast<int>(i));
      }
    }
    return changed ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  bool Writes(int id, int variable) const {
    const PlanNode& n = plan_.nodes[id];
    if (n.def == nullptr) return false;
    return std::any_of(n.def->writes.begin(), n.def->writes.end(), [&](int k) {
      return k < static_cast<int>(n.inputs.size()) && n.inputs[k].node == variable;
    });
  }

  // An Identity of the reference.
  bool Reads(int id, int variable) const {
    const PlanNode& n = plan_.nodes[id];
    return n.kind == PlanNode::Kind::kOp && n.inputs.size() == 1 && n.inputs[0].node == variable &&
           n.node->op_name() == "Identity";
  }

  absl::flat_hash_set<int> After(int start) const {
    absl::flat_hash_set<int> seen;
    std::vector<int> stack = {start};
    while (!stack.empty()) {
      const int id = stack.back();
      stack.pop_back();
      for (const int s : successors_[id]) {
        if (seen.insert(s).second) stack.push_back(s);
      }
    }
    return seen;
  }

  bool OrderAfter(int writer, int variable) {
    bool changed = false;
    const absl::flat_hash_set<int> after = After(writer);
    if (after.empty()) return false;
    for (const int read : successors_[variable]) {
      if (!Reads(read, variable) || after.contains(read)) continue;
      if (plan_.nodes[read].value_loop != plan_.nodes[writer].value_loop) continue;
      const bool used_after = std::any_of(successors_[read].begin(), successors_[read].end(),
                                          [&](int user) { return after.contains(user); });
      if (!used_after || After(read).contains(writer)) continue;
      plan_.nodes[read].controls.push_back(writer);
      successors_[writer].push_back(read);
      changed = true;
    }
    return changed;
  }

  PlanGraph& plan_;
  std::vector<Few> successors_;
};

}  // namespace

absl::Status OrderReads(PlanGraph& plan) {
  if (std::none_of(plan.nodes.begin(), plan.nodes.end(), IsReferenceVariable))
    return absl::OkStatus();
  return ReadOrder(plan).Run();
}

}  // namespace weir
