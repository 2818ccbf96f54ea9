#include <algorithm>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/kernels/lib/hash.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/session/passes/cached_subplan.h"
#include "weir/session/passes/lowering.h"
#include "weir/session/passes/passes.h"
#include "weir/session/passes/tiled_subplan.h"
#include "weir/session/plan/internal_nodes.h"
#include "weir/session/plan/make_kernels.h"

// Emits the instructions of a plan, task by task in the static order.
//
// A loop's instructions are enclosed by two marks, and the mark at the end jumps back to the
// beginning (executor.cc). A structured loop (structure_loops.cc) needs no mark at the beginning,
// since its variables are set when it is reached; its LoopCond is the mark that ends it. If a loop
// has tasks of its own (make_tasks.cc), the marks are in the first and in the last of them.
namespace weir {

namespace {

// A kernel that writes a variable runs to completion even if its step is cancelled: no variable is
// left partially updated.
Kernel::Run RunToEnd(Kernel::Run run) {
  return [run = std::move(run)](KernelContext& c) {
    const ScopedCancellation none(nullptr);
    return run(c);
  };
}

// The value of a reference to a queue, a table or another resource of TensorFlow's first ops: its
// container and name.
absl::Status ReadHandle(KernelContext& c) {
  const Tensor& value = c.input(0);
  const ResourceHandle* const handle = value.dtype() == DT_RESOURCE && value.num_elements() == 1
                                           ? value.data<ResourceHandle>()
                                           : nullptr;
  if (handle == nullptr || handle->resource == nullptr) return c.variable(0).status();
  const std::string& container = handle->container;
  c.SetOutput(
      0, Tensor::Vector<std::string>({container.empty() ? "localhost" : container, handle->name}));
  return absl::OkStatus();
}

absl::Status ReadVariable(KernelContext& c) {
  VariableState* const variable = c.variable_or_null(0);
  if (variable == nullptr) return ReadHandle(c);
  const MutexLock lock(variable->mutex());
  if (!variable->initialized()) return variable->Uninitialized();
  WEIR_RETURN_IF_ERROR(CheckReachable(c, 0, *variable));
  c.SetOutput(0, variable->value());
  return absl::OkStatus();
}

Kernel CopyBetween(Device* from, Device* to) {
  return Kernel([from, to](KernelContext& c, Kernel::Done done) {
    const absl::StatusOr<Tensor*> y = c.AllocateOutput(0, c.input(0).shape());
    if (!y.ok()) return done(y.status());
    to->is_host() ? from->CopyToHost(c.input(0), **y, std::move(done))
                  : to->CopyFromHost(c.input(0), **y, std::move(done));
  });
}

class Emitter {
 public:
  Emitter(PlanGraph& graph, const PlanEnvironment& env, Lowering& lowering)
      : graph_(graph),
        env_(env),
        order_(lowering.order),
        slots_(lowering.slots),
        tasks_(lowering.tasks),
        releases_(lowering.releases),
        memory_(lowering.memory) {}

  absl::StatusOr<std::unique_ptr<Plan>> Run() {
    plan_.num_slots = slots_.count;
    plan_.num_dead_slots = slots_.count;
    plan_.placements = std::move(memory_.placements);
    plan_.arenas = std::move(memory_.arenas);
    plan_.moved_fetches = std::move(releases_.moved_fetches);
    plan_.reset_slots = std::move(releases_.reset);
    plan_.dynamic_slots = std::move(releases_.dynamic);
    for (const PlanValue& v : graph_.feeds) {
      const bool is_used = v.node >= 0 && !graph_.nodes[v.node].removed;
      plan_.feed_slots.push_back(is_used ? slots_.of(v) : -1);
    }
    for (const PlanValue& v : graph_.fetches) plan_.fetch_slots.push_back(slots_.of(v));
    WEIR_RETURN_IF_ERROR(PlaceConstants());
    DescribeLoops();
    WEIR_RETURN_IF_ERROR(EmitTasks());
    return std::make_unique<Plan>(std::move(plan_));
  }

