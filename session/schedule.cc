#include <algorithm>
#include <future>
#include <map>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "weir/kernels/variable_access.h"
#include "weir/session/plan.h"
#include "weir/session/variable_use.h"

// One static order, and which parts of it may run side by side.
//
// The order is topological (Kahn's algorithm, earliest node of the graph first, which keeps the
// depth-first order of the pruner and so short lifetimes), with one addition: a node that writes a
// variable waits, where it can, until every node that uses a value read from that variable has been
// put into the order. The write then finds the buffer unshared and works in place; written too
// early it would have to copy the variable first. Edges from those users to the writer keep that
// order when tasks run in parallel. When nothing but such writers is ready (each waits for a reader
// that waits for another of them), the first goes, and the readers that it overtook come after it.
//
// Tasks. A hand-over between threads costs about a microsecond, a small node a hundredth of that;
// so only nodes worth more (kHeavyNs, or asynchronous ones, which wait) start tasks, and light
// nodes join the task that makes their inputs. Task 0 holds everything light that needs nothing
// heavy, and runs first. A node joins a task only if all it needs is in that task or in tasks it
// depends on already, and a task that another one depends on is closed: so the tasks form a graph
// without cycles, and a task depends on others only at its beginning. Where two heavy nodes need
// the same value, each gets a task of its own.
namespace weir {

namespace {

constexpr double kHeavyNs = 20e3;
constexpr size_t kMaxTasks = 4096;  // reachability between tasks is a bit matrix

class Scheduler {
 public:
  Scheduler(const PlanGraph& graph, const PlanEnvironment& env, Plan* plan)
      : graph_(graph), env_(env), plan_(*plan), count_(static_cast<int>(graph.nodes.size())) {}

  absl::Status Run() {
    AssignSlots();
    WEIR_RETURN_IF_ERROR(PlaceConstants());
    FindUses();
    Order();
    MakeTasks();
    PlanMemory(graph_, scheduled_, env_, &plan_);
    return EmitItems();
  }

 private:
  bool runs(int id) const {
    const PlanNode& n = graph_.nodes[id];
    return !n.removed && n.kind != PlanNode::Kind::kFeed && !n.is_constant(0);
  }
  bool is_heavy(int id) const {
    const PlanNode& n = graph_.nodes[id];
    return n.cost_ns >= kHeavyNs || n.kernel.is_async() || n.kind == PlanNode::Kind::kCopy;
  }
  int32_t slot(const PlanValue& v) const { return scheduled_.slot_of[v.node] + v.output; }

  void AssignSlots() {
    scheduled_.slot_of.assign(count_, -1);
    for (int i = 0; i < count_; ++i) {
      const PlanNode& n = graph_.nodes[i];
      if (n.removed) continue;
      scheduled_.slot_of[i] = plan_.num_slots;
      plan_.num_slots += n.num_outputs();
    }
    plan_.num_dead_slots = plan_.num_slots;
    for (const PlanValue& v : graph_.feeds) {
      plan_.feed_slots.push_back(v.node >= 0 && !graph_.nodes[v.node].removed ? slot(v) : -1);
    }
    for (const PlanValue& v : graph_.fetches) plan_.fetch_slots.push_back(slot(v));
  }

  absl::Status PlaceConstants() {
    for (int i = 0; i < count_; ++i) {
      const PlanNode& n = graph_.nodes[i];
      for (int k = 0; k < n.num_outputs() && !n.removed; ++k) {
        if (!n.is_constant(k)) continue;
        WEIR_ASSIGN_OR_RETURN(Tensor value, WhereUsed(n, k, n.constants[k]));
        plan_.constants.emplace_back(scheduled_.slot_of[i] + k, std::move(value));
      }
    }
    return absl::OkStatus();
  }

