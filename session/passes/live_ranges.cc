#include "weir/session/passes/live_ranges.h"

#include <algorithm>
#include <map>
#include <utility>

#include "weir/session/plan/disjoint_sets.h"

namespace weir {

namespace {

constexpr size_t kLargeValueBytes = 65536;  // of an assigned value, in bytes

// Returns the input whose memory output k shares; -1 if there is none.
int AliasedInput(const PlanNode& n, int output) {
  const int k = n.def == nullptr ? -1 : n.def->AliasedInput(output);
  return k < static_cast<int>(n.inputs.size()) ? k : -1;
}

}  // namespace

bool CanBeInArena(const PlanGraph& graph, const PlanNode& n, int k) {
  if (n.kind == PlanNode::Kind::kRead) return false;
  if (n.kind == PlanNode::Kind::kOp) {
    if (n.Is(VariableUse::kReads) || n.step_invariant) return false;
    if (AliasedInput(n, k) >= 0 && !graph.IsLoopVariable(n)) return false;
    if (!IsPlain(n.node->output_type(k)) || IsRef(n.node->output_type(k))) return false;
    if (n.is_host_output(k) && !n.device->is_host()) return false;
  }
  // Implausibly large values are left to the kernel, whose allocation reports the error.
  constexpr int64_t kMaxElements = int64_t{1} << 40;
  return n.shapes[k].IsFullyDefined() && n.shapes[k].num_elements() <= kMaxElements &&
         BytesOf(n, k) > 0;
}

size_t BytesOf(const PlanNode& n, int k) {
  return static_cast<size_t>(n.shapes[k].num_elements()) * ElementSize(n.node->output_type(k));
}

namespace {

class LiveRangeAnalysis {
 public:
  LiveRangeAnalysis(const PlanGraph& graph, const Lowering& l)
      : graph_(graph), order_(l.order), slots_(l.slots), tasks_(l.tasks) {}

  LiveRanges Run() {
    out_.class_of.assign(slots_.count, -1);
    out_.swapped.resize(graph_.loops.size());
    out_.classes.reserve(slots_.count);
    const auto use = [&](int c, int node) {
      if (c >= 0) AddUse(out_.classes[c], node);
    };
    for (const int i : order_.order) {
      const PlanNode& n = graph_.nodes[i];
      for (const PlanValue& v : n.inputs) use(out_.class_of[slots_.of(v)], i);
      for (int k = 0; k < n.num_outputs(); ++k) {
        int& c = out_.class_of[slots_.of(i, k)];
        if (const int in = AliasedInput(n, k); in >= 0 && !graph_.IsLoopVariable(n)) {
          c = out_.class_of[slots_.of(n.inputs[in])];
        } else {
          c = static_cast<int>(out_.classes.size());
          out_.classes.emplace_back();
          out_.classes[c].loop = n.loop;
          out_.classes[c].root_slot = slots_.of(i, k);
          out_.classes[c].is_variable = graph_.IsLoopVariable(n);
          out_.classes[c].overwritten_in = out_.classes[c].is_variable ? n.value_loop : n.loop;
          if (StartsIteration(graph_, n)) {
            out_.classes[c].own_block = true;
            out_.classes[c].merge = i;
          }
        }
        use(c, i);
      }
    }
    PlaceVariables();
    for (const int i : order_.order) {
      for (const PlanValue& v : graph_.nodes[i].inputs) {
        if (graph_.nodes[v.node].kind == PlanNode::Kind::kCarry)
          carry_users_[slots_.first[v.node]].push_back(i);
      }
    }
    for (const PlanGraph::Carry& carry : graph_.carries) {
      if (!graph_.IsLoopVariable(graph_.nodes[carry.carry])) ExtendLoopCarried(carry);
    }
    for (const PlanValue& v : graph_.fetches) {
      if (const int c = out_.class_of[slots_.of(v)]; c >= 0) out_.classes[c].escapes = true;
    }
    if (graph_.writes_state) {
      for (const int i : order_.order) MarkLargeAssignment(graph_.nodes[i]);
    }
    if (num_groups_ > 0) MergeLiveRanges();
    return std::move(out_);
  }

