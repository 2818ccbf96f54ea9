#include <algorithm>
#include <map>
#include <queue>

#include "absl/container/flat_hash_set.h"
#include "weir/session/disjoint_sets.h"
#include "weir/session/plan.h"

// Memory planning. Every value whose shape is known before the step gets an offset in an arena that
// a running step owns, so a step allocates nothing for it. Values that share memory by construction
// (an Identity, a Reshape) form a class with one offset. Its live range extends from the class's
// first definition to its last use.
//
// The arena is divided into blocks. In the static order, a new value is assigned
//   1. the block of an input whose live range ends at this node, if the kernel may overwrite it (in
//   place);
//   2. else the smallest block that fits and whose last value is dead, unless that would waste
//   more than half of it;
//   3. else a new block.
// "Dead" must hold for every interleaving of parallel tasks: all users of the old value come before
// the new value's node, by their order in one task or by the order of tasks. A bit matrix of task
// reachability answers the latter. Values that leave the step (fetched ones and those that share
// memory with them) are allocated outside the arena. So are values of unknown size, strings and
// handles, and large values that are assigned to a variable, which takes over their memory. For
// other values that a variable or a queue stores, the kernel that stores them makes a copy.
//
// Loops run the same part of the order many times. A value from outside that is used inside stays
// live until the loop ends. A loop-carried value stays live past the end of an iteration: it gets a
// block that nothing else reuses, and so does the Merge that receives it, which copies it there
// before anything else of the iteration runs (larger values are allocated outside the arena
// instead, and are not copied). If a Merge's own value is the next value of another Merge, it is
// copied between iterations.
//
// A structured loop copies nothing. A small loop variable and its next value get a block each, and
// between two iterations the two are swapped, values and blocks. Every other loop-carried value, a
// large one or one that is the next value of several variables, is allocated outside the arena.
// Initially a variable holds the value that entered the loop, in that value's memory; so everything
// that may hold the variable's value stays live as long as the variable is used.
namespace weir {

namespace {

constexpr size_t kMaxCopiedBytes =
    65536;  // most bytes of a value that a Merge copies in every iteration
constexpr size_t kLargeValueBytes = 65536;  // of an assigned value, in bytes

class MemoryPlanner {
 public:
  MemoryPlanner(const PlanGraph& graph, const ScheduledOrder& s, const PlanEnvironment& env,
                Plan* plan)
      : graph_(graph), schedule_(s), env_(env), plan_(*plan) {}

  void Run() {
    FindClasses();
    plan_.placements.reserve(classes_.size());
    FindTaskReachability();
    for (const int i : schedule_.order) {
      ExpireBlocks(schedule_.position[i]);
      for (int k = 0; k < graph_.nodes[i].num_outputs(); ++k) PlaceOutput(i, k);
    }
    AssignOffsets();
  }

 private:
  struct Class {
    bool escapes = false;
    bool own_block = false;                     // no other value reuses its block
    bool outside_arena = false;                 // allocated outside the arena
    int32_t root_slot = -1;                     // the slot of the node that defines it
    bool is_variable = false, swapped = false;  // of a structured loop; swapped with its next value
    int merge = -1;           // the Merge whose output it is, if that receives a loop-carried value
    int loop = -1;            // of the node that defines it
    int overwritten_in = -1;  // the loop whose iterations overwrite it
    int last_position = -1;
    absl::InlinedVector<std::pair<int, int>, 2> users;  // task -> last position in it
    int block = -1;
  };
  struct Block {
    Device* device;
    size_t bytes;
    int occupant;  // class
  };

  int32_t slot(int node, int output) const { return schedule_.slot_of[node] + output; }

  int AliasedInput(const PlanNode& n, int output) const {
    const int k = n.def == nullptr ? -1 : n.def->AliasedInput(output);
    return k < static_cast<int>(n.inputs.size()) ? k : -1;
  }

