#include <algorithm>
#include <future>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/kernels/variable_access.h"
#include "weir/session/cached_subplan.h"
#include "weir/session/plan.h"
#include "weir/session/tiled_subplan.h"

// Partitions the static order (order.cc) into tasks that may run in parallel, and emits the
// instructions.
//
// A loop's instructions are enclosed by two marks, and the mark at the end jumps back to the
// beginning (executor.cc). A structured loop (structure_loops.cc) needs no mark at the beginning,
// since its variables are set when it is reached; its LoopCond is the mark that ends it. A loop
// runs in one task.
//
// Tasks. A hand-over between threads costs about a microsecond, a small node a hundredth of that.
// So only nodes above a cost (kHeavyNs, or asynchronous ones, which wait) start tasks, and light
// nodes join the task that produces their inputs. Task 0 contains all light nodes that depend on no
// heavy node, and runs first. A node joins a task only if all its predecessors are in that task or
// in tasks it depends on already, and a task on which another one depends is closed: so the tasks
// form an acyclic graph, and a task depends on others only at its beginning. If two heavy nodes use
// the same value, each gets its own task.
namespace weir {

namespace {

constexpr double kHeavyNs = 20e3;
constexpr size_t kMaxTasks = 4096;  // reachability between tasks is a bit matrix

// A kernel that writes a variable runs to completion even if its step is cancelled: no variable is
// left partially updated.
Kernel::Run RunToEnd(Kernel::Run run) {
  return [run = std::move(run)](KernelContext& c) {
    const ScopedCancellation none(nullptr);
    return run(c);
  };
}

class Scheduler {
 public:
  Scheduler(PlanGraph graph, const PlanEnvironment& env, Plan* plan)
      : graph_(std::move(graph)),
        env_(env),
        plan_(*plan),
        count_(static_cast<int>(graph_.nodes.size())) {
    carries_of_.resize(graph_.loops.size());
    for (const PlanGraph::Carry& c : graph_.carries) {
      if (graph_.IsLoopVariable(graph_.nodes[c.carry]))
        carries_of_[graph_.nodes[c.carry].value_loop].push_back(c);
    }
  }

  absl::Status Run() {
    WEIR_ASSIGN_OR_RETURN(static_cast<NodeOrder&>(scheduled_), OrderNodes(graph_));
    FindReadUsers();
    AssignSlots();
    WEIR_RETURN_IF_ERROR(PlaceConstants());
    MakeTasks();
    PlanMemory(graph_, scheduled_, env_, &plan_);
    return EmitInstructions();
  }

 private:
  bool runs(int id) const { return graph_.nodes[id].runs(); }
  // True if the node runs in each iteration of the loop, or of a nested loop.
  bool is_computed_in(int loop, int id) const {
    return runs(id) && graph_.IsInside(graph_.nodes[id].loop, loop);
  }
  bool is_heavy(int id) const {
    const PlanNode& n = graph_.nodes[id];
    return n.cost_ns >= kHeavyNs || n.kernel.is_async() || n.kind == PlanNode::Kind::kCopy;
  }
  int32_t slot(const PlanValue& v) const { return scheduled_.slot_of[v.node] + v.output; }

  // Finds the ops that use the values of inserted reads.
  void FindReadUsers() {
    for (int i = 0; i < count_; ++i) {
      if (graph_.nodes[i].removed || graph_.nodes[i].kind != PlanNode::Kind::kOp) continue;
      for (const PlanValue& v : graph_.nodes[i].inputs) {
        if (graph_.nodes[v.node].kind == PlanNode::Kind::kRead) reader_of_[v.node] = i;
      }
    }
  }