 private:
  absl::Status PlaceConstants() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const PlanNode& n = graph_.nodes[i];
      for (int k = 0; k < n.num_outputs() && !n.removed; ++k) {
        if (!n.is_constant(k)) continue;
        WEIR_ASSIGN_OR_RETURN(Tensor value, CopyToDevice(n, k, n.constants[k]));
        plan_.constants.emplace_back(slots_.first[i] + k, std::move(value));
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

  // ---- loops

  void DescribeLoops() {
    plan_.loops.resize(graph_.loops.size());
    for (size_t l = 0; l < plan_.loops.size(); ++l) {
      plan_.loops[l].is_structured = graph_.loops[l].is_structured();
      plan_.loops[l].parent = graph_.loops[l].parent;
      plan_.loops[l].name_hash = MurmurHash64(graph_.loops[l].frame_name);
    }
    DescribeCarries();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const PlanNode& n = graph_.nodes[i];
      if (n.removed || !n.is_enter() || n.node->attr<bool>("is_constant")) continue;
      Loop& loop = plan_.loops[n.value_loop];
      if (loop.is_structured) continue;
      loop.entered.push_back(slots_.first[i]);
      if (!n.may_be_dead) loop.entered_alive.push_back(slots_.first[i]);
    }
  }

  void DescribeCarries() {
    // The number of variables with this next value, by its slot.
    absl::flat_hash_map<int32_t, int> num_variables;
    absl::flat_hash_set<int32_t> is_swapped;  // slots of variables
    for (const PlanGraph::Carry& c : graph_.carries) {
      if (!graph_.nodes[c.carry].removed) ++num_variables[slots_.of(c.next)];
    }
    for (size_t l = 0; l < memory_.swapped.size(); ++l) {
      plan_.loops[l].swapped = memory_.swapped[l];
      for (const Loop::Move& move : memory_.swapped[l]) is_swapped.insert(move.to);
    }
    for (const PlanGraph::Carry& c : graph_.carries) {
      const PlanNode& n = graph_.nodes[c.carry];
      const int32_t from = slots_.of(c.next), to = slots_.first[c.carry];
      if (n.removed) continue;
      if (!graph_.IsLoopVariable(n)) {
        plan_.loops[n.loop].carries.push_back(
            {.from = from, .to = to, .copied = memory_.copied.contains(to)});
        continue;
      }
      if (from == to) continue;
      // The next value of a single variable, which the next iteration recomputes, can be moved
      // instead of shared.
      const PlanNode& next = graph_.nodes[c.next.node];
      const bool moves = next.runs() && graph_.IsInside(next.loop, n.value_loop) &&
                         !graph_.IsLoopVariable(next) && num_variables[from] == 1;
      Loop& loop = plan_.loops[n.value_loop];
      if (!moves) {
        loop.shared.push_back({from, to});
      } else if (!is_swapped.contains(to)) {
        loop.moved.push_back({from, to});
      }
    }
  }

  // Emits the marks before loops, outermost loops first.
  void BeginLoops(int i) {
    std::vector<int> begun;
    for (int l = graph_.nodes[i].loop; l >= 0 && !HasTasks(l); l = graph_.loops[l].parent) {
      if (order_.loops[l].first == order_.position[i]) begun.push_back(l);
    }
    for (auto l = begun.rbegin(); l != begun.rend(); ++l) BeginLoop(*l);
  }

  void EndLoops(int i) {
    for (int l = graph_.nodes[i].loop; l >= 0 && !HasTasks(l); l = graph_.loops[l].parent) {
      if (order_.loops[l].second != order_.position[i]) return;
      EndLoop(l);
    }
  }

  bool HasTasks(int l) const { return tasks_.of_loop[l].exists(); }

  void BeginLoop(int l) {
    Loop& loop = plan_.loops[l];
    if (!loop.is_structured) {
      EmitMark(l, Instruction::Mark::kBegin);
      plan_.may_have_dead = true;
    }
    loop.begin = static_cast<int32_t>(plan_.instructions.size());
    loop.slots.first = slots_.first[order_.order[order_.loops[l].first]];
    loop.dead_slots.first = plan_.num_dead_slots;
  }

