#include "weir/session/plan/verify_plan.h"

#include "absl/algorithm/container.h"

namespace weir {

namespace {

class Verifier {
 public:
  Verifier(const PlanGraph& plan, absl::string_view pass, bool is_ordered)
      : plan_(plan), pass_(pass), is_ordered_(is_ordered) {}

  absl::Status Run() const {
    for (int i = 0; i < count(); ++i) {
      if (!plan_.nodes[i].removed) WEIR_RETURN_IF_ERROR(CheckNode(i));
    }
    for (const PlanValue& v : plan_.feeds) {
      if (v.node >= count()) return Broken("a feed names node ", v.node, " of ", count());
    }
    for (const PlanValue& v : plan_.fetches) WEIR_RETURN_IF_ERROR(CheckValue(v, "a fetch"));
    for (const int target : plan_.targets) WEIR_RETURN_IF_ERROR(CheckExists(target, "a target"));
    for (const PlanGraph::Carry& c : plan_.carries) {
      if (c.carry >= 0 && c.carry < count() && plan_.nodes[c.carry].removed) continue;
      WEIR_RETURN_IF_ERROR(CheckExists(c.carry, "a back edge"));
      WEIR_RETURN_IF_ERROR(CheckValue(c.next, "a back edge"));
    }
    return CheckLoops();
  }

 private:
  int count() const { return static_cast<int>(plan_.nodes.size()); }
  int num_loops() const { return static_cast<int>(plan_.loops.size()); }

  template <class... Args>
  absl::Status Broken(const Args&... args) const {
    return Internal("the plan is broken after the pass ", pass_, ": ", args...);
  }
  std::string Name(int i) const {
    const PlanNode& n = plan_.nodes[i];
    return absl::StrCat("node ", i, " (", n.node == nullptr ? "null" : n.node->Label(), ")");
  }

  absl::Status CheckExists(int i, absl::string_view what) const {
    if (i < 0 || i >= count()) return Broken(what, " names node ", i, " of ", count());
    if (plan_.nodes[i].removed) return Broken(what, " names ", Name(i), ", which is removed");
    return absl::OkStatus();
  }
  absl::Status CheckValue(const PlanValue& v, absl::string_view what) const {
    WEIR_RETURN_IF_ERROR(CheckExists(v.node, what));
    if (v.output < 0 || v.output >= plan_.nodes[v.node].num_outputs())
      return Broken(what, " names output ", v.output, " of ", Name(v.node));
    return absl::OkStatus();
  }

  absl::Status CheckNode(int i) const {
    const PlanNode& n = plan_.nodes[i];
    if (n.node == nullptr) return Broken(Name(i), " has no node");
    for (const PlanValue& v : n.inputs) {
      WEIR_RETURN_IF_ERROR(CheckValue(v, Name(i)));
      if (is_ordered_ && v.node >= i) return Broken(Name(i), " is before its input ", Name(v.node));
    }
    for (const int control : n.controls) {
      WEIR_RETURN_IF_ERROR(CheckExists(control, Name(i)));
      if (is_ordered_ && control >= i)
        return Broken(Name(i), " is before its control input ", Name(control));
    }
    if (n.loop >= num_loops() || n.value_loop >= num_loops())
      return Broken(Name(i), " is in loop ", n.loop, " of ", num_loops());
    if (!n.shapes.empty() && static_cast<int>(n.shapes.size()) != n.num_outputs())
      return Broken(Name(i), " has ", n.shapes.size(), " shapes for ", n.num_outputs(), " outputs");
    return absl::OkStatus();
  }

  absl::Status CheckLoops() const {
    for (int l = 0; l < num_loops(); ++l) {
      if (plan_.loops[l].parent >= l) return Broken("loop ", l, " is before its parent");
      if (plan_.loops[l].condition >= count())
        return Broken("loop ", l, " has the condition ", plan_.loops[l].condition);
    }
    return absl::OkStatus();
  }

  const PlanGraph& plan_;
  const absl::string_view pass_;
  const bool is_ordered_;
};

}  // namespace

absl::Status VerifyPlan(const PlanGraph& plan, absl::string_view pass, bool is_ordered) {
  return Verifier(plan, pass, is_ordered).Run();
}

}  // namespace weir