  // Assigns slots in execution order, so that the slots of a loop are contiguous.
  void AssignSlots() {
    scheduled_.slot_of.assign(count_, -1);
    const auto assign = [&](int i) {
      scheduled_.slot_of[i] = plan_.num_slots;
      plan_.num_slots += graph_.nodes[i].num_outputs();
    };
    for (int i = 0; i < count_; ++i) {
      if (!graph_.nodes[i].removed && !runs(i)) assign(i);
    }
    for (const int i : scheduled_.order) assign(i);
    DescribeLoops();
    plan_.num_dead_slots = plan_.num_slots;
    for (const PlanValue& v : graph_.feeds) {
      plan_.feed_slots.push_back(v.node >= 0 && !graph_.nodes[v.node].removed ? slot(v) : -1);
    }
    for (const PlanValue& v : graph_.fetches) plan_.fetch_slots.push_back(slot(v));
  }

  void DescribeLoops() {
    plan_.loops.resize(graph_.loops.size());
    absl::flat_hash_map<int32_t, int>
        num_variables;  // the number of variables with this next value, by its slot
    for (const PlanGraph::Carry& c : graph_.carries) {
      if (!graph_.nodes[c.carry].removed) ++num_variables[slot(c.next)];
    }
    for (const PlanGraph::Carry& c : graph_.carries) {
      const PlanNode& n = graph_.nodes[c.carry];
      const int32_t to = scheduled_.slot_of[c.carry];
      if (n.removed) continue;
      if (graph_.IsLoopVariable(n)) {
        AddVariableMove(c, to, num_variables[slot(c.next)]);
      } else {
        plan_.loops[n.loop].carries.push_back({.from = slot(c.next), .to = to});
      }
    }
    for (size_t l = 0; l < plan_.loops.size(); ++l)
      plan_.loops[l].is_structured = graph_.loops[l].is_structured();
    for (int i = 0; i < count_; ++i) {
      const PlanNode& n = graph_.nodes[i];
      if (n.removed || !n.is_enter() || n.node->attr<bool>("is_constant")) continue;
      if (plan_.loops[n.value_loop].is_structured) continue;
      plan_.loops[n.value_loop].entered.push_back(scheduled_.slot_of[i]);
      if (!n.may_be_dead) plan_.loops[n.value_loop].entered_alive.push_back(scheduled_.slot_of[i]);
    }
  }

  // The next value of a single variable, which the next iteration recomputes, can be moved instead
  // of shared.
  void AddVariableMove(const PlanGraph::Carry& carry, int32_t to, int num_variables) {
    const int l = graph_.nodes[carry.carry].value_loop, next = carry.next.node;
    Loop& loop = plan_.loops[l];
    const int32_t from = slot(carry.next);
    if (from == to) return;
    const bool moves =
        is_computed_in(l, next) && !graph_.IsLoopVariable(graph_.nodes[next]) && num_variables == 1;
    (moves ? loop.moved : loop.shared).push_back({from, to});
  }

  absl::Status PlaceConstants() {
    for (int i = 0; i < count_; ++i) {
      const PlanNode& n = graph_.nodes[i];
      for (int k = 0; k < n.num_outputs() && !n.removed; ++k) {
        if (!n.is_constant(k)) continue;
        WEIR_ASSIGN_OR_RETURN(Tensor value, CopyToDevice(n, k, n.constants[k]));
        plan_.constants.emplace_back(scheduled_.slot_of[i] + k, std::move(value));
      }
    }
    return absl::OkStatus();
  }

  // Returns the constant in the memory of the device where output k of the node is stored.
  absl::StatusOr<Tensor> CopyToDevice(const PlanNode& n, int k, const Tensor& value) const {
    if (!n.is_on_accelerator(k)) return value;
    WEIR_ASSIGN_OR_RETURN(const Tensor copy,
                          Tensor::Allocate(n.device->allocator(), value.dtype(), value.shape()));
    std::promise<absl::Status> copied;
    n.device->CopyFromHost(value, copy, [&](absl::Status s) { copied.set_value(std::move(s)); });
    WEIR_RETURN_IF_ERROR(copied.get_future().get());
    return copy;
  }

