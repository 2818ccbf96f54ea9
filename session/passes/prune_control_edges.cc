#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weir/kernels/math/fused_elementwise.h"
#include "weir/session/passes/effects.h"
#include "weir/session/passes/fold_constants.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/plan_uses.h"
#include "weir/session/plan/variable_use.h"

// Removes control edges that order no effects. In graphs from Python's gradients, no gradient of an
// op is passed on before all of that op's gradients are available: an Identity for each waits for a
// group of all of them. Every node at either end of a control edge is excluded from fusion
// (fusion.h).
//
// The only observable order of a step is the order of its effects, including reads of variables if
// the step has other effects. The time at which a purely computing node runs is not observable; an
// edge to it matters only for its predecessors and successors: effects that end before the edge's
// source precede the effects that wait for its target. So the pass computes, for each node, the set
// of effects that end before the node starts, along all edges. A control edge into a computing node
// that adds nothing to what the node's other edges contribute is dropped: all sets stay the same,
// and with them the order of any two effects.
//
// A node that uses a value of a loop from outside waits for the whole loop, which counts as an
// effect. Within a loop an iteration starts when the previous one has ended, so the sets need not
// include the effects of earlier iterations.
//
// An edge that does contribute something to a node may still be unobservable. An example is the
// edge to the difference in a variance's gradient, which contributes the reads behind the gradient.
// The edge is unobservable if every user of the node's value waits for the same effects through
// another of its inputs, or itself only computes and so do its users, up to the point where the
// effects are contributed by another path, and the step returns none of these values. Then it is
// dropped as well. The sets of these nodes shrink, no other set does, and the nodes themselves have
// no effect. However, they must be nodes that cannot fail: an assertion may have to precede a node
// that can.
//
// Python ties each of a loop's constants to the loop by a control edge, and a value computed from
// several of them, such as the bounds of a gradient's slice, waits for each. For such nodes whose
// values are already known (fold_constants.h) the set does not matter: an edge to one is dropped if
// all users of values derived from it that are not such nodes themselves wait for the same effects
// through inputs that are not. So their sets stay the same, and the values become constants.
//
// In a loop the gradients of an op pop different values from stacks, and a group orders the Pop of
// one before the other gradient. A stack is visible only to nodes that have its handle: if none of
// them comes after the node, the edge is not observable either.
namespace weir {

namespace {

// The sets are bit sets of at most 32 MB in total: a hundred thousand nodes may have 2,600 effects.
constexpr size_t kMaxBytes = size_t{32} << 20;

bool IsRead(const PlanNode& n) {
  return n.kind == PlanNode::Kind::kRead || n.Is(VariableUse::kReads);
}

// Returns true if the time at which the node runs is observable. `reads_count`: so is that of a
// read.
bool IsObservable(const PlanNode& n, bool reads_count) {
  if (n.is_exit()) return true;
  if (IsRead(n)) return reads_count;
  if (n.kind != PlanNode::Kind::kOp || n.is_constant(0)) return false;
  if (n.Is(VariableUse::kDeclares) && !IsRef(n.type(0))) return false;
  if (n.is_no_op() || n.is_control_trigger()) return n.may_be_dead;
  return !OnlyComputes(n);
}

bool UsesStack(const PlanNode& n, ContainerUse::Kind kind) {
  const ContainerUse& use = n.traits().container;
  return use.type == ContainerUse::Type::kStack && use.kind == kind;
}
bool MakesStack(const PlanNode& n) { return UsesStack(n, ContainerUse::Kind::kMakes); }
bool IsStackOp(const PlanNode& n) {
  return MakesStack(n) || UsesStack(n, ContainerUse::Kind::kPuts) ||
         UsesStack(n, ContainerUse::Kind::kTakes);
}

class ControlEdgePruner {
 public:
  ControlEdgePruner(PlanGraph& plan, const ControlledConstants& controlled)
      : plan_(plan), controlled_(controlled), count_(plan.nodes.size()) {}

  void Run() {
    if (absl::c_none_of(plan_.nodes, ControlEdgePruner::MayPrune) || !NumberEffects()) return;
    FindStacks();
    effects_before_.assign(count_ * words_, 0);
    std::vector<uint64_t> others(words_);
    for (size_t i = 0; i < count_; ++i) {
      PlanNode& n = plan_.nodes[i];
      if (MayPrune(n)) {
        for (size_t k = n.controls.size(); k-- > 0;) {
          absl::c_fill(others, 0);
          AddAllEffectsBefore(n, k, others.data());
          if (IsRedundant(n.controls[k], static_cast<int>(i), others))
            n.controls.erase(n.controls.begin() + static_cast<int64_t>(k));
        }
      }
      AddAllEffectsBefore(n, n.controls.size(), effects_before_.data() + i * words_);
    }
    PruneTransitiveEdges();
    for (const auto& [i, values] : controlled_) {
      PlanNode& n = plan_.nodes[i];
      const auto is_constant = [this](const PlanValue& v) {
        return plan_.nodes[v.node].is_constant(v.output);
      };
      if (n.controls.empty() && absl::c_all_of(n.inputs, is_constant)) n.set_constants(values);
    }
  }