  void FindClasses() {
    class_of_.assign(plan_.num_slots, -1);
    classes_.reserve(plan_.num_slots);
    const auto use = [&](int c, int node) {
      if (c >= 0)
        AddUse(classes_[c], schedule_.task_of[node], LastUsePosition(classes_[c].loop, node));
    };
    for (const int i : schedule_.order) {
      const PlanNode& n = graph_.nodes[i];
      for (const PlanValue& v : n.inputs) use(class_of_[slot(v.node, v.output)], i);
      for (int k = 0; k < n.num_outputs(); ++k) {
        int& c = class_of_[slot(i, k)];
        if (const int in = AliasedInput(n, k); in >= 0 && !graph_.IsLoopVariable(n)) {
          c = class_of_[slot(n.inputs[in].node, n.inputs[in].output)];
        } else {
          c = static_cast<int>(classes_.size());
          classes_.emplace_back();
          classes_[c].loop = n.loop;
          classes_[c].root_slot = slot(i, k);
          classes_[c].is_variable = graph_.IsLoopVariable(n);
          classes_[c].overwritten_in = classes_[c].is_variable ? n.value_loop : n.loop;
          if (StartsIteration(graph_, n)) {
            classes_[c].own_block = true;
            classes_[c].merge = i;
          }
        }
        use(c, i);
      }
    }
    PlaceVariables();
    for (const int i : schedule_.order) {
      for (const PlanValue& v : graph_.nodes[i].inputs) {
        if (graph_.nodes[v.node].kind == PlanNode::Kind::kCarry)
          carry_users_[slot(v.node, 0)].push_back(i);
      }
    }
    for (const PlanGraph::Carry& carry : graph_.carries) {
      if (!graph_.IsLoopVariable(graph_.nodes[carry.carry])) ExtendLoopCarried(carry);
    }
    for (const int32_t s : plan_.fetch_slots) {
      if (class_of_[s] >= 0) classes_[class_of_[s]].escapes = true;
    }
    if (graph_.writes_state) {
      for (const int i : schedule_.order) MarkLargeAssignment(graph_.nodes[i]);
    }
    if (num_groups_ > 0) MergeLiveRanges();
  }

  // Marks the value that a node assigns as escaping, if it is large.
  void MarkLargeAssignment(const PlanNode& n) {
    if (n.loop >= 0 || n.inputs.size() != 2 || !n.Is(VariableUse::kReplaces)) return;
    const PlanValue& v = n.inputs[1];
    const PlanNode& maker = graph_.nodes[v.node];
    const int c = class_of_[slot(v.node, v.output)];
    if (c >= 0 && CanPlace(maker, v.output) && Bytes(maker, v.output) >= kLargeValueBytes)
      classes_[c].escapes = true;
  }

  static void AddUse(Class& cls, int task, int position) {
    cls.last_position = std::max(cls.last_position, position);
    for (auto& [t, p] : cls.users) {
      if (t == task) {
        p = std::max(p, position);
        return;
      }
    }
    cls.users.emplace_back(task, position);
  }

  // Returns the position up to which `node` may use a value defined in `loop`: the end of the
  // outermost loop that contains `node` but not `loop`.
  int LastUsePosition(int loop, int node) const {
    const int around = graph_.OutermostLoopExcluding(node, loop);
    return around >= 0 ? schedule_.loops[around].second : schedule_.position[node];
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
      variables.push_back({&c, n.value_loop, class_of_[slot(c.carry, 0)],
                           class_of_[slot(c.next.node, c.next.output)]});
    }
    if (variables.empty()) return;
    GroupClasses(variables);
    SeparateVariables(variables);
    std::vector<int> num_next_of(classes_.size(), 0);
    for (const LoopVariable& v : variables) {
      if (v.next >= 0) ++num_next_of[v.next];
    }
    std::vector<bool> is_swapped(plan_.num_slots, false);  // by slot of the variable
    for (const LoopVariable& v : variables) {
      if (v.next == v.self) continue;
      Class& self = classes_[v.self];
      const bool defined_inside = v.next >= 0 && graph_.IsInside(classes_[v.next].loop, v.loop);
      if (defined_inside && num_next_of[v.next] == 1 && CanSwap(*v.carry, self, classes_[v.next])) {
        self.own_block = self.swapped = true;
        classes_[v.next].own_block = classes_[v.next].swapped = true;
        is_swapped[self.root_slot] = true;
        plan_.loops[v.loop].swapped.push_back({classes_[v.next].root_slot, self.root_slot});
      } else {
        self.outside_arena = true;
        if (defined_inside) classes_[v.next].outside_arena = true;
      }
    }
    for (Loop& loop : plan_.loops)
      std::erase_if(loop.moved, [&](const Loop::Move& m) { return is_swapped[m.to]; });
  }