  void EndLoop(int l) {
    Loop& loop = plan_.loops[l];
    const int last = order_.order[order_.loops[l].second];
    loop.slots.second = slots_.of(last, graph_.nodes[last].num_outputs());
    loop.dead_slots.second = plan_.num_dead_slots;
    // Only otherwise does a structured loop have flags and slots to clear.
    if (loop.is_structured && loop.dead_slots.first == loop.dead_slots.second)
      loop.slots.second = loop.slots.first;
    loop.end = static_cast<int>(plan_.instructions.size());
    EmitMark(l, Instruction::Mark::kEnd);
    SetReleases(plan_.instructions.back(), {}, releases_.after_loop[l]);
  }

  void EmitMark(int loop, Instruction::Mark mark) {
    Instruction instruction;
    instruction.mark = mark;
    instruction.loop = loop;
    instruction.node = instruction.reported_node = &InternalNode("_Wait", DT_FLOAT);
    instruction.device = env_.devices[0].get();
    SetReleases(instruction, {}, {});
    plan_.instructions.push_back(std::move(instruction));
  }

  // ---- instructions

  absl::Status EmitTasks() {
    const int num_tasks = static_cast<int>(tasks_.predecessors.size());
    std::vector<std::vector<int>> members(num_tasks);
    std::vector<int> begun(num_tasks, -1), ended(num_tasks, -1);  // loops, by task
    for (size_t l = 0; l < plan_.loops.size(); ++l) {
      const auto [first, last] = tasks_.of_loop[l];
      if (first < 0) continue;
      begun[first] = ended[last] = static_cast<int>(l);
      plan_.loops[l].first_task = first;
      plan_.loops[l].last_task = last;
    }
    for (const int i : order_.order) members[tasks_.task_of[i]].push_back(i);
    plan_.tasks.resize(num_tasks);
    plan_.instructions.reserve(order_.order.size() + 2 * graph_.loops.size());
    std::vector<int> instruction_of(graph_.nodes.size(), -1);
    for (int t = 0; t < num_tasks; ++t) {
      Task& task = plan_.tasks[t];
      task.begin = static_cast<int32_t>(plan_.instructions.size());
      if (begun[t] >= 0) BeginLoop(begun[t]);
      if (ended[t] >= 0) EndLoop(ended[t]);
      for (const int i : members[t]) {
        BeginLoops(i);
        instruction_of[i] = static_cast<int>(plan_.instructions.size());
        WEIR_RETURN_IF_ERROR(EmitInstruction(i));
        EndLoops(i);
      }
      task.end = static_cast<int32_t>(plan_.instructions.size());
      std::vector<int> predecessors = tasks_.predecessors[t];
      if (predecessors.empty() && t != 0) predecessors.push_back(0);
      task.num_predecessors = static_cast<int32_t>(predecessors.size());
      for (const int p : predecessors) plan_.tasks[p].successors.push_back(t);
    }
    for (const PlanGraph::Carry& c : graph_.carries) {
      if (graph_.IsLoopVariable(graph_.nodes[c.carry])) continue;
      for (Loop::Carry& carry : plan_.loops[graph_.nodes[c.next.node].loop].carries) {
        if (carry.from == slots_.of(c.next)) carry.instruction = instruction_of[c.next.node];
      }
    }
    return absl::OkStatus();
  }

  // Returns the kernel of a node that a pass has inserted: a read, copy or wait.
  Kernel InternalKernel(const PlanNode& n) const {
    if (n.kind == PlanNode::Kind::kWait)
      return Kernel([](KernelContext&) { return absl::OkStatus(); });
    if (n.kind == PlanNode::Kind::kRead) return Kernel(ReadVariable);
    Device* const from = graph_.nodes[n.inputs[0].node].device;
    return CopyBetween(from == nullptr ? env_.devices[0].get() : from, n.device);
  }

