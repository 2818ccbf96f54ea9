#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/external_waits.h"
#include "weir/session/plan/variable_use.h"

// One static order for all nodes of a plan.
//
// The order is topological (Kahn's algorithm, earliest node of the graph first, which keeps the
// pruner's depth-first order and hence short live ranges), with one addition: a node that writes a
// variable is delayed, where possible, until every node that uses a value read from that variable
// is in the order. The write then finds the buffer unshared and works in place; an earlier write
// would have to copy the variable first. Edges from those users to the writer preserve that order
// when tasks run in parallel. When only such writers are ready (each waits for a reader that waits
// for another writer), the first writer is scheduled, and the readers that it overtook come after
// it.
//
// These added dependencies never make a node wait for an event outside the step that it would not
// wait for anyway (external_waits.h): the external event may depend on a node that runs after that
// node, which would be a deadlock. For example, a writer does not wait for a user that dequeues an
// element, unless the writer itself comes after that element: it copies the variable instead. The
// read still comes first. Nodes that wait for fewer external events come earlier in the order,
// which is the order within a loop too; so do writers whose readers may come after other writers.
//
// Critical sections (from a MutexLock to its ConsumeMutexLock) are not interleaved: while one is
// open, other locks are delayed, and locks of the same mutex wait for its end, unless that would
// make them wait for another external event.
//
// A loop is one unit of the order around it, and has an order of its own inside. The nodes that
// receive the values of the previous iteration come first in it. In a structured loop
// (structure_loops.cc) everything that determines whether the iteration takes place comes first,
// then the LoopCond, then the body. A graph without a cycle of nodes may still have a cycle of
// units, where a value that enters a loop depends on another value that leaves it: no iteration
// could end.
namespace weir {

namespace {

class Orderer {
 public:
  explicit Orderer(const PlanGraph& graph)
      : graph_(graph), count_(static_cast<int>(graph.nodes.size())), external_waits_(graph) {}

  NodeOrder Run() {
    FindUses();
    const int num_loops = static_cast<int>(graph_.loops.size());
    pending_.assign(count_ + num_loops, 0);
    successors_.assign(count_ + num_loops, {});
    first_node_.assign(num_loops, count_);
    ready_.resize(num_loops + 1);
    writers_.resize(num_loops + 1);
    locks_.resize(num_loops + 1);
    pending_bodies_.resize(num_loops + 1);
    readers_.assign(count_, 0);
    all_readers_.assign(count_, {});
    users_.assign(count_, {});
    waiting_writers_.assign(count_, {});
    written_early_.assign(count_, -1);
    out_.variable_predecessors.assign(count_, {});
    out_.position.assign(count_, -1);
    out_.loops.assign(num_loops, {-1, -1});
    for (int i = 0; i < count_; ++i) {
      if (graph_.nodes[i].runs()) CountDependencies(i);
    }
    for (const PlanGraph::Carry& c : graph_.carries) CountLoopCarried(c);
    for (int i = 0; i < count_; ++i) {
      if (graph_.nodes[i].runs() && pending_[i] == 0) MakeReady(i);
    }
    for (int l = 0; l < num_loops; ++l) {
      if (pending_[count_ + l] == 0) MakeReady(count_ + l);
    }
    OrderRegion(-1);
    return std::move(out_);
  }

 private:
  // A unit, preceded by its priority.
  using Entry = std::tuple<int, int, int>;
  using Queue = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  void FindUses() {
    const VariableValues variables = FindVariables(graph_);
    out_.value_of = variables.value_of;
    out_.written_by.assign(count_, {});
    read_by_.assign(count_, {});
    for (const VariableAccess& access : FindAccesses(graph_, variables)) {
      auto& list = access.kind == VariableAccess::Kind::kRead ? read_by_ : out_.written_by;
      list[access.node].push_back(access.variable);
    }
  }

  // A unit of the order is a node, or a loop (count_ + its number). Returns the unit directly in
  // `region` (a loop or -1) that is or contains `node`.
  int UnitIn(int region, int node) const {
    int unit = node;
    for (int l = graph_.nodes[node].loop; l != region; l = graph_.loops[l].parent)
      unit = count_ + l;
    return unit;
  }
  int RegionOf(int unit) const {
    return unit < count_ ? graph_.nodes[unit].loop : graph_.loops[unit - count_].parent;
  }
  // True for units that run only after the LoopCond of their structured loop has been true.
  bool IsInBody(int unit) const {
    return unit < count_ ? graph_.nodes[unit].in_body : graph_.loops[unit - count_].in_body;
  }
  // Returns the LoopCond of a structured loop; -1 for others.
  int ConditionOf(int region) const { return region < 0 ? -1 : graph_.loops[region].condition; }
  // Returns the innermost loop that contains both nodes; -1 if there is none.
  int CommonRegion(int a, int b) const {
    return graph_.CommonLoop(graph_.nodes[a].loop, graph_.nodes[b].loop);
  }

