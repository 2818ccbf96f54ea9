#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "weir/session/passes/lowering.h"
#include "weir/session/passes/passes.h"

// Partitions the static order (order_nodes.cc) into tasks that may run in parallel. A loop runs in
// one task.
//
// A hand-over between threads costs about a microsecond, a small node a hundredth of that. So only
// nodes above a cost (kHeavyNs, or asynchronous ones, which wait) start tasks, and light nodes join
// the task that produces their inputs. Task 0 contains all light nodes that depend on no heavy
// node, and runs first. A node joins a task only if all its predecessors are in that task or in
// tasks it depends on already, and a task on which another one depends is closed: so the tasks form
// an acyclic graph, and a task depends on others only at its beginning. If two heavy nodes use the
// same value, each gets its own task.
namespace weir {

namespace {

constexpr double kHeavyNs = 20e3;
constexpr size_t kMaxTasks = 4096;  // reachability between tasks is a bit matrix

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
    out_.task_of.assign(count, -1);
    out_.predecessors.assign(1, {});
    bool has_async = false;
    int heavy = 0;
    std::vector<int> heavy_users(count, 0);
    for (const int i : order_.order) {
      const PlanNode& n = graph_.nodes[i];
      has_async = has_async || n.kernel.is_async() || n.kind == PlanNode::Kind::kCopy;
      if (!is_heavy(i)) continue;
      ++heavy;
      for (const PlanValue& v : n.inputs) ++heavy_users[v.node];
    }
    const bool worthwhile =
        heavy > 1 && env_.pool.num_threads() > 1 && env_.enabled("partition_tasks");
    if ((has_async || worthwhile) && Partition(heavy_users)) return std::move(out_);
    for (const int i : order_.order) out_.task_of[i] = 0;
    out_.predecessors.assign(1, {});
    return std::move(out_);
  }

 private:
  bool runs(int id) const { return graph_.nodes[id].runs(); }
  bool is_heavy(int id) const {
    const PlanNode& n = graph_.nodes[id];
    return n.cost_ns >= kHeavyNs || n.kernel.is_async() || n.kind == PlanNode::Kind::kCopy;
  }

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

  // Returns the end of the outermost loop that begins at this position, or the next position.
  size_t EndOfLoop(size_t at) const {
    int loop = graph_.nodes[order_.order[at]].loop;
    if (loop < 0) return at + 1;
    while (graph_.loops[loop].parent >= 0) loop = graph_.loops[loop].parent;
    return static_cast<size_t>(order_.loops[loop].second) + 1;
  }

  // Assigns nodes to tasks. Returns false if there would be too many tasks.
  bool Partition(const std::vector<int>& heavy_users) {
    auto& preds = out_.predecessors;
    std::vector<bool> closed = {false};
    std::map<std::vector<int>, int>
        light_after;  // set of tasks -> an open task that depends on exactly these
    const auto new_task = [&](const std::vector<int>& after) {
      for (const int t : after) closed[t] = true;
      preds.push_back(after);
      closed.push_back(false);
      return static_cast<int>(preds.size()) - 1;
    };
    for (size_t at = 0; at < order_.order.size();) {
      const size_t end = EndOfLoop(at);
      const absl::Span<const int> nodes(order_.order.data() + at, end - at);
      at = end;
      std::vector<int> after;
      bool fork = false, waits = false;
      for (const int i : nodes) {
        for (const int p : Predecessors(i)) {
          if (const int t = out_.task_of[p]; t > 0) after.push_back(t);
          fork = fork || heavy_users[p] > 1;
        }
        waits = waits || graph_.nodes[i].kernel.is_async();
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      int task = 0;
      if (nodes.size() > 1 || is_heavy(nodes[0])) {
        // An asynchronous node gets its own task, so that it delays only the nodes that depend on
        // it.
        const bool join = after.size() == 1 && !closed[after[0]] && !fork && !waits;
        task = join ? after[0] : new_task(after);
      } else if (after.size() == 1 && !closed[after[0]]) {
        task = after[0];
      } else if (!after.empty()) {
        const auto it = light_after.find(after);
        if (it != light_after.end() && !closed[it->second]) {
          task = it->second;
        } else {
          task = light_after[after] = new_task(after);
        }
      }
      for (const int i : nodes) out_.task_of[i] = task;
      if (preds.size() > kMaxTasks) return false;
    }
    return true;
  }

  const PlanGraph& graph_;
  const NodeOrder& order_;
  const PlanEnvironment& env_;
  TaskGraph out_;
  std::vector<std::vector<PlanGraph::Carry>> carries_of_;  // by structured loop
};

}  // namespace

void MakeTasks(PlanGraph& graph, const PlanEnvironment& env, Lowering& lowering) {
  lowering.tasks = TaskMaker(graph, lowering.order, env).Run();
}

}  // namespace weir