  // Sets the function of the instruction, which takes the node's kernel.
  absl::Status SetKernel(PlanNode& n, Instruction& instruction) {
    Kernel kernel = n.kind == PlanNode::Kind::kOp ? std::move(n.kernel) : InternalKernel(n);
    instruction.is_async = kernel.is_async();
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
    return absl::OkStatus();
  }

  absl::Status EmitInstruction(int i) {
    PlanNode& n = graph_.nodes[i];
    const bool computes = n.kind == PlanNode::Kind::kOp && !n.kernel.is_constant() &&
                          !n.is_identity() && !n.Is(VariableUse::kReads);
    if (computes) plan_.flushes_subnormals = env_.options.flush_subnormals;
    Instruction instruction;
    instruction.node = n.node;
    instruction.reported_node = n.reported_node != nullptr ? n.reported_node : n.node;
    instruction.device = n.device;
    if (graph_.EndsLoop(i)) {
      instruction.mark = Instruction::Mark::kTest;
      instruction.loop = n.loop;
    }
    WEIR_RETURN_IF_ERROR(SetKernel(n, instruction));
    instruction.has_subplan = n.def == &TiledSubplan::Def() || n.def == &CachedSubplan::Def();
    if (n.traits().crosses_tasks) instruction.loop = n.loop;
    instruction.is_custom_kernel = HasCustomKernel(n, env_.kernels);
    SetArguments(i, instruction);
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
    if (n.device->has_stream() && !absl::c_linear_search(plan_.streams, n.device))
      plan_.streams.push_back(n.device);
    SetReleases(instruction, releases_.before[i], releases_.after[i]);
    instruction.last_uses = Append(releases_.last_uses[i]);
    instruction.num_last_uses = static_cast<int32_t>(releases_.last_uses[i].size());
    plan_.instructions.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  void SetArguments(int i, Instruction& instruction) {
    const PlanNode& n = graph_.nodes[i];
    instruction.inputs = static_cast<int32_t>(plan_.indices.size());
    instruction.num_inputs = static_cast<int32_t>(n.inputs.size());
    for (const PlanValue& v : n.inputs) plan_.indices.push_back(slots_.of(v));
    instruction.num_outputs = static_cast<int32_t>(n.num_outputs());
    for (int k = 0; k < n.num_outputs(); ++k) plan_.indices.push_back(slots_.of(i, k));
    for (const int control : n.controls) {
      if (!graph_.nodes[control].may_be_dead || !graph_.nodes[control].runs()) continue;
      plan_.indices.push_back(dead_slot_of_[control]);
      ++instruction.num_dead_controls;
    }
  }

  void SetReleases(Instruction& instruction, const IndexList& before, const IndexList& after) {
    instruction.releases = Append(before);
    Append(after);
    instruction.num_releases_before = static_cast<int32_t>(before.size());
    instruction.num_releases_after = static_cast<int32_t>(after.size());
  }

  // Appends to the plan's indices; returns the offset.
  int32_t Append(const IndexList& indices) {
    const auto offset = static_cast<int32_t>(plan_.indices.size());
    plan_.indices.insert(plan_.indices.end(), indices.begin(), indices.end());
    return offset;
  }

  PlanGraph& graph_;
  const PlanEnvironment& env_;
  const NodeOrder& order_;
  const Slots& slots_;
  const TaskGraph& tasks_;
  ReleasePlan& releases_;
  MemoryPlan& memory_;
  Plan plan_;
  absl::flat_hash_map<int, int32_t> dead_slot_of_;  // by node
};

}  // namespace

absl::Status EmitInstructions(PlanGraph& graph, const PlanEnvironment& env, Lowering& lowering) {
  WEIR_ASSIGN_OR_RETURN(lowering.plan, Emitter(graph, env, lowering).Run());
  lowering.plan->graphs = graph.graphs;
  lowering.plan->graphs.push_back(graph.internal_graph);
  return absl::OkStatus();
}

}  // namespace weir