 private:
  // Each control edge of such a node is compared with all its other edges.
  static constexpr size_t kMaxControls = 16;
  // Most nodes whose sets shrink when an edge is dropped.
  static constexpr size_t kMaxNarrowed = 24;

  static bool MayPrune(const PlanNode& n) {
    return !n.controls.empty() && n.controls.size() <= kMaxControls &&
           n.kind == PlanNode::Kind::kOp && n.loop == n.value_loop && !n.is_constant(0) &&
           OnlyComputes(n);
  }

  bool CannotFail(const PlanNode& n) const {
    if (n.kernel.is_constant() || n.is_identity() || n.is_no_op()) return true;
    if (n.node->num_outputs() != 1 || !n.shapes[0].IsFullyDefined()) return false;
    const bool knows_all = absl::c_all_of(n.inputs, [&](const PlanValue& v) {
      return plan_.nodes[v.node].shapes[v.output].IsFullyDefined();
    });
    if (!knows_all) return false;
    const DataType type = n.node->output_type(0);
    if (FindFusableOp(n.node->op_name(), n.inputs.size(), type)) return true;
    const RowRule rows = n.traits().rows;
    if ((rows != RowRule::kReshape && rows != RowRule::kReduce) || n.inputs.size() < 2)
      return false;
    const PlanNode& second = plan_.nodes[n.inputs[1].node];
    if (!second.is_constant(n.inputs[1].output)) return false;
    const Tensor& axes = second.constants[n.inputs[1].output];
    return rows == RowRule::kReshape || axes.num_elements() == 1;  // two axes may be equal
  }

  void PruneTransitiveEdges() {
    if (absl::c_none_of(plan_.nodes, ControlEdgePruner::MayPrune)) return;
    uses_ = PlanUses(plan_);
    for (size_t i = 0; i < count_; ++i) {
      if (!MayPrune(plan_.nodes[i]) || uses_.Escapes(static_cast<int>(i)) ||
          !CannotFail(plan_.nodes[i])) {
        continue;
      }
      PlanNode& n = plan_.nodes[i];
      for (size_t k = n.controls.size(); k-- > 0;) {
        std::vector<uint64_t> added(words_, 0);
        AddEffectsBefore(n.controls[k], n, added.data());
        const std::optional<std::set<int>> narrowed = NodesNarrowedBy(added, static_cast<int>(i));
        if (!narrowed) continue;
        n.controls.erase(n.controls.begin() + static_cast<int64_t>(k));
        for (const int id : *narrowed) RecomputeEffects(id);
      }
    }
  }

  void RecomputeEffects(int id) {
    uint64_t* const before = effects_before_.data() + static_cast<size_t>(id) * words_;
    std::fill_n(before, words_, 0);
    AddAllEffectsBefore(plan_.nodes[id], plan_.nodes[id].controls.size(), before);
  }

  // Returns the nodes whose sets shrink if `node` loses an edge that contributes `added`: the node
  // itself, and its successors up to the point where other paths contribute the same. Returns
  // nothing if the change would be observable at one of them, or if there are too many.
  std::optional<std::set<int>> NodesNarrowedBy(const std::vector<uint64_t>& added, int node) const {
    const int loop = plan_.nodes[node].loop;
    std::set<int> narrowed = {node}, next;
    const auto add_users = [&](int of) {
      for (const PlanUse& use : uses_.Of(of)) {
        if (use.is_edge()) next.insert(use.user);
      }
    };
    add_users(node);
    std::vector<uint64_t> others(words_);
    while (!next.empty()) {
      const int id = *next.begin();  // all its inputs among these have been visited
      const PlanNode& n = plan_.nodes[id];
      next.erase(next.begin());
      if (!controlled_.contains(id)) {
        if (n.inputs.size() + n.controls.size() > kMaxControls) return std::nullopt;
        absl::c_fill(others, 0);
        const auto add = [&](int other) {
          if (!narrowed.contains(other) && !controlled_.contains(other))
            AddEffectsBefore(other, n, others.data());
        };
        for (const PlanValue& v : n.inputs) add(v.node);
        for (const int other : n.controls) add(other);
        if (ContainsAll(others, added)) continue;
        const bool may_narrow = n.kind == PlanNode::Kind::kOp && n.loop == loop &&
                                n.value_loop == loop && bit_of_[id] < 0 && !n.is_constant(0) &&
                                (OnlyComputes(n) || n.is_no_op()) && CannotFail(n);
        if (!may_narrow) return std::nullopt;
      }
      if (uses_.Escapes(id) || narrowed.size() == kMaxNarrowed) return std::nullopt;
      narrowed.insert(id);
      add_users(id);
    }
    return narrowed;
  }