  void AddDependency(int i, int on) {
    if (!graph_.nodes[on].runs()) return;
    const int region = CommonRegion(on, i);
    const int unit = UnitIn(region, i);
    ++pending_[unit];
    successors_[UnitIn(region, on)].push_back(unit);
  }

  // A structured loop depends on its variables and on those of their next values that come from
  // outside, even if no node in the loop uses them.
  void CountLoopCarried(const PlanGraph::Carry& c) {
    const PlanNode& variable = graph_.nodes[c.carry];
    if (!variable.runs() || !graph_.IsLoopVariable(variable)) return;
    const int condition = graph_.loops[variable.value_loop].condition;
    AddDependency(condition, c.carry);
    if (graph_.IsInside(graph_.nodes[c.next.node].loop, variable.value_loop)) return;
    AddDependency(condition, c.next.node);
    AddLoopDependency(condition, c.next.node);
  }

  void CountDependencies(int i) {
    const PlanNode& n = graph_.nodes[i];
    for (int l = n.loop; l >= 0; l = graph_.loops[l].parent)
      first_node_[l] = std::min(first_node_[l], i);
    const auto depend = [&](int on) { AddDependency(i, on); };
    for (const PlanValue& v : n.inputs) {
      depend(v.node);
      AddLoopDependency(i, v.node);
      const int variable = out_.value_of[v.node];
      if (variable >= 0) CountReader(variable, i);
    }
    for (const int v : read_by_[i]) CountReader(v, i);
    for (const int control : n.controls) {
      depend(control);
      AddLoopDependency(i, control);
    }
  }

  void CountReader(int variable, int i) {
    if (Writes(i, variable)) return;
    ++readers_[variable];
    if (!external_waits_.empty()) all_readers_[variable].push_back(i);
  }

  // Returns true if the writer has to wait for users of the variable.
  bool WaitsForReaders(int writer, int variable) const {
    if (external_waits_.empty() || readers_[variable] == 0) return readers_[variable] > 0;
    return absl::c_any_of(all_readers_[variable], [&](int user) {
      return out_.position[user] < 0 && external_waits_.MayOrder(user, writer);
    });
  }

  // Returns the unit with its priority among the ready units.
  Entry EntryOf(int unit) const {
    if (unit >= count_) {
      const int loop = unit - count_;
      return {2 * external_waits_.CountOfLoop(loop), first_node_[loop], unit};
    }
    const PlanNode& n = graph_.nodes[unit];
    if (n.loop >= 0 && StartsIteration(graph_, n)) return {-1, unit, unit};
    return {2 * external_waits_.Count(unit) + (ExternalWaits::WaitsForInput(n) ? 1 : 0), unit,
            unit};
  }

  // A writer does not wait for its own read of the variable.
  bool Writes(int i, int variable) const {
    return absl::c_linear_search(out_.written_by[i], variable);
  }

  // A user of the final value of a loop variable waits for the loop.
  void AddLoopDependency(int i, int variable) {
    const int loop = graph_.ExitedLoop(graph_.nodes[variable], graph_.nodes[i]);
    const int region = loop < 0 ? -1 : graph_.loops[loop].parent;
    if (loop < 0 || CommonRegion(variable, i) != region) return;
    const int unit = UnitIn(region, i);
    successors_[count_ + loop].push_back(unit);
    ++pending_[unit];
  }

  void MakeReady(int unit) {
    const int region = RegionOf(unit), queue = region + 1, condition = ConditionOf(region);
    if (condition >= 0 && out_.position[condition] < 0 && (unit == condition || IsInBody(unit)))
      return pending_bodies_[queue].push_back(unit);
    if (unit < count_) {
      for (const int v : out_.written_by[unit]) {
        if (!WaitsForReaders(unit, v)) continue;
        writers_[queue].push(EntryOf(unit));
        waiting_writers_[v].push_back(unit);
        return;
      }
    }
    ready_[queue].push(EntryOf(unit));
  }

  // Returns the queue of the next unit; null if all are empty. A writer precedes units that wait
  // for more external events. The users that a writer waits for are not among these: the remaining
  // ones come after a writer, possibly this one.
  Queue* NextQueue(int region) {
    Queue &ready = ready_[region + 1], &writers = writers_[region + 1], &locks = locks_[region + 1];
    if (!ready.empty() && !writers.empty() && std::get<0>(writers.top()) < std::get<0>(ready.top()))
      return &writers;
    if (!ready.empty()) return &ready;
    if (!locks.empty() && (open_sections_ == 0 || writers.empty())) return &locks;
    return writers.empty() ? nullptr : &writers;
  }

  bool Is(int unit, absl::string_view op) const {
    return unit < count_ && graph_.nodes[unit].Is(op);
  }

  void ReleaseSuccessors(int unit) {
    for (const int s : successors_[unit]) {
      if (--pending_[s] == 0) MakeReady(s);
    }
  }

