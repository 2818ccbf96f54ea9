#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/session/passes/lowering.h"
#include "weir/session/passes/passes.h"

// Values outside the arena have memory of their own, or share a variable's memory. They are
// released after their last use in the static order. Users in several tasks finish in an unknown
// order; such a value is released when the variable whose memory it shares is written, or else when
// the step ends.
//
// A value from outside a loop that is used inside is released when the loop ends. Loop-carried
// values of structured loops stay until the end of the iteration.
//
// Where an input is released after the node that uses it last, the node's kernel may overwrite it
// (PlanMemory does the same for values in the arena).
namespace weir {

namespace {

class ReleasePlanner {
 public:
  ReleasePlanner(const PlanGraph& graph, const Lowering& l)
      : graph_(graph),
        order_(l.order),
        slots_(l.slots),
        tasks_(l.tasks),
        is_kept_(l.slots.count, false),
        is_loop_carried_(l.slots.count, false),
        users_(l.slots.count) {
    const size_t count = graph.nodes.size();
    out_.before.resize(count);
    out_.after.resize(count);
    out_.last_uses.resize(count);
    out_.after_loop.resize(graph.loops.size());
    KeepPlacedValues(l.memory);
  }

  ReleasePlan Run(bool records_last_uses) {
    for (const int i : order_.order) {
      for (const PlanValue& v : graph_.nodes[i].inputs) users_[slots_.of(v)].push_back(i);
    }
    KeepLoopCarriedValues();
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const PlanNode& n = graph_.nodes[i];
      if (n.removed || graph_.EndsLoop(i)) continue;
      for (int k = 0; k < n.num_outputs(); ++k) {
        if (!is_kept_[slots_.of(i, k)]) Release(i, k);
      }
    }
    if (records_last_uses) {
      for (const int i : order_.order) RecordLastUses(i);
    }
    return std::move(out_);
  }

 private:
  void Keep(int32_t slot) {
    if (is_kept_[slot]) return;
    is_kept_[slot] = true;
    out_.dynamic.push_back(slot);
  }

  // Keeps values in the arena, constants, fetched values, and loop-carried values of unstructured
  // loops, which are moved at the end of each iteration.
  void KeepPlacedValues(const MemoryPlan& memory) {
    for (const Plan::Placement& p : memory.placements) is_kept_[p.slot] = true;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const PlanNode& n = graph_.nodes[i];
      for (int k = 0; k < n.num_outputs() && !n.removed; ++k) {
        if (n.is_constant(k)) is_kept_[slots_.of(i, k)] = true;
      }
    }
    out_.moved_fetches.assign(graph_.fetches.size(), 0);
    for (size_t i = graph_.fetches.size(); i-- > 0;) {  // the last fetch of a value may move it
      const int32_t slot = slots_.of(graph_.fetches[i]);
      out_.moved_fetches[i] = is_kept_[slot] ? 0 : 1;
      Keep(slot);
    }
    for (const PlanGraph::Carry& c : graph_.carries) {
      const PlanNode& n = graph_.nodes[c.carry];
      if (!n.removed && !graph_.IsLoopVariable(n)) Keep(slots_.of(c.next));
    }
  }

  // Keeps loop-carried values of structured loops until the end of the iteration.
  void KeepLoopCarriedValues() {
    // After the step no value from outside may remain.
    const auto keep_for_step = [&](int32_t s) {
      out_.reset.push_back(s);
      out_.dynamic.push_back(s);
      is_kept_[s] = true;
    };
    for (const PlanGraph::Carry& c : graph_.carries) {
      const PlanNode &variable = graph_.nodes[c.carry], &next = graph_.nodes[c.next.node];
      if (variable.removed || !graph_.IsLoopVariable(variable)) continue;
      if (is_kept_[slots_.first[c.carry]]) keep_for_step(slots_.first[c.carry]);
      const int32_t from = slots_.of(c.next);
      is_loop_carried_[from] = true;
      if (next.is_constant(c.next.output)) continue;
      if (next.runs() && graph_.IsInside(next.loop, variable.value_loop)) {
        keep_for_step(from);
      } else if (!graph_.IsLoopVariable(next) || next.value_loop != variable.value_loop) {
        users_[from].push_back(order_.order[order_.loops[variable.value_loop].second]);
      }
    }
  }

  void Release(int i, int k) {
    const PlanNode& n = graph_.nodes[i];
    const int32_t s = slots_.of(i, k);
    out_.dynamic.push_back(s);
    if (graph_.IsLoopVariable(n)) return ReleaseVariable(i);
    const int last = LastUser(users_[s], i);
    if (last >= 0) {
      ReleaseAfter(last, n.loop, s);
      // The body of a structured loop does not run in the last iteration.
      if (n.loop >= 0 && !n.in_body && IsInBodyOf(n.loop, last))
        out_.after_loop[n.loop].push_back(s);
    } else {
      out_.reset.push_back(s);
      if (const int writer = WriterAfter(order_.value_of[i], users_[s], n.loop); writer >= 0)
        out_.before[writer].push_back(s);
    }
  }