  static bool ContainsAll(const std::vector<uint64_t>& set, const std::vector<uint64_t>& of) {
    for (size_t w = 0; w < set.size(); ++w) {
      if ((of[w] & ~set[w]) != 0) return false;
    }
    return true;
  }

  // Assigns a bit to each effect, then one to each loop. Returns false if there would be too many.
  bool NumberEffects() {
    bit_of_.assign(count_, -1);
    const bool reads_count = absl::c_any_of(plan_.nodes, HasEffect);
    if (!reads_count) KeepRequiredReads();
    for (size_t i = 0; i < count_; ++i) {
      if (!IsObservable(plan_.nodes[i], reads_count)) continue;
      bit_of_[i] = static_cast<int>(effects_.size());
      effects_.push_back(static_cast<int>(i));
    }
    words_ = (effects_.size() + plan_.loops.size() + 63) / 64;
    return count_ * words_ * sizeof(uint64_t) <= kMaxBytes;
  }

  // A read at the start of a control edge, or of a path to one, reports an uninitialized variable
  // even if the edge is dropped.
  void KeepRequiredReads() {
    std::vector<bool> is_waited_for(count_, false);
    for (const PlanNode& n : plan_.nodes) {
      for (const int control : n.controls) is_waited_for[control] = true;
    }
    for (size_t i = count_; i-- > 0;) {
      PlanNode& n = plan_.nodes[i];
      if (!is_waited_for[i]) continue;
      n.must_run = IsRead(n);
      for (const PlanValue& v : n.inputs) is_waited_for[v.node] = true;
    }
  }

  // Finds the nodes that have a stack's handle, and the nodes that come before one of them.
  void FindStacks() {
    has_stack_.assign(count_, false);
    for (size_t i = 0; i < count_; ++i) {
      const PlanNode& n = plan_.nodes[i];
      has_stack_[i] = MakesStack(n) || absl::c_any_of(n.inputs, [&](const PlanValue& v) {
                        const DataType type = plan_.nodes[v.node].type(v.output);
                        return has_stack_[v.node] && IsHandle(type);
                      });
    }
    leads_to_stack_.assign(count_, false);
    for (size_t i = count_; i-- > 0;) {
      const PlanNode& n = plan_.nodes[i];
      if (!has_stack_[i] && !leads_to_stack_[i]) continue;
      for (const PlanValue& v : n.inputs) leads_to_stack_[v.node] = true;
      for (const int control : n.controls) leads_to_stack_[control] = true;
    }
  }

  // Adds the effects that end before `n` starts because it waits for node `on`.
  void AddEffectsBefore(int on, const PlanNode& n, uint64_t* to) const {
    const uint64_t* const before = effects_before_.data() + static_cast<size_t>(on) * words_;
    for (size_t w = 0; w < words_; ++w) to[w] |= before[w];
    const auto set = [&](size_t bit) { to[bit / 64] |= uint64_t{1} << (bit % 64); };
    if (bit_of_[on] >= 0) set(static_cast<size_t>(bit_of_[on]));
    const int loop = plan_.nodes[on].value_loop;
    if (loop >= 0 && (n.loop < 0 || !plan_.IsInside(n.loop, loop)))
      set(effects_.size() + static_cast<size_t>(loop));
  }

  // Adds the same for all inputs and control inputs except control `left_out`.
  void AddAllEffectsBefore(const PlanNode& n, size_t left_out, uint64_t* to) const {
    for (const PlanValue& v : n.inputs) AddEffectsBefore(v.node, n, to);
    for (size_t k = 0; k < n.controls.size(); ++k) {
      if (k != left_out) AddEffectsBefore(n.controls[k], n, to);
    }
  }

  bool IsRedundant(int control, int to, const std::vector<uint64_t>& others) const {
    std::vector<uint64_t> added(words_, 0);
    AddEffectsBefore(control, plan_.nodes[to], added.data());
    for (size_t w = 0; w < words_; ++w) {
      for (uint64_t more = added[w] & ~others[w]; more != 0; more &= more - 1) {
        const size_t bit = w * 64 + static_cast<size_t>(__builtin_ctzll(more));
        if (bit >= effects_.size()) return false;
        if (!IsStackOp(plan_.nodes[effects_[bit]]) || leads_to_stack_[to]) return false;
      }
    }
    return true;
  }

  PlanGraph& plan_;
  const ControlledConstants& controlled_;
  const size_t count_;
  size_t words_ = 0;                              // words per set
  std::vector<int> bit_of_;                       // by node; -1 if it has no observable effect
  std::vector<int> effects_;                      // by bit
  std::vector<uint64_t> effects_before_;          // by node: the effects that end before it starts
  std::vector<bool> has_stack_, leads_to_stack_;  // by node
  PlanUses uses_;
};

}  // namespace

// A controlled constant that has no control inputs afterward becomes a constant.
void PruneControlEdges(PlanGraph& plan, const PassContext& context) {
  ControlEdgePruner(plan, FindControlledConstants(plan, context.env)).Run();
}

}  // namespace weir
