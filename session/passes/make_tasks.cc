#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/session/passes/lowering.h"
#include "weir/session/passes/passes.h"

// Partitions the static order (order_nodes.cc) into tasks that may run in parallel.
//
// A hand-over between threads costs about a microsecond, a small node a hundredth of that. So only
// nodes above a cost (kHeavyNs, or asynchronous ones, which wait) start tasks, and light nodes join
// the task that produces their inputs. Task 0 contains all light nodes that depend on no heavy
// node, and runs first. A node joins a task only if all its predecessors are in that task or in
// tasks it depends on already, and a task on which another one depends is closed: so the tasks form
// an acyclic graph, and a task depends on others only at its beginning. If two heavy nodes use the
// same value, each gets its own task.
//
// A task waits for nothing but what its first node waits for, so the static order never decides
// which of two external events comes first: the later one may depend on what the step does after
// the earlier one. Where a node waits, there is no limit of the number of tasks.
//
// A loop runs in one task. The exception is an unstructured loop in which a node waits, for a value
// from another task of a cluster for example: the nodes of an iteration are partitioned like those
// of the step. Such a loop has a task that begins an iteration and takes the part of task 0, and
// one that comes after all others, ends the iteration, and starts the first task again. For the
// nodes outside, the loop is one unit: it starts after all that enters it, and they depend on its
// last task.
namespace weir {

namespace {

constexpr double kHeavyNs = 20e3;
constexpr size_t kMaxTasks = 4096;  // of a step without asynchronous kernels

class TaskMaker {
 public:
  TaskMaker(const PlanGraph& graph, const NodeOrder& order, const PlanEnvironment& env)
      : graph_(graph), order_(order), env_(env) {
    carries_of_.resize(graph_.loops.size());
    for (const PlanGraph::Carry& c : graph_.carries) {
      if (graph_.IsLoopVariable(graph_.nodes[c.carry]))
        carries_of_[graph_.nodes[c.carry].value_loop].push_back(c);
    }
  }

  TaskGraph Run() {
    const int count = static_cast<int>(graph_.nodes.size());
    heavy_users_.assign(count, 0);
    waits_in_.assign(graph_.loops.size(), false);
    int heavy = 0;
    for (const int i : order_.order) {
      const PlanNode& n = graph_.nodes[i];
      has_async_ = has_async_ || is_async(i);
      waits_ = waits_ || n.kernel.is_async();
      for (int l = n.loop; l >= 0 && n.kernel.is_async(); l = graph_.loops[l].parent)
        waits_in_[l] = true;
      if (!is_heavy(i)) continue;
      ++heavy;
      for (const PlanValue& v : n.inputs) ++heavy_users_[v.node];
    }
    const bool worthwhile =
        heavy > 1 && env_.pool.num_threads() > 1 && env_.enabled("partition_tasks");
    if (has_async_ || worthwhile) {
      Reset(-1);
      if (Partition({0, order_.order.size()}, -1, 0)) return std::move(out_);
    }
    Reset(0);
    return std::move(out_);
  }

 private:
  // Positions in the order: [begin, end).
  struct Range {
    size_t begin, end;
  };
  using LightTasks = std::map<std::vector<int>, int>;

  // One task, which all nodes are in, or none (-1).
  void Reset(int task) {
    out_.task_of.assign(graph_.nodes.size(), -1);
    for (const int i : order_.order) out_.task_of[i] = task;
    out_.predecessors.assign(1, {});
    out_.of_loop.assign(graph_.loops.size(), {});
    closed_.assign(1, false);
  }

  bool runs(int id) const { return graph_.nodes[id].runs(); }
  bool is_async(int id) const {
    const PlanNode& n = graph_.nodes[id];
    return n.kernel.is_async() || n.kind == PlanNode::Kind::kCopy;
  }
  bool is_heavy(int id) const { return graph_.nodes[id].cost_ns >= kHeavyNs || is_async(id); }

  // Returns the nodes that must complete before node i.
  IndexList Predecessors(int i) const {
    IndexList out = order_.variable_predecessors[i];
    const PlanNode& n = graph_.nodes[i];
    const auto need = [&](int on) {
      if (runs(on)) out.push_back(on);
      if (const int loop = graph_.ExitedLoop(graph_.nodes[on], n); loop >= 0)
        out.push_back(graph_.loops[loop].condition);
    };
    for (const PlanValue& v : n.inputs) need(v.node);
    for (const int control : n.controls) need(control);
    if (!graph_.EndsLoop(i)) return out;
    for (const PlanGraph::Carry& c : carries_of_[n.loop]) {
      if (!runs(c.carry)) continue;
      need(c.carry);
      if (!graph_.IsInside(graph_.nodes[c.next.node].loop, n.loop)) need(c.next.node);
    }
    return out;
  }

  // True for a loop whose iterations are partitioned.
  bool IsPartitioned(int loop) const {
    for (; loop >= 0; loop = graph_.loops[loop].parent) {
      if (!waits_in_[loop] || graph_.loops[loop].is_structured()) return false;
    }
    return true;
  }