  // A group is a variable with all classes that may hold its value: the initial value, and the next
  // value, which may be another variable.
  void GroupClasses(const std::vector<LoopVariable>& variables) {
    DisjointSets sets(static_cast<int>(classes_.size()));
    const auto unite = [&](int a, int b) {
      if (b >= 0) sets.Join(a, b);
    };
    for (const LoopVariable& v : variables) {
      const PlanValue& init = graph_.nodes[v.carry->carry].inputs[0];
      unite(v.self, class_of_[slot(init.node, init.output)]);
      unite(v.self, v.next);
    }
    group_of_.assign(classes_.size(), -1);
    std::vector<int> number(classes_.size(), -1);
    for (const LoopVariable& v : variables) {
      int& n = number[sets.Find(v.self)];
      if (n < 0) n = num_groups_++;
    }
    for (size_t c = 0; c < classes_.size(); ++c)
      group_of_[c] = number[sets.Find(static_cast<int>(c))];
  }

  // If the next value of a variable is another variable, the value of that other variable must not
  // be in a block that the next iteration overwrites. It may be the other variable's initial value,
  // where the other variable belongs to a nested loop and has not been replaced yet. So every class
  // of the group that is overwritten in each iteration of this loop is allocated outside the arena.
  void SeparateVariables(const std::vector<LoopVariable>& variables) {
    absl::flat_hash_set<std::pair<int, int>> assigned_groups;  // group and loop
    for (const LoopVariable& v : variables) {
      if (v.next < 0 || v.next == v.self || !classes_[v.next].is_variable) continue;
      classes_[v.next].outside_arena = true;
      assigned_groups.emplace(group_of_[v.next], v.loop);
    }
    for (size_t c = 0; c < classes_.size() && !assigned_groups.empty(); ++c) {
      if (group_of_[c] < 0) continue;
      for (int l = classes_[c].overwritten_in; l >= 0; l = graph_.loops[l].parent) {
        if (assigned_groups.contains({group_of_[c], l})) classes_[c].outside_arena = true;
      }
    }
  }

  bool CanSwap(const PlanGraph::Carry& carry, const Class& self, const Class& next) const {
    const PlanNode &variable = graph_.nodes[carry.carry], &n = graph_.nodes[carry.next.node];
    return !self.outside_arena && !next.outside_arena && !next.is_variable &&
           next.root_slot == slot(carry.next.node, carry.next.output) &&
           variable.device == n.device && CanPlace(variable, 0) && CanPlace(n, carry.next.output) &&
           variable.shapes[0] == n.shapes[carry.next.output] &&
           Bytes(variable, 0) <= kMaxCopiedBytes;
  }

  // All classes of a group are conservatively kept live as long as any of them. A class defined in
  // a loop around the user's stays live until the user's loop ends.
  void MergeLiveRanges() {
    std::vector<Class> groups(num_groups_);
    std::vector<bool> has_loop(num_groups_, false);
    for (size_t c = 0; c < classes_.size(); ++c) {
      const int g = group_of_[c];
      if (g < 0) continue;
      groups[g].loop =
          has_loop[g] ? graph_.CommonLoop(groups[g].loop, classes_[c].loop) : classes_[c].loop;
      has_loop[g] = true;
    }
    for (size_t c = 0; c < classes_.size(); ++c) {
      if (group_of_[c] < 0) continue;
      Class& group = groups[group_of_[c]];
      group.escapes |= classes_[c].escapes;
      int end = -1;
      for (int l = classes_[c].loop; l != group.loop; l = graph_.loops[l].parent)
        end = schedule_.loops[l].second;
      for (const auto& [task, position] : classes_[c].users)
        AddUse(group, task, std::max(position, end));
    }
    for (size_t c = 0; c < classes_.size(); ++c) {
      if (group_of_[c] < 0) continue;
      classes_[c].escapes = groups[group_of_[c]].escapes;
      for (const auto& [task, position] : groups[group_of_[c]].users)
        AddUse(classes_[c], task, position);
    }
  }

