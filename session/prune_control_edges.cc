#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weir/kernels/fused_elementwise.h"
#include "weir/session/effects.h"
#include "weir/session/plan.h"
#include "weir/session/variable_use.h"

// Waiting that orders nothing. In graphs with Python's gradients, no gradient of an op is handed on
// before all of that op's gradients are there: an Identity for each waits for a group of all. Every
// node that is waited for, and every one that waits, is kept from joining others (fusion.h).
//
// What can be told from outside about the order of a step is the order of its effects, reads of
// variables among them if there are others. When a node runs that only computes cannot be told; an
// edge to it matters for what comes before it and after it: effects that end before the edge's
// source come before the effects that wait for its target. So for each node the set of effects is
// found that end before it begins, along all edges. An edge that a computing node waits by, and
// that adds nothing to what its other edges bring, is dropped: all sets stay what they are, and
// with them the order of any two effects.
//
// Who uses a value of a loop outside of it waits for all of the loop, which counts as an effect.
// Within a loop an iteration begins when the one before it has ended, so that the sets need not
// look around the corner.
//
// An edge that does bring something to a node, as the one to the difference in a variance's
// gradient brings the reads behind the gradient, may still be one that nobody can tell: whoever
// takes the node's value waits for the same by another of its inputs, or only computes and so do
// those behind it, up to where it comes by another way, and the step returns none of them. Then it
// is dropped as well. The sets of these nodes get smaller, no other one does, and they themselves
// have no effect. But they must be some that refuse nothing: others may be what an assertion has to
// come before.
//
// Python ties each of a loop's constants to the loop, and what is computed of several of them, such
// as where a gradient is cut, waits by each. Such nodes of which the values are known already
// (specialize.cc) have no set that counts: an edge to one is dropped if all those who take what
// follows from it, and are none themselves, wait for the same by others that are none. So their
// sets stay what they are, and the values are constants from then on.
//
// In a loop the gradients of an op take different values from stacks, and a group orders one's Pop
// before the other gradient. A stack can be seen by nobody but those who have its handle: if none
// of them comes after the node, the edge tells nothing either.
namespace weir {

namespace {

// The sets are bits, 32 MB of them at most: a hundred thousand nodes may have 2,600 effects.
constexpr size_t kMostBytes = size_t{32} << 20;

bool IsRead(const PlanNode& n) { return n.kind == PlanNode::Kind::kRead || n.Is("ReadVariableOp"); }

// It may be told when it runs. `reads_count`: a read's moment matters.
bool IsMoment(const PlanNode& n, bool reads_count) {
  if (n.is_exit()) return true;
  if (IsRead(n)) return reads_count;
  if (n.kind != PlanNode::Kind::kOp || n.is_constant(0)) return false;
  if (n.Is("VarHandleOp")) return false;
  if (n.Is("NoOp", "ControlTrigger")) return n.may_be_dead;
  return !OnlyComputes(n);
}

bool MakesStack(const PlanNode& n) { return n.Is("Stack", "StackV2"); }
bool ConcernsStackAlone(const PlanNode& n) {
  return MakesStack(n) || n.Is("StackPush", "StackPushV2", "StackPop", "StackPopV2");
}

class Waits {
 public:
  Waits(PlanGraph& plan, const ControlledConstants& waiting)
      : plan_(plan), waiting_(waiting), count_(plan.nodes.size()) {}

  void Drop() {
    if (absl::c_none_of(plan_.nodes, Waits::MayDrop) || !NumberMoments()) return;
    FindStacks();
    before_.assign(count_ * words_, 0);
    std::vector<uint64_t> others(words_);
    for (size_t i = 0; i < count_; ++i) {
      PlanNode& n = plan_.nodes[i];
      if (MayDrop(n)) {
        for (size_t k = n.controls.size(); k-- > 0;) {
          absl::c_fill(others, 0);
          AddAll(n, k, others.data());
          if (AddsNothing(n.controls[k], static_cast<int>(i), others))
            n.controls.erase(n.controls.begin() + static_cast<int64_t>(k));
        }
      }
      AddAll(n, n.controls.size(), before_.data() + i * words_);
    }
    DropWhatUsersWaitFor();
    for (const auto& [i, values] : waiting_) {
      PlanNode& n = plan_.nodes[i];
      const auto is_constant = [this](const PlanValue& v) {
        return plan_.nodes[v.node].is_constant(v.output);
      };
      if (n.controls.empty() && absl::c_all_of(n.inputs, is_constant)) n.set_constants(values);
    }
  }