  // Orders all units of a loop, or (-1) of the whole plan.
  void OrderRegion(int region) {
    Queue& ready = ready_[region + 1];
    const int first = static_cast<int>(out_.order.size()), condition = ConditionOf(region);
    for (;;) {
      Queue* const from = NextQueue(region);
      if (from == nullptr) {
        std::vector<int>& body = pending_bodies_[region + 1];
        if (condition < 0 || !absl::c_linear_search(body, condition)) break;
        Append(condition);
        std::erase(body, condition);
        for (const int unit : std::exchange(body, {})) MakeReady(unit);
        ReleaseSuccessors(condition);
        continue;
      }
      const int unit = std::get<2>(from->top());
      if (from == &ready && open_sections_ > 0 && Is(unit, "MutexLock")) {
        locks_[region + 1].push(ready.top());
        ready.pop();
        continue;
      }
      from->pop();
      if (unit >= count_) {
        OrderRegion(unit - count_);
      } else {
        if (out_.position[unit] >= 0) continue;
        Append(unit);
      }
      ReleaseSuccessors(unit);
    }
    const int last = static_cast<int>(out_.order.size()) - 1;
    if (region >= 0 && last >= first) out_.loops[region] = {first, last};
  }

  // Returns the container and name of the mutex of a lock.
  std::pair<std::string, std::string> MutexOf(int lock) const {
    const int handle = graph_.nodes[lock].inputs[0].node;
    return VariableKey(*graph_.nodes[handle].node);
  }

  void UpdateSections(int i) {
    if (Is(i, "MutexLock")) {
      ++open_sections_;
      const auto unlocked = last_unlock_.find(MutexOf(i));
      if (unlocked != last_unlock_.end() && external_waits_.MayOrder(unlocked->second, i))
        out_.variable_predecessors[i].push_back(unlocked->second);
    } else if (Is(i, "ConsumeMutexLock")) {
      open_sections_ = std::max(0, open_sections_ - 1);
      const int lock = graph_.nodes[i].inputs[0].node;
      if (Is(lock, "MutexLock")) last_unlock_[MutexOf(lock)] = i;
    }
  }

  void Append(int i) {
    out_.position[i] = static_cast<int>(out_.order.size());
    out_.order.push_back(i);
    UpdateSections(i);
    for (const int v : out_.written_by[i]) RecordWrite(i, v);
    for (const PlanValue& in : graph_.nodes[i].inputs) {
      if (const int v = out_.value_of[in.node]; v >= 0) RecordUse(i, v);
    }
    for (const int v : read_by_[i]) {
      if (written_early_[v] >= 0 && external_waits_.MayOrder(written_early_[v], i))
        out_.variable_predecessors[i].push_back(written_early_[v]);
      RecordUse(i, v);
    }
  }

  void RecordWrite(int i, int variable) {
    if (readers_[variable] > 0) written_early_[variable] = i;
    IndexList& users = users_[variable];
    for (const int user : users) {
      if (user != i && external_waits_.MayOrder(user, i))
        out_.variable_predecessors[i].push_back(user);
    }
    const auto comes_before = [&](int user) { return external_waits_.MayOrder(user, i); };
    users.erase(std::remove_if(users.begin(), users.end(), comes_before), users.end());
    users.push_back(i);  // a later writer of the same variable comes after this one
  }

  void RecordUse(int i, int variable) {
    if (Writes(i, variable)) return;
    users_[variable].push_back(i);
    if (--readers_[variable] > 0 && external_waits_.empty()) return;
    IndexList& waiting = waiting_writers_[variable];
    for (const int w : std::exchange(waiting, {})) {
      if (WaitsForReaders(w, variable)) {
        waiting.push_back(w);
      } else {
        MakeReady(w);
      }
    }
  }

  const PlanGraph& graph_;
  const int count_;
  const ExternalWaits external_waits_;
  NodeOrder out_;
  std::vector<IndexList> read_by_;              // by node: the variables it reads
  std::vector<int> pending_;                    // by unit
  std::vector<IndexList> successors_;           // by unit
  std::vector<int> first_node_;                 // by loop
  std::vector<Queue> ready_, writers_, locks_;  // by region + 1
  // By region + 1, for structured loops: the LoopCond and the units of the body that are ready
  // except for their place after it.
  std::vector<std::vector<int>> pending_bodies_;
  int open_sections_ = 0;  // open critical sections
  // By mutex: the end of its last critical section.
  std::map<std::pair<std::string, std::string>, int> last_unlock_;
  std::vector<int> readers_;  // by variable: users of its value not yet in the order
  std::vector<IndexList>
      all_readers_;  // by variable, if the step has external waits: all users, ordered or not
  std::vector<IndexList> users_;            // by variable: users already in the order
  std::vector<IndexList> waiting_writers_;  // by variable: ready writers that wait for readers
  std::vector<int>
      written_early_;  // by variable: the writer that was scheduled before all readers; or -1
};

}  // namespace

absl::Status OrderNodes(PlanGraph& graph, const PlanEnvironment& env, Lowering& lowering) {
  lowering.order = Orderer(graph).Run();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].runs() && lowering.order.position[i] < 0)
      return CycleThroughLoop(graph.nodes[i]);
  }
  return absl::OkStatus();
}

}  // namespace weir