  void ExtendLoopCarried(const PlanGraph::Carry& carry) {
    const int next = carry.next.node, from = slot(next, 0), to = slot(carry.carry, 0);
    if (schedule_.position[next] < 0 || class_of_[from] < 0) return;
    Class& cls = classes_[class_of_[from]];
    const int loop = graph_.nodes[next].loop;
    if (graph_.OutermostLoopExcluding(next, cls.loop) >= 0)
      return;  // a loop-invariant value: never overwritten
    const int end = schedule_.loops[loop].second;
    cls.last_position = std::max(cls.last_position, end);
    for (auto& [task, position] : cls.users) {
      if (task == schedule_.task_of[next]) position = std::max(position, end);
    }
    // Its own Merge uses an unchanged value in place.
    const std::vector<int>& consumers = carry_users_[to];
    const bool merged = cls.merge >= 0 && cls.loop == loop;
    const bool copied = !std::all_of(consumers.begin(), consumers.end(), [&](int i) {
      return merged ? i == cls.merge : StartsIteration(graph_, graph_.nodes[i]);
    });
    if (!copied) cls.own_block = true;
    for (Loop::Carry& c : plan_.loops[loop].carries) {
      if (c.to == to) c.copied = copied;
    }
  }

  void FindTaskReachability() {
    const size_t n = schedule_.task_predecessors.size();
    if (n < 2) return;
    is_task_before_.assign(n, std::vector<bool>(n, false));
    for (size_t t = 1; t < n; ++t) {  // predecessors have smaller numbers
      is_task_before_[t][0] = true;
      for (const int p : schedule_.task_predecessors[t]) {
        is_task_before_[t][p] = true;
        for (size_t q = 0; q < n; ++q) {
          if (is_task_before_[p][q]) is_task_before_[t][q] = true;
        }
      }
    }
  }

  // Returns true if every user of the class has finished when node i starts; `self` allows node i
  // itself to be one of them.
  bool IsDeadBefore(const Class& c, int i, bool self) const {
    const int task = schedule_.task_of[i], position = schedule_.position[i];
    return std::all_of(c.users.begin(), c.users.end(), [&](const std::pair<int, int>& u) {
      if (u.first == task) return u.second < position || (self && u.second == position);
      return is_task_before_[task][u.first];
    });
  }

  bool CanPlace(const PlanNode& n, int k) const {
    if (n.kind == PlanNode::Kind::kRead) return false;
    if (n.kind == PlanNode::Kind::kOp) {
      if (n.Is(VariableUse::kReads) || n.step_invariant) return false;
      if (AliasedInput(n, k) >= 0 && !graph_.IsLoopVariable(n)) return false;
      if (!IsPlain(n.node->output_type(k)) || IsRef(n.node->output_type(k))) return false;
      if (n.is_host_output(k) && !n.device->is_host()) return false;
    }
    // Implausibly large values are left to the kernel, whose allocation reports the error.
    constexpr int64_t kMaxElements = int64_t{1} << 40;
    return n.shapes[k].IsFullyDefined() && n.shapes[k].num_elements() <= kMaxElements &&
           Bytes(n, k) > 0;
  }

  static DataType TypeOf(const PlanNode& n, int k) { return n.node->output_type(k); }
  static size_t Bytes(const PlanNode& n, int k) {
    return static_cast<size_t>(n.shapes[k].num_elements()) * ElementSize(TypeOf(n, k));
  }

  void PlaceOutput(int i, int k) {
    const PlanNode& n = graph_.nodes[i];
    const int c = class_of_[slot(i, k)];
    if (c < 0 || classes_[c].outside_arena || !CanPlace(n, k)) return;
    if (classes_[c].escapes && !classes_[c].swapped) return;
    const size_t bytes =
        (Bytes(n, k) + Allocator::kAlignment - 1) / Allocator::kAlignment * Allocator::kAlignment;
    const bool own_block = classes_[c].own_block;
    if (own_block && bytes > kMaxCopiedBytes) return;
    int block = own_block ? -1 : InPlaceBlock(i, k);
    if (block < 0 && !own_block) block = ReuseBlock(i, n.device, bytes);
    if (block < 0) {
      block = static_cast<int>(blocks_.size());
      blocks_.push_back({n.device, bytes, c});
    }
    blocks_[block].occupant = c;
    classes_[c].block = block;
    if (!own_block) expiry_.push({classes_[c].last_position, block, c});
    plan_.placements.push_back(
        {slot(i, k), n.device, static_cast<size_t>(block), TypeOf(n, k), n.shapes[k]});
  }