 private:
  // Marks the value that a node assigns as escaping, if it is large.
  void MarkLargeAssignment(const PlanNode& n) {
    if (n.loop >= 0 || n.inputs.size() != 2 || !n.Is(VariableUse::kReplaces)) return;
    const PlanValue& v = n.inputs[1];
    const PlanNode& maker = graph_.nodes[v.node];
    const int c = out_.class_of[slots_.of(v)];
    if (c >= 0 && CanBeInArena(graph_, maker, v.output) &&
        BytesOf(maker, v.output) >= kLargeValueBytes)
      out_.classes[c].escapes = true;
  }

  static void AddUse(ValueClass& cls, int task, int position) {
    cls.last_position = std::max(cls.last_position, position);
    for (auto& [t, p] : cls.users) {
      if (t == task) {
        p = std::max(p, position);
        return;
      }
    }
    cls.users.emplace_back(task, position);
  }

  // The node may use the value up to the end of the outermost loop that contains the node but not
  // the value.
  void AddUse(ValueClass& cls, int node) const {
    const int around = graph_.OutermostLoopExcluding(node, cls.loop);
    if (around >= 0) {
      AddUse(cls, tasks_.LastTask(around, node), order_.loops[around].second);
    } else {
      AddUse(cls, tasks_.task_of[node], order_.position[node]);
    }
  }

  struct LoopVariable {
    const PlanGraph::Carry* carry;
    int loop, self, next;  // classes
  };

  // Decides which variables of structured loops are placed in the arena.
  void PlaceVariables() {
    std::vector<LoopVariable> variables;
    for (const PlanGraph::Carry& c : graph_.carries) {
      const PlanNode& n = graph_.nodes[c.carry];
      if (n.removed || !graph_.IsLoopVariable(n)) continue;
      variables.push_back({&c, n.value_loop, out_.class_of[slots_.first[c.carry]],
                           out_.class_of[slots_.of(c.next)]});
    }
    if (variables.empty()) return;
    GroupClasses(variables);
    SeparateVariables(variables);
    std::vector<int> num_next_of(out_.classes.size(), 0);
    for (const LoopVariable& v : variables) {
      if (v.next >= 0) ++num_next_of[v.next];
    }
    for (const LoopVariable& v : variables) {
      if (v.next == v.self) continue;
      ValueClass& self = out_.classes[v.self];
      const bool defined_inside = v.next >= 0 && graph_.IsInside(out_.classes[v.next].loop, v.loop);
      if (defined_inside && num_next_of[v.next] == 1 &&
          CanSwap(*v.carry, self, out_.classes[v.next])) {
        self.own_block = self.swapped = true;
        out_.classes[v.next].own_block = out_.classes[v.next].swapped = true;
        out_.swapped[v.loop].push_back({out_.classes[v.next].root_slot, self.root_slot});
      } else {
        self.outside_arena = true;
        if (defined_inside) out_.classes[v.next].outside_arena = true;
      }
    }
  }

  // A group is a variable with all classes that may hold its value: the initial value, and the next
  // value, which may be another variable.
  void GroupClasses(const std::vector<LoopVariable>& variables) {
    DisjointSets sets(static_cast<int>(out_.classes.size()));
    const auto unite = [&](int a, int b) {
      if (b >= 0) sets.Join(a, b);
    };
    for (const LoopVariable& v : variables) {
      const PlanValue& init = graph_.nodes[v.carry->carry].inputs[0];
      unite(v.self, out_.class_of[slots_.of(init)]);
      unite(v.self, v.next);
    }
    group_of_.assign(out_.classes.size(), -1);
    std::vector<int> number(out_.classes.size(), -1);
    for (const LoopVariable& v : variables) {
      int& n = number[sets.Find(v.self)];
      if (n < 0) n = num_groups_++;
    }
    for (size_t c = 0; c < out_.classes.size(); ++c)
      group_of_[c] = number[sets.Find(static_cast<int>(c))];
  }