 private:
  // Each edge of such a node is compared with all others.
  static constexpr size_t kMostControls = 16;
  // Nodes that lose what an edge brings.
  static constexpr size_t kMostNarrowed = 24;

  static bool MayDrop(const PlanNode& n) {
    return !n.controls.empty() && n.controls.size() <= kMostControls &&
           n.kind == PlanNode::Kind::kOp && n.loop == n.value_loop && !n.is_constant(0) &&
           OnlyComputes(n);
  }

  bool RefusesNothing(const PlanNode& n) const {
    if (n.kernel.is_constant() || n.Is("Identity", "NoOp")) return true;
    if (n.node->num_outputs() != 1 || !n.shapes[0].IsFullyDefined()) return false;
    const bool knows_all = absl::c_all_of(n.inputs, [&](const PlanValue& v) {
      return plan_.nodes[v.node].shapes[v.output].IsFullyDefined();
    });
    if (!knows_all) return false;
    const DataType type = n.node->output_type(0);
    if (FindFusableOp(n.node->op_name(), n.inputs.size(), type)) return true;
    if (!n.Is("Reshape", "Sum", "Mean", "Max", "Min")) return false;
    const PlanNode& second = plan_.nodes[n.inputs[1].node];
    if (!second.is_constant(n.inputs[1].output)) return false;
    const Tensor& axes = second.constants[n.inputs[1].output];
    return n.Is("Reshape") || axes.num_elements() == 1;  // two may be the same
  }

  void DropWhatUsersWaitFor() {
    if (absl::c_none_of(plan_.nodes, Waits::MayDrop)) return;
    users_.assign(count_, {});
    for (size_t i = 0; i < count_; ++i) {
      for (const PlanValue& v : plan_.nodes[i].inputs)
        users_[v.node].push_back(static_cast<int>(i));
      for (const int control : plan_.nodes[i].controls)
        users_[control].push_back(static_cast<int>(i));
    }
    leaves_.assign(count_, false);
    for (const PlanGraph::Carry& c : plan_.carries) leaves_[c.next.node] = true;
    for (const PlanValue& v : plan_.fetches) leaves_[v.node] = true;
    for (const int target : plan_.targets) leaves_[target] = true;
    for (size_t i = 0; i < count_; ++i) {
      if (leaves_[i] || !MayDrop(plan_.nodes[i]) || !RefusesNothing(plan_.nodes[i])) continue;
      PlanNode& n = plan_.nodes[i];
      for (size_t k = n.controls.size(); k-- > 0;) {
        std::vector<uint64_t> added(words_, 0);
        Add(n.controls[k], n, added.data());
        const std::optional<std::set<int>> narrowed = NarrowedBy(added, static_cast<int>(i));
        if (!narrowed) continue;
        n.controls.erase(n.controls.begin() + static_cast<int64_t>(k));
        for (const int id : *narrowed) FindBefore(id);
      }
    }
  }

  void FindBefore(int id) {
    uint64_t* const before = before_.data() + static_cast<size_t>(id) * words_;
    std::fill_n(before, words_, 0);
    AddAll(plan_.nodes[id], plan_.nodes[id].controls.size(), before);
  }

  // The node, if it loses an edge that brings `added`, and those behind it that lose it by that:
  // up to where it comes by other ways. Nothing if it counts for one of them, or there are many.
  std::optional<std::set<int>> NarrowedBy(const std::vector<uint64_t>& added, int node) const {
    const int loop = plan_.nodes[node].loop;
    std::set<int> narrowed = {node}, next(users_[node].begin(), users_[node].end());
    std::vector<uint64_t> others(words_);
    while (!next.empty()) {
      const int id = *next.begin();  // all that it takes of these have been looked at
      const PlanNode& n = plan_.nodes[id];
      next.erase(next.begin());
      if (!waiting_.contains(id)) {
        if (n.inputs.size() + n.controls.size() > kMostControls) return std::nullopt;
        absl::c_fill(others, 0);
        const auto add = [&](int other) {
          if (!narrowed.contains(other) && !waiting_.contains(other)) Add(other, n, others.data());
        };
        for (const PlanValue& v : n.inputs) add(v.node);
        for (const int other : n.controls) add(other);
        if (HasAll(others, added)) continue;
        const bool may_lose = n.kind == PlanNode::Kind::kOp && n.loop == loop &&
                              n.value_loop == loop && bit_of_[id] < 0 && !n.is_constant(0) &&
                              (OnlyComputes(n) || n.Is("NoOp")) && RefusesNothing(n);
        if (!may_lose) return std::nullopt;
      }
      if (leaves_[id] || narrowed.size() == kMostNarrowed) return std::nullopt;
      narrowed.insert(id);
      next.insert(users_[id].begin(), users_[id].end());
    }
    return narrowed;
  }

