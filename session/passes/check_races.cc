#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "weir/session/passes/deadness.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/variable_use.h"

// Finds two accesses to one variable, at least one of them a write, that no path of the plan
// orders. The behavior is defined (order_nodes.cc: the read comes first, two writes run in the
// plan's order), but a program rarely depends on it on purpose, and TensorFlow guarantees nothing.
//
// The nodes are in topological order, so of two accesses only the earlier can come first, and a
// search from it need not visit nodes behind the later one. By then the plan contains the edges
// that passes have added (initializers in dependency order, shared reads after writes): accesses
// that these edges order are not a race.
//
// Two branches of one condition never both run (deadness.cc): accesses in opposite branches
// are not a race. Neither are accesses in different iterations of a loop, which run one after
// another; the edges from one iteration to the next are not in the plan.
namespace weir {

namespace {

class RaceFinder {
 public:
  explicit RaceFinder(const PlanGraph& plan) : plan_(plan), count_(plan.nodes.size()) {}

  absl::Status Run() {
    FindCandidates();
    if (by_variable_.empty()) return absl::OkStatus();
    ListSuccessors();
    conditions_ = Deadness(plan_).runs_if();
    for (const auto& [variable, accesses] : by_variable_) {
      for (size_t a = 0; a < accesses.size(); ++a) CheckFrom(accesses, a);
    }
    if (races_.empty()) return absl::OkStatus();
    const size_t found = races_.size();
    if (found > kMaxNamed) races_.resize(kMaxNamed);
    return InvalidArgument(
        absl::StrJoin(races_, "; "),
        found > kMaxNamed ? absl::StrCat("; and ", found - kMaxNamed, " more") : "",
        ". Order them by a control edge, or run them in different steps");
  }

 private:
  static constexpr size_t kMaxNamed = 10;

  // Finds variables that are written, and used at least twice.
  void FindCandidates() {
    for (const VariableAccess& access : FindAccesses(plan_, FindVariables(plan_))) {
      const PlanNode& n = plan_.nodes[access.node];
      const bool shape_only = n.Is(VariableUse::kReadsShape);
      if (IsVariable(plan_.nodes[access.variable]) && !shape_only)
        by_variable_[access.variable].push_back(access);
    }
    std::erase_if(by_variable_, [](const auto& entry) {
      return entry.second.size() < 2 ||
             std::all_of(entry.second.begin(), entry.second.end(), [](const VariableAccess& a) {
               return a.kind == VariableAccess::Kind::kRead;
             });
    });
  }

  void ListSuccessors() {
    successors_.resize(count_);
    for (size_t i = 0; i < count_; ++i) {
      const int id = static_cast<int>(i);
      for (const PlanValue& v : plan_.nodes[i].inputs) successors_[v.node].push_back(id);
      for (const int control : plan_.nodes[i].controls) successors_[control].push_back(id);
    }
  }

  // True if the two never both run.
  bool Exclusive(int a, int b) const {
    const Conditions& others = conditions_[b];
    return std::any_of(conditions_[a].begin(), conditions_[a].end(), [&](const Condition& c) {
      const auto is_opposite = [&](const Condition& other) { return AreOpposite(c, other); };
      return c.pred.output >= 0 && std::any_of(others.begin(), others.end(), is_opposite);
    });
  }

  // Finds accesses behind the one at `first`, in the plan's order, that it has no path to.
  void CheckFrom(const std::vector<VariableAccess>& accesses, size_t first) {
    const VariableAccess& a = accesses[first];
    std::vector<bool> reached;
    for (size_t i = first + 1; i < accesses.size(); ++i) {
      const VariableAccess& b = accesses[i];
      const bool writes =
          a.kind != VariableAccess::Kind::kRead || b.kind != VariableAccess::Kind::kRead;
      if (!writes || a.node == b.node || Exclusive(a.node, b.node)) continue;
      if (reached.empty()) reached = ReachedFrom(a.node, accesses.back().node);
      if (!reached[b.node - a.node]) races_.push_back(Describe(a, b));
    }
  }

  // By distance in the plan's order.
  std::vector<bool> ReachedFrom(int first, int last) const {
    std::vector<bool> reached(last - first + 1, false);
    reached[0] = true;
    for (int i = first; i <= last; ++i) {
      if (!reached[i - first]) continue;
      for (const int s : successors_[i]) {
        if (s <= last) reached[s - first] = true;
      }
    }
    return reached;
  }

  // A read that a pass has inserted is reported under the name of the node for which it was
  // inserted.
  std::string Label(int id) const {
    if (plan_.nodes[id].kind != PlanNode::Kind::kRead) return plan_.nodes[id].node->Label();
    for (const int user : successors_[id]) {
      if (plan_.nodes[user].kind == PlanNode::Kind::kOp) return plan_.nodes[user].node->Label();
    }
    return absl::StrCat("the fetch of ", plan_.nodes[plan_.nodes[id].inputs[0].node].node->name());
  }

  std::string Describe(const VariableAccess& a, const VariableAccess& b) const {
    const auto verb = [](const VariableAccess& access) {
      return access.kind == VariableAccess::Kind::kRead ? " reads" : " writes";
    };
    return absl::StrCat("Race on variable '", plan_.nodes[a.variable].node->name(),
                        "': ", Label(a.node), verb(a), " it and ", Label(b.node), verb(b),
                        " it, and no path of the graph orders them");
  }

  const PlanGraph& plan_;
  const size_t count_;
  std::map<int, std::vector<VariableAccess>> by_variable_;
  std::vector<IndexList> successors_;
  std::vector<Conditions> conditions_;  // by node
  std::vector<std::string> races_;
};

}  // namespace

absl::Status CheckRaces(const PlanGraph& plan) { return RaceFinder(plan).Run(); }

}  // namespace weir