  // If the next value of a variable is another variable, the value of that other variable must not
  // be in a block that the next iteration overwrites. It may be the other variable's initial value,
  // where the other variable belongs to a nested loop and has not been replaced yet. So every class
  // of the group that is overwritten in each iteration of this loop is allocated outside the arena.
  void SeparateVariables(const std::vector<LoopVariable>& variables) {
    absl::flat_hash_set<std::pair<int, int>> assigned_groups;  // group and loop
    for (const LoopVariable& v : variables) {
      if (v.next < 0 || v.next == v.self || !out_.classes[v.next].is_variable) continue;
      out_.classes[v.next].outside_arena = true;
      assigned_groups.emplace(group_of_[v.next], v.loop);
    }
    for (size_t c = 0; c < out_.classes.size() && !assigned_groups.empty(); ++c) {
      if (group_of_[c] < 0) continue;
      for (int l = out_.classes[c].overwritten_in; l >= 0; l = graph_.loops[l].parent) {
        if (assigned_groups.contains({group_of_[c], l})) out_.classes[c].outside_arena = true;
      }
    }
  }

  bool CanSwap(const PlanGraph::Carry& carry, const ValueClass& self,
               const ValueClass& next) const {
    const PlanNode &variable = graph_.nodes[carry.carry], &n = graph_.nodes[carry.next.node];
    return !self.outside_arena && !next.outside_arena && !next.is_variable &&
           next.root_slot == slots_.of(carry.next) && variable.device == n.device &&
           CanBeInArena(graph_, variable, 0) && CanBeInArena(graph_, n, carry.next.output) &&
           variable.shapes[0] == n.shapes[carry.next.output] &&
           BytesOf(variable, 0) <= kMaxCopiedBytes;
  }

  // All classes of a group are conservatively kept live as long as any of them. A class defined in
  // a loop around the user's stays live until the user's loop ends.
  void MergeLiveRanges() {
    std::vector<ValueClass> groups(num_groups_);
    std::vector<bool> has_loop(num_groups_, false);
    for (size_t c = 0; c < out_.classes.size(); ++c) {
      const int g = group_of_[c];
      if (g < 0) continue;
      groups[g].loop = has_loop[g] ? graph_.CommonLoop(groups[g].loop, out_.classes[c].loop)
                                   : out_.classes[c].loop;
      has_loop[g] = true;
    }
    for (size_t c = 0; c < out_.classes.size(); ++c) {
      if (group_of_[c] < 0) continue;
      ValueClass& group = groups[group_of_[c]];
      group.escapes |= out_.classes[c].escapes;
      int end = -1;
      for (int l = out_.classes[c].loop; l != group.loop; l = graph_.loops[l].parent)
        end = order_.loops[l].second;
      for (const auto& [task, position] : out_.classes[c].users)
        AddUse(group, task, std::max(position, end));
    }
    for (size_t c = 0; c < out_.classes.size(); ++c) {
      if (group_of_[c] < 0) continue;
      out_.classes[c].escapes = groups[group_of_[c]].escapes;
      for (const auto& [task, position] : groups[group_of_[c]].users)
        AddUse(out_.classes[c], task, position);
    }
  }

  void ExtendLoopCarried(const PlanGraph::Carry& carry) {
    const int next = carry.next.node, from = slots_.first[next], to = slots_.first[carry.carry];
    if (order_.position[next] < 0 || out_.class_of[from] < 0) return;
    ValueClass& cls = out_.classes[out_.class_of[from]];
    const int loop = graph_.nodes[next].loop;
    if (graph_.OutermostLoopExcluding(next, cls.loop) >= 0)
      return;  // a loop-invariant value: never overwritten
    AddUse(cls, tasks_.LastTask(loop, next), order_.loops[loop].second);
    // Its own Merge uses an unchanged value in place.
    const std::vector<int>& consumers = carry_users_[to];
    const bool merged = cls.merge >= 0 && cls.loop == loop;
    const bool copied = !std::all_of(consumers.begin(), consumers.end(), [&](int i) {
      return merged ? i == cls.merge : StartsIteration(graph_, graph_.nodes[i]);
    });
    if (copied) {
      out_.copied.insert(to);
    } else {
      cls.own_block = true;
    }
  }

  const PlanGraph& graph_;
  const NodeOrder& order_;
  const Slots& slots_;
  const TaskGraph& tasks_;
  LiveRanges out_;
  std::vector<int> group_of_;  // by class; -1: in no group
  int num_groups_ = 0;
  std::map<int32_t, std::vector<int>> carry_users_;  // of loop-carried values, by slot
};

}  // namespace

LiveRanges FindLiveRanges(const PlanGraph& graph, const Lowering& lowering) {
  return LiveRangeAnalysis(graph, lowering).Run();
}

}  // namespace weir