  // A constant in the memory of the device that output k of the node lies on.
  absl::StatusOr<Tensor> WhereUsed(const PlanNode& n, int k, const Tensor& value) const {
    if (!n.is_on_accelerator(k)) return value;
    WEIR_ASSIGN_OR_RETURN(const Tensor copy,
                          Tensor::Allocate(n.device->allocator(), value.dtype(), value.shape()));
    std::promise<absl::Status> copied;
    n.device->CopyFromHost(value, copy, [&](absl::Status s) { copied.set_value(std::move(s)); });
    WEIR_RETURN_IF_ERROR(copied.get_future().get());
    return copy;
  }

  void FindUses() {
    variables_ = FindVariables(graph_);
    read_by_.assign(count_, {});
    written_by_.assign(count_, {});
    for (const VariableAccess& access : FindAccesses(graph_, variables_)) {
      auto& list = access.kind == VariableAccess::Kind::kRead ? read_by_ : written_by_;
      list[access.node].push_back(access.variable);
    }
    for (int i = 0; i < count_; ++i) {
      if (graph_.nodes[i].removed || graph_.nodes[i].kind != PlanNode::Kind::kOp) continue;
      for (const PlanValue& v : graph_.nodes[i].inputs) {
        if (graph_.nodes[v.node].kind == PlanNode::Kind::kRead) reader_of_[v.node] = i;
      }
    }
  }