  // A variable of a structured loop is dead after its last use in the body, unless it is also the
  // next value of a variable. Its final value is dead when the loop ends, unless it is used
  // outside.
  void ReleaseVariable(int i) {
    const int loop = graph_.nodes[i].value_loop, around = graph_.nodes[i].loop;
    const int32_t s = slots_.first[i];
    const int end = order_.loops[loop].second;
    int last = -1;
    IndexList outside;
    for (const int u : users_[s]) {
      if (order_.position[u] > end) {
        outside.push_back(u);
      } else if (last < 0 || order_.position[u] > order_.position[last]) {
        last = u;
      }
    }
    if (!is_loop_carried_[s] && last >= 0 && IsInBodyOf(loop, last)) ReleaseAfter(last, loop, s);
    const int user = outside.empty() ? -1 : LastUser(outside, i);
    // The body of the enclosing loop does not run in its last iteration.
    if (user >= 0 && around >= 0 && !graph_.nodes[i].in_body && IsInBodyOf(around, user))
      out_.after_loop[around].push_back(s);
    if (outside.empty()) {
      out_.after_loop[loop].push_back(s);
    } else if (user >= 0) {
      ReleaseAfter(user, around, s);
    } else {
      out_.reset.push_back(s);
    }
  }

  // Releases a value of `loop` when node `last` no longer uses it: after the node, or after the
  // outermost loop around the node that does not contain `loop`.
  void ReleaseAfter(int last, int loop, int32_t slot) {
    const int around = graph_.OutermostLoopExcluding(last, loop);
    (around >= 0 ? out_.after_loop[around] : out_.after[last]).push_back(slot);
  }

  // Returns true if the node runs in the body of this structured loop, or in a loop nested in it.
  bool IsInBodyOf(int loop, int node) const {
    const int condition = graph_.loops[loop].condition;
    return condition >= 0 && order_.position[node] > order_.position[condition] &&
           order_.position[node] <= order_.loops[loop].second;
  }

  // Returns the last user, if the order of all users is known. An unused value is released by the
  // node that produces it. Returns -1 if the order is not known, and for unused feeds.
  int LastUser(const IndexList& users, int producer) const {
    if (users.empty()) return graph_.nodes[producer].runs() ? producer : -1;
    const int task = tasks_.task_of[users[0]];
    int last = users[0];
    for (const int u : users) {
      if (tasks_.task_of[u] != task) return -1;
      if (order_.position[u] > order_.position[last]) last = u;
    }
    return last;
  }

  // Returns a writer of the variable that runs once for a value of `loop`, after all these users;
  // -1 if there is none.
  int WriterAfter(int variable, const IndexList& users, int loop) const {
    if (variable < 0) return -1;
    for (const int i : order_.order) {
      if (!absl::c_linear_search(order_.written_by[i], variable)) continue;
      if (graph_.OutermostLoopExcluding(i, loop) >= 0) continue;
      const auto runs_before = [&](int user) {
        return absl::c_linear_search(order_.variable_predecessors[i], user);
      };
      if (absl::c_all_of(users, runs_before)) return i;
    }
    return -1;
  }

  // Records which inputs the kernel of node i may overwrite: those that are released after it.
  void RecordLastUses(int i) {
    const PlanNode& n = graph_.nodes[i];
    if (n.def == nullptr || !n.device->is_host()) return;
    const auto overwritten = [&](size_t in) {
      return absl::c_linear_search(n.def->in_place, static_cast<int>(in));
    };
    for (size_t in = 0; in < n.inputs.size(); ++in) {
      const int32_t s = slots_.of(n.inputs[in]);
      if (!overwritten(in) || !absl::c_linear_search(out_.after[i], s)) continue;
      bool read_otherwise = false;
      for (size_t other = 0; other < n.inputs.size(); ++other)
        read_otherwise |= slots_.of(n.inputs[other]) == s && !overwritten(other);
      if (!read_otherwise) out_.last_uses[i].push_back(s);
    }
  }

  const PlanGraph& graph_;
  const NodeOrder& order_;
  const Slots& slots_;
  const TaskGraph& tasks_;
  std::vector<bool> is_kept_, is_loop_carried_;  // by slot
  std::vector<IndexList> users_;                 // by slot
  ReleasePlan out_;
};

}  // namespace

void ReleaseValues(PlanGraph& graph, const PlanEnvironment& env, Lowering& lowering) {
  lowering.releases = ReleasePlanner(graph, lowering).Run(env.enabled("in_place"));
}

}  // namespace weir