  // Returns a new task that comes after these; if there are none, after `base` alone.
  int NewTask(std::vector<int> after, int base) {
    if (after.empty() && base > 0) after.push_back(base);
    for (const int t : after) closed_[t] = true;
    out_.predecessors.push_back(std::move(after));
    closed_.push_back(false);
    return static_cast<int>(closed_.size()) - 1;
  }

  // Returns the task with which node p of the region, or of a loop in it, is finished.
  int TaskAfter(int p, int region) const {
    if (region >= 0 && !graph_.IsInside(graph_.nodes[p].loop, region)) return -1;
    const int loop = graph_.OutermostLoopExcluding(p, region);
    return loop < 0 ? out_.task_of[p] : out_.LastTask(loop, p);
  }

  // Assigns the nodes of a region, a loop or -1, to tasks. Those that depend on no heavy node of it
  // are in the task `base`. Returns false if there would be too many tasks.
  bool Partition(Range range, int region, int base) {
    LightTasks light_after;  // set of tasks -> an open task that depends on exactly these
    for (size_t at = range.begin; at < range.end;) {
      const int loop = graph_.OutermostLoopExcluding(order_.order[at], region);
      const size_t end = loop < 0 ? at + 1 : static_cast<size_t>(order_.loops[loop].second) + 1;
      const Range unit{at, end};
      at = end;
      if (loop < 0 || !IsPartitioned(loop)) {
        AssignUnit(unit, region, base, light_after);
      } else if (!PartitionLoop(unit, loop, base)) {
        return false;
      }
      if (closed_.size() > kMaxTasks && !waits_) return false;
    }
    return true;
  }

  // Returns the tasks of the region, other than its first, on which the nodes depend.
  std::vector<int> TasksBefore(absl::Span<const int> nodes, int region, int base) const {
    std::vector<int> after;
    for (const int i : nodes) {
      for (const int p : Predecessors(i)) {
        if (const int t = TaskAfter(p, region); t > base) after.push_back(t);
      }
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    return after;
  }

  absl::Span<const int> NodesOf(Range range) const {
    return {order_.order.data() + range.begin, range.end - range.begin};
  }

  // Assigns a node, or all nodes of a loop, to one task.
  void AssignUnit(Range unit, int region, int base, LightTasks& light_after) {
    const absl::Span<const int> nodes = NodesOf(unit);
    const std::vector<int> after = TasksBefore(nodes, region, base);
    const bool is_open = after.size() == 1 && !closed_[after[0]];
    int task = base;
    const PlanNode& front = graph_.nodes[nodes[0]];
    if (region >= 0 && front.loop == region && StartsIteration(graph_, front)) {
      // The values of the previous iteration are taken before anything else runs.
    } else if (nodes.size() > 1 || is_heavy(nodes[0])) {
      // An asynchronous node gets its own task, so that it delays only the nodes that depend on it.
      const bool alone = absl::c_any_of(nodes, [&](int i) {
        return graph_.nodes[i].kernel.is_async() ||
               absl::c_any_of(Predecessors(i), [&](int p) { return heavy_users_[p] > 1; });
      });
      task = is_open && !alone ? after[0] : NewTask(after, base);
    } else if (is_open) {
      task = after[0];
    } else if (!after.empty()) {
      const auto it = light_after.find(after);
      if (it != light_after.end() && !closed_[it->second]) {
        task = it->second;
      } else {
        task = light_after[after] = NewTask(after, base);
      }
    }
    for (const int i : nodes) out_.task_of[i] = task;
  }

  // `base`: the first task of the region around the loop.
  bool PartitionLoop(Range range, int loop, int base) {
    const int first = NewTask(TasksBefore(NodesOf(range), graph_.loops[loop].parent, base), base);
    if (!Partition(range, loop, first)) return false;
    std::vector<int> open;
    for (int t = first; t < static_cast<int>(closed_.size()); ++t) {
      if (!closed_[t]) open.push_back(t);
    }
    out_.of_loop[loop] = {first, NewTask(open, first)};
    return true;
  }

  const PlanGraph& graph_;
  const NodeOrder& order_;
  const PlanEnvironment& env_;
  TaskGraph out_;
  std::vector<std::vector<PlanGraph::Carry>> carries_of_;  // by structured loop
  std::vector<int> heavy_users_;                           // by node
  std::vector<bool> waits_in_;                             // by loop: a node in it is asynchronous
  std::vector<bool> closed_;                               // by task: another one depends on it
  bool has_async_ = false;                                 // a node waits, or is a copy
  bool waits_ = false;                                     // an asynchronous kernel
};

}  // namespace

void MakeTasks(PlanGraph& graph, const PlanEnvironment& env, Lowering& lowering) {
  lowering.tasks = TaskMaker(graph, lowering.order, env).Run();
}

}  // namespace weir
