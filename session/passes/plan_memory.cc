#include <algorithm>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "weir/session/passes/live_ranges.h"
#include "weir/session/passes/lowering.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/task_reachability.h"

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
// the new value's node, by their order in one task or by the order of tasks (task_reachability.h).
// Values that leave the step (fetched ones and those that share memory with them) are allocated
// outside the arena. So are values of unknown size, strings and handles, and large values that are
// assigned to a variable, which takes over their memory. For other values that a variable or a
// queue stores, the kernel that stores them makes a copy.
//
// live_ranges.h says what loops change.
namespace weir {

namespace {

class MemoryPlanner {
 public:
  MemoryPlanner(const PlanGraph& graph, const PlanEnvironment& env, const Lowering& l)
      : graph_(graph),
        order_(l.order),
        slots_(l.slots),
        tasks_(l.tasks),
        live_(FindLiveRanges(graph, l)),
        reachability_(l.tasks.predecessors),
        block_of_(live_.classes.size(), -1),
        is_in_place_(env.enabled("in_place")) {}

  MemoryPlan Run() {
    out_.placements.reserve(live_.classes.size());
    for (const int i : order_.order) {
      ExpireBlocks(order_.position[i]);
      for (int k = 0; k < graph_.nodes[i].num_outputs(); ++k) PlaceOutput(i, k);
    }
    AssignOffsets();
    out_.swapped = std::move(live_.swapped);
    out_.copied = std::move(live_.copied);
    return std::move(out_);
  }

 private:
  struct Block {
    Device* device;
    size_t bytes;
    int occupant;  // class
  };

  // Returns true if every user of the class has finished when node i starts; `self` allows node i
  // itself to be one of them.
  bool IsDeadBefore(const ValueClass& c, int i, bool self) const {
    const int task = tasks_.task_of[i], position = order_.position[i];
    return std::all_of(c.users.begin(), c.users.end(), [&](const std::pair<int, int>& u) {
      if (u.first == task) return u.second < position || (self && u.second == position);
      return reachability_.IsBefore(u.first, task);
    });
  }

  void PlaceOutput(int i, int k) {
    const PlanNode& n = graph_.nodes[i];
    const int c = live_.class_of[slots_.of(i, k)];
    if (c < 0 || live_.classes[c].outside_arena || !CanBeInArena(graph_, n, k)) return;
    if (live_.classes[c].escapes && !live_.classes[c].swapped) return;
    const size_t bytes =
        (BytesOf(n, k) + Allocator::kAlignment - 1) / Allocator::kAlignment * Allocator::kAlignment;
    const bool own_block = live_.classes[c].own_block;
    if (own_block && bytes > kMaxCopiedBytes) return;
    int block = own_block ? -1 : InPlaceBlock(i, k);
    if (block < 0 && !own_block) block = ReuseBlock(i, n.device, bytes);
    if (block < 0) {
      block = static_cast<int>(blocks_.size());
      blocks_.push_back({n.device, bytes, c});
    }
    blocks_[block].occupant = c;
    block_of_[c] = block;
    if (!own_block) expiry_.push({live_.classes[c].last_position, block, c});
    out_.placements.push_back({slots_.of(i, k), n.device, static_cast<size_t>(block),
                               n.node->output_type(k), n.shapes[k]});
  }

  int InPlaceBlock(int i, int k) const {
    const PlanNode& n = graph_.nodes[i];
    if (n.def == nullptr || !is_in_place_) return -1;
    for (const int in : n.def->in_place) {
      if (in >= static_cast<int>(n.inputs.size())) continue;
      const PlanValue& v = n.inputs[in];
      const int c = live_.class_of[slots_.of(v)];
      if (c < 0 || block_of_[c] < 0 || blocks_[block_of_[c]].occupant != c) continue;
      if (live_.classes[c].own_block) continue;
      const PlanNode& producer = graph_.nodes[v.node];
      if (producer.device != n.device || !IsDeadBefore(live_.classes[c], i, true)) continue;
      if (!producer.shapes[v.output].IsFullyDefined() ||
          BytesOf(producer, v.output) != BytesOf(n, k))
        continue;
      bool read_otherwise = false;
      for (size_t other = 0; other < n.inputs.size(); ++other) {
        const bool listed = std::find(n.def->in_place.begin(), n.def->in_place.end(),
                                      static_cast<int>(other)) != n.def->in_place.end();
        read_otherwise |= !listed && live_.class_of[slots_.of(n.inputs[other])] == c;
      }
      if (!read_otherwise) return block_of_[c];
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
      if (block.device != device || !IsDeadBefore(live_.classes[block.occupant], i, false))
        continue;
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
    for (Plan::Placement& p : out_.placements) p.offset = offsets[p.offset];
    out_.arenas.assign(used.begin(), used.end());
  }

  struct Expiry {
    int position, block, occupant;
    bool operator<(const Expiry& o) const { return position > o.position; }
  };

  const PlanGraph& graph_;
  const NodeOrder& order_;
  const Slots& slots_;
  const TaskGraph& tasks_;
  LiveRanges live_;
  const TaskReachability reachability_;
  std::vector<int> block_of_;  // by class; -1: not in the arena
  const bool is_in_place_;
  std::vector<Block> blocks_;
  std::priority_queue<Expiry> expiry_;
  std::multimap<size_t, int> free_;
  MemoryPlan out_;
};

}  // namespace

void PlanMemory(PlanGraph& graph, const PlanEnvironment& env, Lowering& lowering) {
  lowering.memory = MemoryPlanner(graph, env, lowering).Run();
}

}  // namespace weir