  // Returns the nodes that must complete before node i.
  IndexList Predecessors(int i) const {
    IndexList out = scheduled_.variable_predecessors[i];
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

  void MakeTasks() {
    scheduled_.task_of.assign(count_, -1);
    scheduled_.task_predecessors.assign(1, {});
    bool has_async = false;
    int heavy = 0;
    std::vector<int> heavy_users(count_, 0);
    for (const int i : scheduled_.order) {
      const PlanNode& n = graph_.nodes[i];
      has_async = has_async || n.kernel.is_async() || n.kind == PlanNode::Kind::kCopy;
      if (!is_heavy(i)) continue;
      ++heavy;
      for (const PlanValue& v : n.inputs) ++heavy_users[v.node];
    }
    const bool worthwhile =
        heavy > 1 && env_.pool.num_threads() > 1 && env_.enabled("partition_tasks");
    if ((has_async || worthwhile) && Partition(heavy_users)) return;
    for (const int i : scheduled_.order) scheduled_.task_of[i] = 0;
    scheduled_.task_predecessors.assign(1, {});
  }

  // Returns the end of the outermost loop that begins at this position, or the next position.
  size_t EndOfLoop(size_t at) const {
    int loop = graph_.nodes[scheduled_.order[at]].loop;
    if (loop < 0) return at + 1;
    while (graph_.loops[loop].parent >= 0) loop = graph_.loops[loop].parent;
    return static_cast<size_t>(scheduled_.loops[loop].second) + 1;
  }

  // Assigns nodes to tasks. Returns false if there would be too many tasks.
  bool Partition(const std::vector<int>& heavy_users) {
    auto& preds = scheduled_.task_predecessors;
    std::vector<bool> closed = {false};
    std::map<std::vector<int>, int>
        light_after;  // set of tasks -> an open task that depends on exactly these
    const auto new_task = [&](const std::vector<int>& after) {
      for (const int t : after) closed[t] = true;
      preds.push_back(after);
      closed.push_back(false);
      return static_cast<int>(preds.size()) - 1;
    };
    for (size_t at = 0; at < scheduled_.order.size();) {
      const size_t end = EndOfLoop(at);
      const absl::Span<const int> nodes(scheduled_.order.data() + at, end - at);
      at = end;
      std::vector<int> after;
      bool fork = false, waits = false;
      for (const int i : nodes) {
        for (const int p : Predecessors(i)) {
          if (const int t = scheduled_.task_of[p]; t > 0) after.push_back(t);
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
      for (const int i : nodes) scheduled_.task_of[i] = task;
      if (preds.size() > kMaxTasks) return false;
    }
    return true;
  }

  Kernel InternalKernel(const PlanNode& n) const;

  absl::Status EmitInstructions() {
    const int num_tasks = static_cast<int>(scheduled_.task_predecessors.size());
    std::vector<std::vector<int>> members(num_tasks);
    for (const int i : scheduled_.order) members[scheduled_.task_of[i]].push_back(i);
    plan_.tasks.resize(num_tasks);
    plan_.instructions.reserve(scheduled_.order.size() + 2 * graph_.loops.size());
    std::vector<int> instruction_of(count_, -1);
    for (int t = 0; t < num_tasks; ++t) {
      Task& task = plan_.tasks[t];
      task.begin = static_cast<int32_t>(plan_.instructions.size());
      for (const int i : members[t]) {
        BeginLoops(i);
        instruction_of[i] = static_cast<int>(plan_.instructions.size());
        WEIR_RETURN_IF_ERROR(EmitInstruction(i));
        EndLoops(i);
      }
      task.end = static_cast<int32_t>(plan_.instructions.size());
      std::vector<int> preds = scheduled_.task_predecessors[t];
      if (preds.empty() && t != 0) preds.push_back(0);
      task.num_predecessors = static_cast<int32_t>(preds.size());
      for (const int p : preds) plan_.tasks[p].successors.push_back(t);
    }
    for (const PlanGraph::Carry& c : graph_.carries) {
      if (graph_.IsLoopVariable(graph_.nodes[c.carry])) continue;
      for (Loop::Carry& carry : plan_.loops[graph_.nodes[c.next.node].loop].carries) {
        if (carry.from == slot(c.next)) carry.instruction = instruction_of[c.next.node];
      }
    }
    EmitReleases(instruction_of);
    return absl::OkStatus();
  }

  // Emits the marks before loops, outermost loops first.
  void BeginLoops(int i) {
    std::vector<int> begun;
    for (int l = graph_.nodes[i].loop; l >= 0; l = graph_.loops[l].parent) {
      if (scheduled_.loops[l].first == scheduled_.position[i]) begun.push_back(l);
    }
    for (auto l = begun.rbegin(); l != begun.rend(); ++l) {
      Loop& loop = plan_.loops[*l];
      if (!loop.is_structured) {
        EmitMark(*l, Instruction::Mark::kBegin);
        plan_.may_have_dead = true;
      }
      loop.begin = static_cast<int32_t>(plan_.instructions.size());
      loop.slots.first = scheduled_.slot_of[i];
      loop.dead_slots.first = plan_.num_dead_slots;
    }
  }
  void EndLoops(int i) {
    for (int l = graph_.nodes[i].loop; l >= 0; l = graph_.loops[l].parent) {
      if (scheduled_.loops[l].second != scheduled_.position[i]) return;
      Loop& loop = plan_.loops[l];
      loop.slots.second = scheduled_.slot_of[i] + graph_.nodes[i].num_outputs();
      loop.dead_slots.second = plan_.num_dead_slots;
      // Only otherwise does a structured loop have flags and slots to clear.
      if (loop.is_structured && loop.dead_slots.first == loop.dead_slots.second)
        loop.slots.second = loop.slots.first;
      loop.end = end_of_loop_[l] = static_cast<int>(plan_.instructions.size());
      EmitMark(l, Instruction::Mark::kEnd);
    }
  }
  void EmitMark(int loop, Instruction::Mark mark) {
    Instruction instruction;
    instruction.mark = mark;
    instruction.loop = loop;
    instruction.node = instruction.reported_node = &InternalNode("_Wait", DT_FLOAT);
    instruction.device = env_.devices[0].get();
    plan_.instructions.push_back(std::move(instruction));
  }

  // Returns the node for which a read was inserted: the op that uses the value, or the source of a
  // reference that is fetched.
  const Node* ReadFor(int read) const {
    const auto user = reader_of_.find(read);
    return graph_.nodes[user != reader_of_.end() ? user->second : graph_.nodes[read].inputs[0].node]
        .node;
  }

  // Returns true if the kernel comes from a registry that the user gave to the session.
  bool IsCustomKernel(const PlanNode& n) const {
    if (&env_.kernels == &BuiltinKernels() || n.kind != PlanNode::Kind::kOp || n.def == nullptr)
      return false;
    const auto place = n.device->place();
    return n.def == env_.kernels.Find(*n.node, place) &&
           n.def != BuiltinKernels().Find(*n.node, place);
  }

  absl::Status EmitInstruction(int i) {
    const PlanNode& n = graph_.nodes[i];
    const bool computes = n.kind == PlanNode::Kind::kOp && !n.kernel.is_constant() &&
                          !n.is_identity() && !n.Is(VariableUse::kReads);
    if (computes) plan_.flushes_subnormals = env_.options.flush_subnormals;
    Instruction instruction;
    instruction.node = n.node;
    instruction.reported_node = n.kind == PlanNode::Kind::kRead ? ReadFor(i) : n.node;
    instruction.device = n.device;
    if (graph_.EndsLoop(i)) {
      instruction.mark = Instruction::Mark::kTest;
      instruction.loop = n.loop;
    }
    Kernel kernel =
        n.kind == PlanNode::Kind::kOp ? std::move(graph_.nodes[i].kernel) : InternalKernel(n);
    instruction.is_async = kernel.is_async();
    instruction.has_subplan = n.def == &TiledSubplan::Def() || n.def == &CachedSubplan::Def();
    instruction.is_custom_kernel = IsCustomKernel(n);
    if (instruction.is_async) {
      instruction.run_async = static_cast<int32_t>(plan_.run_async.size());
      plan_.run_async.push_back(std::move(kernel).run_async());
    } else if (kernel.is_constant()) {  // in a branch that may be dead
      WEIR_ASSIGN_OR_RETURN(Tensor value, CopyToDevice(n, 0, kernel.constant()));
      instruction.run = [value = std::move(value)](KernelContext& c) {
        c.SetOutput(0, value);
        return absl::OkStatus();
      };
    } else {
      instruction.run = std::move(kernel).run();
      if (n.def != nullptr && !n.def->writes.empty())
        instruction.run = RunToEnd(std::move(instruction.run));
    }
    instruction.inputs = static_cast<int32_t>(plan_.indices.size());
    instruction.num_inputs = static_cast<int32_t>(n.inputs.size());
    for (const PlanValue& v : n.inputs) plan_.indices.push_back(slot(v));
    instruction.num_outputs = static_cast<int32_t>(n.num_outputs());
    for (int k = 0; k < n.num_outputs(); ++k) plan_.indices.push_back(scheduled_.slot_of[i] + k);
    for (const int control : n.controls) {
      if (!graph_.nodes[control].may_be_dead || !runs(control)) continue;
      plan_.indices.push_back(dead_slot_of_[control]);
      ++instruction.num_dead_controls;
    }
    if (n.may_be_dead) {
      instruction.dead_slot = dead_slot_of_[i] = plan_.num_dead_slots++;
      plan_.may_have_dead = true;
    }
    if (n.def != nullptr) {
      instruction.aliases = n.def->has_aliases();
      instruction.accepts_dead = n.def->accepts_dead;
      for (int k = 0; k < std::min(n.num_outputs(), 64); ++k) {
        if (n.is_host_output(k)) instruction.host_outputs |= uint64_t{1} << k;
      }
    }
    const bool listed =
        std::find(plan_.streams.begin(), plan_.streams.end(), n.device) != plan_.streams.end();
    if (n.device->has_stream() && !listed) plan_.streams.push_back(n.device);
    plan_.instructions.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  // Values outside the arena have memory of their own, or share a variable's memory. They are
  // released after their last use in the static order. Users in several tasks finish in an unknown
  // order; such a value is released when the variable whose memory it shares is written, or else
  // when the step ends.
  void EmitReleases(const std::vector<int>& instruction_of) {
    std::vector<bool> keep(plan_.num_slots, false);
    for (const Plan::Placement& p : plan_.placements) keep[p.slot] = true;
    for (const auto& [s, value] : plan_.constants) keep[s] = true;
    for (const int32_t s : plan_.fetch_slots) {
      if (keep[s]) continue;
      keep[s] = true;
      plan_.fetch_reset_slots.push_back(s);
      plan_.dynamic_slots.push_back(s);
    }
    for (const Loop& loop : plan_.loops) {  // loop-carried: moved at the end of each iteration
      for (const Loop::Carry& c : loop.carries) {
        if (keep[c.from]) continue;
        keep[c.from] = true;
        plan_.dynamic_slots.push_back(c.from);
      }
    }
    std::vector<IndexList> users(plan_.num_slots);
    for (const int i : scheduled_.order) {
      for (const PlanValue& v : graph_.nodes[i].inputs) users[slot(v)].push_back(i);
    }
    const std::vector<bool> is_loop_carried = KeepLoopCarriedValues(&keep, &users);
    std::vector<IndexList> after(plan_.instructions.size()), before(plan_.instructions.size());
    for (int i = 0; i < count_; ++i) {
      const PlanNode& n = graph_.nodes[i];
      if (n.removed || graph_.EndsLoop(i)) continue;
      for (int k = 0; k < n.num_outputs(); ++k) {
        const int32_t s = scheduled_.slot_of[i] + k;
        if (keep[s]) continue;
        plan_.dynamic_slots.push_back(s);
        if (graph_.IsLoopVariable(n)) {
          ReleaseVariable(i, users[s], is_loop_carried[s], instruction_of, &after);
          continue;
        }
        const int last = LastUser(users[s], i);
        if (last >= 0 && instruction_of[last] >= 0) {
          after[ReleasePoint(last, n.loop, instruction_of)].push_back(s);
          // The body of a structured loop does not run in the last iteration.
          if (n.loop >= 0 && !n.in_body && IsInBodyOf(n.loop, last))
            after[end_of_loop_[n.loop]].push_back(s);
        } else {
          plan_.reset_slots.push_back(s);
          if (const int writer = WriterAfter(scheduled_.value_of[i], users[s]); writer >= 0)
            before[instruction_of[writer]].push_back(s);
        }
      }
    }
    for (size_t k = 0; k < plan_.instructions.size(); ++k) {
      Instruction& instruction = plan_.instructions[k];
      instruction.releases = static_cast<int32_t>(plan_.indices.size());
      instruction.num_releases_before = static_cast<int32_t>(before[k].size());
      instruction.num_releases_after = static_cast<int32_t>(after[k].size());
      plan_.indices.insert(plan_.indices.end(), before[k].begin(), before[k].end());
      plan_.indices.insert(plan_.indices.end(), after[k].begin(), after[k].end());
    }
    if (!env_.enabled("in_place")) return;
    for (const int i : scheduled_.order)
      RecordLastUses(i, after[instruction_of[i]], instruction_of[i]);
  }

  // Returns the instruction after which node `last` no longer uses a value of `loop`.
  int ReleasePoint(int last, int loop, const std::vector<int>& instruction_of) const {
    const int around = graph_.OutermostLoopExcluding(last, loop);
    return around >= 0 ? end_of_loop_.at(around) : instruction_of[last];
  }

  // Returns true if the node runs in the body of this structured loop, or in a loop nested in it.
  bool IsInBodyOf(int loop, int node) const {
    const int condition = graph_.loops[loop].condition;
    return condition >= 0 && scheduled_.position[node] > scheduled_.position[condition] &&
           scheduled_.position[node] <= scheduled_.loops[loop].second;
  }

  // Keeps loop-carried values of structured loops live until the end of the iteration. Returns, by
  // slot, whether the value is loop-carried.
  std::vector<bool> KeepLoopCarriedValues(std::vector<bool>* keep, std::vector<IndexList>* users) {
    std::vector<bool> is_loop_carried(plan_.num_slots, false);
    // After the step no value from outside may remain.
    const auto keep_for_step = [&](int32_t s) {
      plan_.reset_slots.push_back(s);
      plan_.dynamic_slots.push_back(s);
      (*keep)[s] = true;
    };
    for (const PlanGraph::Carry& c : graph_.carries) {
      const PlanNode &variable = graph_.nodes[c.carry], &next = graph_.nodes[c.next.node];
      if (variable.removed || !graph_.IsLoopVariable(variable)) continue;
      if ((*keep)[scheduled_.slot_of[c.carry]]) keep_for_step(scheduled_.slot_of[c.carry]);
      const int32_t from = slot(c.next);
      is_loop_carried[from] = true;
      if (next.is_constant(c.next.output)) continue;
      if (is_computed_in(variable.value_loop, c.next.node)) {
        keep_for_step(from);
      } else if (!graph_.IsLoopVariable(next) || next.value_loop != variable.value_loop) {
        (*users)[from].push_back(scheduled_.order[scheduled_.loops[variable.value_loop].second]);
      }
    }
    return is_loop_carried;
  }

  // A variable of a structured loop is dead after its last use in the body, unless it is also the
  // next value of a variable. Its final value is dead when the loop ends, unless it is used
  // outside.
  void ReleaseVariable(int i, const IndexList& users, bool is_loop_carried,
                       const std::vector<int>& instruction_of, std::vector<IndexList>* after) {
    const int loop = graph_.nodes[i].value_loop;
    const int32_t s = scheduled_.slot_of[i];
    const int end = scheduled_.loops[loop].second;
    int last = -1;
    IndexList outside;
    for (const int u : users) {
      if (scheduled_.position[u] > end) {
        outside.push_back(u);
      } else if (last < 0 || scheduled_.position[u] > scheduled_.position[last]) {
        last = u;
      }
    }
    if (!is_loop_carried && last >= 0 && IsInBodyOf(loop, last))
      (*after)[ReleasePoint(last, loop, instruction_of)].push_back(s);
    const int user = outside.empty() ? -1 : LastUser(outside, i), around = graph_.nodes[i].loop;
    // The body of the enclosing loop does not run in its last iteration.
    if (user >= 0 && around >= 0 && !graph_.nodes[i].in_body && IsInBodyOf(around, user))
      (*after)[end_of_loop_[around]].push_back(s);
    if (outside.empty()) {
      (*after)[end_of_loop_[loop]].push_back(s);
    } else if (user >= 0 && instruction_of[user] >= 0) {
      (*after)[ReleasePoint(user, graph_.nodes[i].loop, instruction_of)].push_back(s);
    } else {
      plan_.reset_slots.push_back(s);
    }
  }

  // Records which inputs the kernel of node i may overwrite: those that are released after it.
  // PlanMemory handles values in the arena.
  void RecordLastUses(int i, const IndexList& released, int instruction) {
    const PlanNode& n = graph_.nodes[i];
    if (n.def == nullptr || !n.device->is_host()) return;
    const auto overwritten = [&](size_t in) {
      return absl::c_linear_search(n.def->in_place, static_cast<int>(in));
    };
    IndexList last_uses;
    for (size_t in = 0; in < n.inputs.size(); ++in) {
      const int32_t s = slot(n.inputs[in]);
      if (!overwritten(in) || !absl::c_linear_search(released, s)) continue;
      bool read_otherwise = false;
      for (size_t other = 0; other < n.inputs.size(); ++other)
        read_otherwise |= slot(n.inputs[other]) == s && !overwritten(other);
      if (!read_otherwise) last_uses.push_back(s);
    }
    plan_.instructions[instruction].last_uses = static_cast<int32_t>(plan_.indices.size());
    plan_.instructions[instruction].num_last_uses = static_cast<int32_t>(last_uses.size());
    plan_.indices.insert(plan_.indices.end(), last_uses.begin(), last_uses.end());
  }

  // Returns the last user, if the order of all users is known. An unused value is released by the
  // node that produces it. Returns -1 if the order is not known, and for unused feeds.
  int LastUser(const IndexList& users, int producer) const {
    if (users.empty()) return runs(producer) ? producer : -1;
    const int task = scheduled_.task_of[users[0]];
    int last = users[0];
    for (const int u : users) {
      if (scheduled_.task_of[u] != task) return -1;
      if (scheduled_.position[u] > scheduled_.position[last]) last = u;
    }
    return last;
  }

  // Returns a writer of the variable that runs after all these users; -1 if there is none.
  int WriterAfter(int variable, const IndexList& users) const {
    if (variable < 0) return -1;
    for (const int i : scheduled_.order) {
      const IndexList& written = scheduled_.written_by[i];
      if (std::find(written.begin(), written.end(), variable) == written.end()) continue;
      const auto& extra = scheduled_.variable_predecessors[i];
      const bool after_all = std::all_of(users.begin(), users.end(), [&](int u) {
        return std::find(extra.begin(), extra.end(), u) != extra.end();
      });
      if (after_all) return i;
    }
    return -1;
  }

  PlanGraph graph_;
  const PlanEnvironment& env_;
  Plan& plan_;
  const int count_;
  ScheduledOrder scheduled_;
  std::vector<std::vector<PlanGraph::Carry>> carries_of_;  // by structured loop
  absl::flat_hash_map<int, int> reader_of_;                // by inserted read
  std::map<int, int32_t> dead_slot_of_;
  std::map<int, int> end_of_loop_;  // by loop: its last instruction
};

// Returns the kernel of a node that a pass has inserted: a read, copy or wait.
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

absl::Status Schedule(PlanGraph graph, const PlanEnvironment& env, Plan* plan) {
  return Scheduler(std::move(graph), env, plan).Run();
}

}  // namespace weir