  int InPlaceBlock(int i, int k) const {
    const PlanNode& n = graph_.nodes[i];
    if (n.def == nullptr || !env_.enabled("in_place")) return -1;
    for (const int in : n.def->in_place) {
      if (in >= static_cast<int>(n.inputs.size())) continue;
      const PlanValue& v = n.inputs[in];
      const int c = class_of_[slot(v.node, v.output)];
      if (c < 0 || classes_[c].block < 0 || blocks_[classes_[c].block].occupant != c) continue;
      if (classes_[c].own_block) continue;
      const PlanNode& producer = graph_.nodes[v.node];
      if (producer.device != n.device || !IsDeadBefore(classes_[c], i, true)) continue;
      if (!producer.shapes[v.output].IsFullyDefined() || Bytes(producer, v.output) != Bytes(n, k))
        continue;
      bool read_otherwise = false;
      for (size_t other = 0; other < n.inputs.size(); ++other) {
        const bool listed = std::find(n.def->in_place.begin(), n.def->in_place.end(),
                                      static_cast<int>(other)) != n.def->in_place.end();
        read_otherwise |=
            !listed && class_of_[slot(n.inputs[other].node, n.inputs[other].output)] == c;
      }
      if (!read_otherwise) return classes_[c].block;
    }
    return -1;
  }

  // Frees blocks whose value is dead in the static order; ReuseBlock() checks parallel tasks one by
  // one.
  void ExpireBlocks(int position) {
    while (!expiry_.empty() && expiry_.top().position < position) {
      const Expiry e = expiry_.top();
      expiry_.pop();
      if (blocks_[e.block].occupant == e.occupant) free_.emplace(blocks_[e.block].bytes, e.block);
    }
  }

  int ReuseBlock(int i, Device* device, size_t bytes) {
    constexpr int kMaxTries = 16;
    constexpr size_t kSmall = 4096;
    int tries = 0;
    for (auto it = free_.lower_bound(bytes); it != free_.end() && ++tries <= kMaxTries; ++it) {
      if (it->first > std::max(2 * bytes, kSmall)) break;
      const Block& block = blocks_[it->second];
      if (block.device != device || !IsDeadBefore(classes_[block.occupant], i, false)) continue;
      const int found = it->second;
      free_.erase(it);
      return found;
    }
    return -1;
  }

  // Assigns offsets to the blocks of each device.
  void AssignOffsets() {
    std::vector<size_t> offsets(blocks_.size());
    std::map<Device*, size_t> used;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      offsets[b] = used[blocks_[b].device];
      used[blocks_[b].device] += blocks_[b].bytes;
    }
    for (Plan::Placement& p : plan_.placements) p.offset = offsets[p.offset];
    plan_.arenas.assign(used.begin(), used.end());
  }

  struct Expiry {
    int position, block, occupant;
    bool operator<(const Expiry& o) const { return position > o.position; }
  };

  const PlanGraph& graph_;
  const ScheduledOrder& schedule_;
  const PlanEnvironment& env_;
  Plan& plan_;
  std::vector<int>
      class_of_;  // by slot; -1: not a value that this step computes (constants, feeds)
  std::vector<Class> classes_;
  std::vector<int> group_of_;  // by class; -1: in no group
  int num_groups_ = 0;
  std::map<int32_t, std::vector<int>> carry_users_;  // of loop-carried values, by slot
  std::vector<Block> blocks_;
  std::vector<std::vector<bool>> is_task_before_;  // [task][other]: other comes before task
  std::priority_queue<Expiry> expiry_;
  std::multimap<size_t, int> free_;
};

}  // namespace

void PlanMemory(const PlanGraph& graph, const ScheduledOrder& scheduled, const PlanEnvironment& env,
                Plan* plan) {
  if (env.enabled("plan_memory")) MemoryPlanner(graph, scheduled, env, plan).Run();
}

}  // namespace weir