  static bool HasAll(const std::vector<uint64_t>& set, const std::vector<uint64_t>& of) {
    for (size_t w = 0; w < set.size(); ++w) {
      if ((of[w] & ~set[w]) != 0) return false;
    }
    return true;
  }

  // A bit for each moment, then one for each loop. False if there would be too many.
  bool NumberMoments() {
    bit_of_.assign(count_, -1);
    const bool reads_count = absl::c_any_of(plan_.nodes, HasEffect);
    if (!reads_count) KeepReads();
    for (size_t i = 0; i < count_; ++i) {
      if (!IsMoment(plan_.nodes[i], reads_count)) continue;
      bit_of_[i] = static_cast<int>(moments_.size());
      moments_.push_back(static_cast<int>(i));
    }
    words_ = (moments_.size() + plan_.loops.size() + 63) / 64;
    return count_ * words_ * sizeof(uint64_t) <= kMostBytes;
  }

  // A read that somebody waits for, or for what is made of it, says if there is no value, whatever
  // becomes of the wait.
  void KeepReads() {
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

  // Who has a stack's handle, or comes before somebody who has one.
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

  // What ends before `n` begins because it waits for node `on`.
  void Add(int on, const PlanNode& n, uint64_t* to) const {
    const uint64_t* const before = before_.data() + static_cast<size_t>(on) * words_;
    for (size_t w = 0; w < words_; ++w) to[w] |= before[w];
    const auto set = [&](size_t bit) { to[bit / 64] |= uint64_t{1} << (bit % 64); };
    if (bit_of_[on] >= 0) set(static_cast<size_t>(bit_of_[on]));
    const int loop = plan_.nodes[on].value_loop;
    if (loop >= 0 && (n.loop < 0 || !plan_.IsInside(n.loop, loop)))
      set(moments_.size() + static_cast<size_t>(loop));
  }

  // The same for all that it waits for, but for control `left_out`.
  void AddAll(const PlanNode& n, size_t left_out, uint64_t* to) const {
    for (const PlanValue& v : n.inputs) Add(v.node, n, to);
    for (size_t k = 0; k < n.controls.size(); ++k) {
      if (k != left_out) Add(n.controls[k], n, to);
    }
  }

  bool AddsNothing(int control, int to, const std::vector<uint64_t>& others) const {
    std::vector<uint64_t> added(words_, 0);
    Add(control, plan_.nodes[to], added.data());
    for (size_t w = 0; w < words_; ++w) {
      for (uint64_t more = added[w] & ~others[w]; more != 0; more &= more - 1) {
        const size_t bit = w * 64 + static_cast<size_t>(__builtin_ctzll(more));
        if (bit >= moments_.size()) return false;
        if (!ConcernsStackAlone(plan_.nodes[moments_[bit]]) || leads_to_stack_[to]) return false;
      }
    }
    return true;
  }

  PlanGraph& plan_;
  const ControlledConstants& waiting_;
  const size_t count_;
  size_t words_ = 0;                              // of a set
  std::vector<int> bit_of_;                       // by node; -1 if it is no moment
  std::vector<int> moments_;                      // by bit
  std::vector<uint64_t> before_;                  // by node: what ends before it begins
  std::vector<bool> has_stack_, leads_to_stack_;  // by node
  std::vector<IndexList> users_;                        // by node
  std::vector<bool> leaves_;                      // the iteration, or the step
};

}  // namespace

void PruneControlEdges(PlanGraph& plan, const ControlledConstants& waiting) { Waits(plan, waiting).Drop(); }

}  // namespace weir