  void Order() {
    std::vector<int> pending(count_, 0);
    std::vector<std::vector<int>> successors(count_);
    std::vector<int> readers(count_, 0);  // by variable: users of its value not yet in the order
    std::vector<std::vector<int>> users(count_);  // by variable: those in the order
    std::vector<std::vector<int>> waiting(
        count_);  // by variable: ready writers that wait for readers
    std::vector<int> written_early(count_,
                                   -1);  // by variable: by whom while readers were waited for
    extra_predecessors_.assign(count_, {});
    for (int i = 0; i < count_; ++i) {
      if (!runs(i)) continue;
      const PlanNode& n = graph_.nodes[i];
      const auto depend = [&](int on) {
        if (runs(on)) {
          ++pending[i];
          successors[on].push_back(i);
        }
      };
      for (const PlanValue& v : n.inputs) {
        depend(v.node);
        if (variables_.value_of[v.node] >= 0) ++readers[variables_.value_of[v.node]];
      }
      for (const int v : read_by_[i]) ++readers[v];
      for (const int control : n.controls) depend(control);
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready, writers;
    const auto make_ready = [&](int i) {
      for (const int v : written_by_[i]) {
        if (readers[v] > 0) {
          writers.push(i);
          waiting[v].push_back(i);
          return;
        }
      }
      ready.push(i);
    };
    for (int i = 0; i < count_; ++i) {
      if (runs(i) && pending[i] == 0) make_ready(i);
    }
    scheduled_.position.assign(count_, -1);
    while (!ready.empty() || !writers.empty()) {
      auto& from = ready.empty() ? writers : ready;
      const int i = from.top();
      from.pop();
      if (scheduled_.position[i] >= 0) continue;
      const PlanNode& n = graph_.nodes[i];
      scheduled_.position[i] = static_cast<int>(scheduled_.order.size());
      scheduled_.order.push_back(i);
      for (const int v : written_by_[i]) {
        if (readers[v] > 0) written_early[v] = i;
        for (const int user : users[v]) {
          if (user != i) extra_predecessors_[i].push_back(user);
        }
        users[v].clear();
        users[v].push_back(i);  // a later writer of the same variable comes after this one
      }
      const auto has_used = [&](int v) {
        if (v < 0) return;
        users[v].push_back(i);
        if (--readers[v] > 0) return;
        for (const int w : waiting[v]) make_ready(w);
        waiting[v].clear();
      };
      for (const PlanValue& in : n.inputs) has_used(variables_.value_of[in.node]);
      for (const int v : read_by_[i]) {
        if (written_early[v] >= 0) extra_predecessors_[i].push_back(written_early[v]);
        has_used(v);
      }
      for (const int s : successors[i]) {
        if (--pending[s] == 0) make_ready(s);
      }
    }
  }

  // Nodes whose completion node i waits for.
  std::vector<int> Predecessors(int i) const {
    std::vector<int> out = extra_predecessors_[i];
    const PlanNode& n = graph_.nodes[i];
    for (const PlanValue& v : n.inputs) {
      if (runs(v.node)) out.push_back(v.node);
    }
    for (const int control : n.controls) {
      if (runs(control)) out.push_back(control);
    }
    return out;
  }

  void MakeTasks() {
    scheduled_.task_of.assign(count_, -1);
    scheduled_.task_predecessors.assign(1, {});
    bool must = false;
    int heavy = 0;
    std::vector<int> heavy_users(count_, 0);
    for (const int i : scheduled_.order) {
      const PlanNode& n = graph_.nodes[i];
      must = must || n.kernel.is_async() || n.kind == PlanNode::Kind::kCopy;
      if (!is_heavy(i)) continue;
      ++heavy;
      for (const PlanValue& v : n.inputs) ++heavy_users[v.node];
    }
    const bool want = heavy > 1 && env_.pool.num_threads() > 1 && env_.enabled("parallel_tasks");
    if ((must || want) && Partition(heavy_users)) return;
    for (const int i : scheduled_.order) scheduled_.task_of[i] = 0;
    scheduled_.task_predecessors.assign(1, {});
  }

  // False if there would be too many tasks to be worth it.
  bool Partition(const std::vector<int>& heavy_users) {
    auto& preds = scheduled_.task_predecessors;
    std::vector<bool> closed = {false};
    std::map<std::vector<int>, int>
        light_after;  // set of tasks -> an open task that follows just these
    const auto new_task = [&](const std::vector<int>& after) {
      for (const int t : after) closed[t] = true;
      preds.push_back(after);
      closed.push_back(false);
      return static_cast<int>(preds.size()) - 1;
    };
    for (const int i : scheduled_.order) {
      std::vector<int> after;
      bool fork = false;
      for (const int p : Predecessors(i)) {
        if (const int t = scheduled_.task_of[p]; t != 0) after.push_back(t);
        fork = fork || heavy_users[p] > 1;
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      int task = 0;
      if (is_heavy(i)) {
        // What waits holds up nobody who does not wait for it: a task of its own.
        const bool join =
            after.size() == 1 && !closed[after[0]] && !fork && !graph_.nodes[i].kernel.is_async();
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
      scheduled_.task_of[i] = task;
      if (preds.size() > kMaxTasks) return false;
    }
    return true;
  }

  Kernel InternalKernel(const PlanNode& n) const;

  absl::Status EmitItems() {
    const int num_tasks = static_cast<int>(scheduled_.task_predecessors.size());
    std::vector<std::vector<int>> members(num_tasks);
    for (const int i : scheduled_.order) members[scheduled_.task_of[i]].push_back(i);
    plan_.tasks.resize(num_tasks);
    std::vector<int> item_of(count_, -1);
    for (int t = 0; t < num_tasks; ++t) {
      Task& task = plan_.tasks[t];
      task.begin = static_cast<int32_t>(plan_.items.size());
      for (const int i : members[t]) {
        item_of[i] = static_cast<int>(plan_.items.size());
        WEIR_RETURN_IF_ERROR(EmitItem(i));
      }
      task.end = static_cast<int32_t>(plan_.items.size());
      std::vector<int> preds = scheduled_.task_predecessors[t];
      if (preds.empty() && t != 0) preds.push_back(0);
      task.num_predecessors = static_cast<int32_t>(preds.size());
      for (const int p : preds) plan_.tasks[p].successors.push_back(t);
    }
    EmitReleases(item_of);
    return absl::OkStatus();
  }

  // The node that a read was put in for: the op that takes the value, or where the reference that
  // is fetched comes from.
  const Node* ReadFor(int read) const {
    const auto user = reader_of_.find(read);
    return graph_.nodes[user != reader_of_.end() ? user->second : graph_.nodes[read].inputs[0].node]
        .node;
  }

  absl::Status EmitItem(int i) {
    const PlanNode& n = graph_.nodes[i];
    Item item;
    item.node = n.node;
    item.named = n.kind == PlanNode::Kind::kRead ? ReadFor(i) : n.node;
    item.device = n.device;
    const Kernel kernel = n.kind == PlanNode::Kind::kOp ? n.kernel : InternalKernel(n);
    item.run = kernel.run();
    item.run_async = kernel.run_async();
    item.is_async = kernel.is_async();
    if (kernel.is_constant()) {  // in a branch that may not be taken
      WEIR_ASSIGN_OR_RETURN(Tensor value, WhereUsed(n, 0, kernel.constant()));
      item.run = [value = std::move(value)](KernelContext& c) {
        c.SetOutput(0, value);
        return absl::OkStatus();
      };
    }
    item.inputs = static_cast<int32_t>(plan_.indices.size());
    item.num_inputs = static_cast<int32_t>(n.inputs.size());
    for (const PlanValue& v : n.inputs) plan_.indices.push_back(slot(v));
    item.outputs = static_cast<int32_t>(plan_.indices.size());
    item.num_outputs = static_cast<int32_t>(n.num_outputs());
    for (int k = 0; k < n.num_outputs(); ++k) plan_.indices.push_back(scheduled_.slot_of[i] + k);
    item.dead_controls = static_cast<int32_t>(plan_.indices.size());
    for (const int control : n.controls) {
      if (!graph_.nodes[control].may_be_dead || !runs(control)) continue;
      plan_.indices.push_back(dead_slot_of_[control]);
      ++item.num_dead_controls;
    }
    if (n.may_be_dead) {
      item.dead_slot = dead_slot_of_[i] = plan_.num_dead_slots++;
      plan_.may_have_dead = true;
    }
    if (n.def != nullptr) {
      item.aliases = n.def->has_aliases();
      item.accepts_dead = n.def->accepts_dead;
      for (int k = 0; k < std::min(n.num_outputs(), 64); ++k) {
        if (n.is_host_output(k)) item.host_outputs |= uint64_t{1} << k;
      }
    }
    const bool listed =
        std::find(plan_.streams.begin(), plan_.streams.end(), n.device) != plan_.streams.end();
    if (n.device->has_stream() && !listed) plan_.streams.push_back(n.device);
    plan_.items.push_back(std::move(item));
    return absl::OkStatus();
  }

  // Values that do not lie in the arena hold memory of their own, or a variable's: they are dropped
  // as soon as the order says that nobody needs them. Users in several tasks finish in no known
  // order; such a value goes when the variable it shares is written, or else when the step ends.
  void EmitReleases(const std::vector<int>& item_of) {
    std::vector<bool> keep(plan_.num_slots, false);
    for (const Plan::Placement& p : plan_.placements) keep[p.slot] = true;
    for (const auto& [s, value] : plan_.constants) keep[s] = true;
    for (const int32_t s : plan_.fetch_slots) {
      if (keep[s]) continue;
      keep[s] = true;
      plan_.fetch_reset_slots.push_back(s);
      plan_.dynamic_slots.push_back(s);
    }
    std::vector<std::vector<int>> users(plan_.num_slots);
    for (const int i : scheduled_.order) {
      for (const PlanValue& v : graph_.nodes[i].inputs) users[slot(v)].push_back(i);
    }
    std::vector<std::vector<int32_t>> after(plan_.items.size()), before(plan_.items.size());
    for (int i = 0; i < count_; ++i) {
      if (graph_.nodes[i].removed) continue;
      for (int k = 0; k < graph_.nodes[i].num_outputs(); ++k) {
        const int32_t s = scheduled_.slot_of[i] + k;
        if (keep[s]) continue;
        plan_.dynamic_slots.push_back(s);
        const int last = LastUser(users[s], i);
        if (last >= 0 && item_of[last] >= 0) {
          after[item_of[last]].push_back(s);
        } else {
          plan_.reset_slots.push_back(s);
          if (const int writer = WriterAfter(variables_.value_of[i], users[s]); writer >= 0)
            before[item_of[writer]].push_back(s);
        }
      }
    }
    for (size_t k = 0; k < plan_.items.size(); ++k) {
      Item& item = plan_.items[k];
      item.releases = static_cast<int32_t>(plan_.indices.size());
      item.num_releases_before = static_cast<int32_t>(before[k].size());
      item.num_releases_after = static_cast<int32_t>(after[k].size());
      plan_.indices.insert(plan_.indices.end(), before[k].begin(), before[k].end());
      plan_.indices.insert(plan_.indices.end(), after[k].begin(), after[k].end());
    }
  }

  // The user that runs last, if the order of all users is known; an unused value is dropped by the
  // node that made it. -1 if it is not known, or for feeds that nobody uses.
  int LastUser(const std::vector<int>& users, int producer) const {
    if (users.empty()) return runs(producer) ? producer : -1;
    const int task = scheduled_.task_of[users[0]];
    int last = users[0];
    for (const int u : users) {
      if (scheduled_.task_of[u] != task) return -1;
      if (scheduled_.position[u] > scheduled_.position[last]) last = u;
    }
    return last;
  }

  // A writer of the variable that runs after all these users.
  int WriterAfter(int variable, const std::vector<int>& users) const {
    if (variable < 0) return -1;
    for (const int i : scheduled_.order) {
      const std::vector<int>& written = written_by_[i];
      if (std::find(written.begin(), written.end(), variable) == written.end()) continue;
      const auto& extra = extra_predecessors_[i];
      const bool after_all = std::all_of(users.begin(), users.end(), [&](int u) {
        return std::find(extra.begin(), extra.end(), u) != extra.end();
      });
      if (after_all) return i;
    }
    return -1;
  }

  const PlanGraph& graph_;
  const PlanEnvironment& env_;
  Plan& plan_;
  const int count_;
  ScheduledOrder scheduled_;
  VariableValues variables_;
  std::vector<std::vector<int>> read_by_, written_by_;  // by node: variables
  absl::flat_hash_map<int, int> reader_of_;             // by read that was put in
  std::vector<std::vector<int>> extra_predecessors_;
  std::map<int, int32_t> dead_slot_of_;
};

// Reads, copies and waits, the nodes that passes have put in.
Kernel Scheduler::InternalKernel(const PlanNode& n) const {
  if (n.kind == PlanNode::Kind::kWait) {
    return Kernel([](KernelContext&) { return absl::OkStatus(); });
  }
  if (n.kind == PlanNode::Kind::kRead) {
    return Kernel([](KernelContext& c) -> absl::Status {
      VariableState* variable = c.variable_or_null(0);
      if (variable == nullptr) return c.variable(0).status();
      const std::lock_guard<std::mutex> lock(variable->mutex());
      if (!variable->initialized()) return variable->Uninitialized();
      WEIR_RETURN_IF_ERROR(CheckReachable(c, 0, *variable));
      c.SetOutput(0, variable->value());
      return absl::OkStatus();
    });
  }
  Device* to = n.device;
  Device* from = graph_.nodes[n.inputs[0].node].device;
  if (from == nullptr) from = env_.devices[0].get();
  return Kernel([from, to](KernelContext& c, Kernel::Done done) {
    const absl::StatusOr<Tensor*> y = c.AllocateOutput(0, c.input(0).shape());
    if (!y.ok()) return done(y.status());
    to->is_host() ? from->CopyToHost(c.input(0), **y, std::move(done))
                  : to->CopyFromHost(c.input(0), **y, std::move(done));
  });
}

}  // namespace

absl::Status Schedule(const PlanGraph& graph, const PlanEnvironment& env, Plan* plan) {
  return Scheduler(graph, env, plan).Run();
}

}  // namespace weir
