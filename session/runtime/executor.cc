#include "weir/session/runtime/executor.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "weir/core/runtime/float_mode.h"
#include "weir/core/tensor/exception.h"
#include "weir/core/tensor/heap.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/session/runtime/donated_feeds.h"

// How a step runs. The plan has decided everything: the instructions of a task are called one after
// another, and between two of them the executor only checks a status and a flag or two. A step
// parses no protobuf, hashes nothing, and takes no lock that another step contends for.
//
// A plan of a single task runs on the calling thread (its big kernels split their loops over the
// pool). With several tasks, each task has a counter of its unfinished predecessors. The task that
// decrements a counter to zero posts the successor to the queue of the state, from which the caller
// and helper threads of the pool take work. A caller that finds the queue empty helps with the
// loops of kernels that run. An asynchronous instruction suspends its task: the thread that calls
// `done` posts the rest of the task, so waiting blocks no thread.
//
// Branches. Switch marks the outputs of the untaken branch dead. An instruction with a dead input
// (or dead control input) is skipped and its outputs are dead; Merge takes the input that is alive.
// The static order needs nothing more: both branches are decided by the time Merge runs.
//
// Loops. The instructions of a loop are enclosed by two marks. The second mark passes the values of
// live NextIterations on to the next iteration, clears the dead flags of this iteration, and jumps
// to the first instruction of the loop; if no NextIteration is alive, the loop is over. Iterations
// run one after another: an iteration depends on nothing but earlier ones, so the orders of
// TensorFlow, which may overlap iterations, give no other values. Where an iteration waits for
// something outside of the step, it has tasks of its own, which count their predecessors again in
// each iteration: the last one ends the iteration and starts the first one. A structured loop has a
// mark in the place of its LoopCond, which ends the loop. Its loop variables move to the next
// iteration all at once; small ones by exchanging places in the arena with the values computed for
// them.
//
// Errors. The first error is kept, with the node's name, op and device. In a sequence the step ends
// at once. With tasks the remaining instructions are skipped, waiting kernels are woken through the
// Cancellation, and the step ends when every task has finished. Then all values in the state are
// released, so that the next step starts clean. A kernel that runs when its step is cancelled
// leaves its loops by an exception (core/tensor/cancellation.h), unless it writes to a variable.
//
// Accelerators. Running an instruction of a device with a stream enqueues it. Later work in the
// same stream needs no waiting, and may reuse its memory; only a copy to the host or an
// asynchronous instruction waits. A step ends when the streams it used have run all that it
// enqueued, so that it can report whether all went well. An error that a kernel finds after it has
// returned is reported as the reason of the step's Cancellation, or by Synchronize if the device
// cannot tell which step it belongs to.
namespace weir {

namespace {

// A block of memory that is reserved for reporting errors: when small allocations have used up all
// memory, there would be none left for an error message. One per process.
class MemoryReserve {
 public:
  void Refill() {
    if (block_.load(std::memory_order_relaxed) != nullptr) return;
    std::free(block_.exchange(std::malloc(size_t{1} << 20)));
  }
  void Release() { std::free(block_.exchange(nullptr)); }

 private:
  std::atomic<void*> block_{nullptr};
};

MemoryReserve& Reserve() {
  static MemoryReserve& reserve = *new MemoryReserve;
  return reserve;
}

// A payload that marks errors which already name the node and its function.
constexpr char kReportedInFunction[] = "weir/in_function";
// A payload with the name of the failed node of the step's graph.
constexpr char kFailedNode[] = "weir/node";

std::string TimeoutMessage(std::chrono::milliseconds limit) {
  return absl::StrCat("The step took longer than its time limit of ", limit.count(), " ms");
}

// Returns the resources that a waiting node works on, as the graph names them: " while it waited
// for files (FIFOQueueV2)".
std::string DescribeAwaitedResources(const Node& node) {
  std::string resources;
  for (const Output& in : node.inputs()) {
    if (!in.is_ref() && in.dtype() != DT_RESOURCE) continue;
    absl::StrAppend(&resources, resources.empty() ? " while it waited for " : ", ",
                    in.node->Label());
  }
  return resources;
}

}  // namespace

struct Executor::ExecutionState {
  std::vector<Tensor> slots, planned;
  std::vector<uint8_t> dead;
  std::vector<StepFrame> frames;  // outside of loops, then by loop, if it is unstructured
  std::vector<KernelContext> contexts;
  StepInfo step;
  std::atomic<int64_t> id{0};  // of the step in flight, read by TimedOut(); 0 if there is none
  std::unique_ptr<Cancellation> cancellation = std::make_unique<Cancellation>();

  std::unique_ptr<std::atomic<int32_t>[]> num_pending;  // by task: its unfinished predecessors
  std::unique_ptr<std::atomic<int32_t>[]> running;  // by task: the instruction, -1 if there is none
  Mutex mutex;
  // Task, instruction to continue with.
  std::deque<std::pair<int32_t, int32_t>> posted ABSL_GUARDED_BY(mutex);
  int32_t tasks_left ABSL_GUARDED_BY(mutex) = 0;
  std::atomic<bool> failed{false};
  FloatMode float_mode;           // of all tasks
  MemoryQuota* memory = nullptr;  // of the caller, for all tasks
  absl::Status status ABSL_GUARDED_BY(mutex);
};

Executor::Executor(std::unique_ptr<const Plan> plan, ThreadPool& pool, ResourceMap& resources)
    : plan_(std::move(plan)), pool_(pool), resources_(resources) {
  sequential_ = plan_->tasks.size() == 1 &&
                std::none_of(plan_->instructions.begin(), plan_->instructions.end(),
                             [](const Instruction& i) { return i.is_async; });
}

Executor::~Executor() {
  while (jobs_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

absl::StatusOr<std::unique_ptr<Executor::ExecutionState>> Executor::NewState() {
  auto state = std::make_unique<ExecutionState>();
  state->slots.resize(plan_->num_slots);
  state->planned.resize(plan_->num_slots);
  state->dead.assign(plan_->num_dead_slots, 0);
  state->frames.resize(plan_->loops.size() + 1);
  state->step.pool = &pool_;
  state->step.resources = &resources_;
  state->step.cancellation = state->cancellation.get();
  for (const auto& [device, bytes] : plan_->arenas) {
    void* memory = device->allocator().Allocate(bytes);
    if (memory == nullptr) return ArenaError(*device, bytes);
    struct Arena {
      Allocator* allocator;
      void* memory;
      size_t bytes;
    };
    const auto release = [](void* arg) {
      auto* arena = static_cast<Arena*>(arg);
      arena->allocator->Deallocate(arena->memory, arena->bytes);
      delete arena;
    };
    const BufferPtr arena(Buffer::Wrap(memory, bytes, &device->allocator(), release,
                                       new Arena{&device->allocator(), memory, bytes},
                                       /*transient=*/true));
    for (const Plan::Placement& p : plan_->placements) {
      if (p.device == device) {
        state->planned[p.slot] =
            Tensor(p.dtype, p.shape, arena, static_cast<char*>(memory) + p.offset);
      }
    }
  }
  for (const auto& [slot, value] : plan_->constants) state->slots[slot] = value;
  state->contexts.reserve(plan_->instructions.size());
  for (const Instruction& instruction : plan_->instructions) {
    state->contexts.emplace_back(
        *instruction.node, *instruction.device, state->step,
        KernelContext::Binding{.slots = state->slots.data(),
                               .planned = state->planned.data(),
                               .dead = state->dead.data(),
                               .inputs = plan_->indices.data() + instruction.inputs,
                               .outputs = plan_->indices.data() + instruction.outputs(),
                               .num_inputs = instruction.num_inputs,
                               .num_outputs = instruction.num_outputs,
                               .host_outputs = instruction.host_outputs,
                               .aliases = instruction.aliases,
                               .last_uses = plan_->indices.data() + instruction.last_uses,
                               .num_last_uses = instruction.num_last_uses,
                               .frame = &state->frames[instruction.loop + 1]});
  }
  state->num_pending = std::make_unique<std::atomic<int32_t>[]>(plan_->tasks.size());
  state->running = std::make_unique<std::atomic<int32_t>[]>(plan_->tasks.size());
  return state;
}

// Returns the instruction that has this slot as an output; -1 for feeds and constants.
int32_t Executor::ProducerOf(int32_t slot) const {
  for (size_t i = 0; i < plan_->instructions.size(); ++i) {
    const int32_t* outputs = plan_->indices.data() + plan_->instructions[i].outputs();
    const int32_t* end = outputs + plan_->instructions[i].num_outputs;
    if (std::find(outputs, end, slot) != end) return static_cast<int32_t>(i);
  }
  return -1;
}

absl::Status Executor::ArenaError(const Device& device, size_t bytes) const {
  const Plan::Placement* largest = nullptr;
  const auto size = [](const Plan::Placement& p) {
    return static_cast<size_t>(p.shape.num_elements()) * ElementSize(p.dtype);
  };
  for (const Plan::Placement& p : plan_->placements) {
    if (p.device == &device && (largest == nullptr || size(p) >= size(*largest))) largest = &p;
  }
  std::string what;
  if (const int32_t i = largest == nullptr ? -1 : ProducerOf(largest->slot); i >= 0) {
    what =
        absl::StrCat("; the largest is ", DataTypeName(largest->dtype), largest->shape.ToString(),
                     ", of node ", plan_->instructions[i].node->Label());
  }
  if (largest != nullptr) {
    const Allocator& allocator = largest->device->allocator();
    absl::StrAppend(&what, "; ", allocator.bytes_in_use(), " bytes are in use, ",
                    allocator.bytes_free(), " free by allocator ", allocator.name());
  }
  return absl::ResourceExhaustedError(absl::StrCat("OOM when allocating ", bytes, " bytes on ",
                                                   device.text(), " for the values of a step",
                                                   what));
}

absl::StatusOr<Executor::ExecutionState*> Executor::Acquire() {
  {
    const MutexLock lock(mutex_);
    WEIR_RETURN_IF_ERROR(cancelled_);
    if (!idle_.empty()) {
      ExecutionState* state = idle_.back();
      idle_.pop_back();
      return state;
    }
  }
  const ScopedUnlimitedHeap not_of_a_kernel;  // for a function that a kernel calls
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ExecutionState> state, NewState());
  const MutexLock lock(mutex_);
  WEIR_RETURN_IF_ERROR(cancelled_);
  states_.push_back(std::move(state));
  return states_.back().get();
}

void Executor::Cancel(const absl::Status& why) {
  const MutexLock lock(mutex_);
  cancelled_ = why;
  for (const auto& state : states_) {
    if (std::find(idle_.begin(), idle_.end(), state.get()) == idle_.end())
      state->cancellation->Cancel(why);
  }
}

absl::Status Executor::Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                           const RunOptions& options, int64_t step_id,
                           std::optional<Clock::time_point> deadline) {
  Reserve().Refill();
  const ThreadPool::Caller caller(pool_, /*schedules=*/plan_->tasks.size() > 1);
  WEIR_ASSIGN_OR_RETURN(ExecutionState* const state, Acquire());
  StepInfo& step = state->step;
  step.step_id = step_id;
  step.deadline = deadline;
  step.timeout = options.timeout;
  step.rendezvous = options.rendezvous;
  std::optional<StepTrace> trace;
  if (options.trace != nullptr) step.trace = &trace.emplace(options.trace);
  state->id.store(step_id, std::memory_order_release);
  absl::Status status;
  {
    const LinkedCancellation linked(options.cancellation, *state->cancellation);
    status = RunWithFeeds(state, feeds, fetches);
  }
  state->id.store(0, std::memory_order_relaxed);
  ReleaseState(state);
  if (status.ok()) return status;
  status.ErasePayload(kReportedInFunction);
  return status;
}

absl::Status Executor::Call(const StepInfo& step, const Node& caller, absl::Span<const Tensor> args,
                            Tensors* results) {
  const FunctionCall call{&caller, step.call, step.call == nullptr ? 1 : step.call->depth + 1};
  StepInfo within = step;
  within.call = &call;
  within.trace = nullptr;
  return RunWithin(within, args, results);
}

absl::Status Executor::RunWithin(const StepInfo& step, absl::Span<const Tensor> feeds,
                                 Tensors* fetches) {
  if (step.deadline && Clock::now() > *step.deadline)
    return absl::DeadlineExceededError(TimeoutMessage(step.timeout));
  WEIR_ASSIGN_OR_RETURN(ExecutionState* const state, Acquire());
  Cancellation* const own = state->step.cancellation;
  state->step = step;
  if (step.cancellation == nullptr) state->step.cancellation = own;
  absl::Status status = RunWithFeeds(state, feeds, fetches);
  ReleaseState(state);
  if (!status.ok()) status.SetPayload(kReportedInFunction, absl::Cord());
  return status;
}

absl::Status Executor::RunWithFeeds(ExecutionState* state, absl::Span<const Tensor> feeds,
                                    Tensors* fetches) {
  state->memory = MemoryQuota::Current();
  Tensor* const donated = DonatedFeeds::Of(feeds);
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (plan_->feed_slots[i] < 0) continue;
    Tensor& slot = state->slots[plan_->feed_slots[i]];
    if (donated != nullptr) {
      slot = std::move(donated[i]);
    } else {
      slot = feeds[i];
    }
  }
  for (size_t t = 0; t < plan_->tasks.size(); ++t)
    state->running[t].store(-1, std::memory_order_relaxed);
  absl::Status status = Execute(*state);
  if (status.ok()) status = TakeFetches(*state, fetches);
  const std::vector<int32_t>& empty = status.ok() ? plan_->reset_slots : plan_->dynamic_slots;
  for (const int32_t slot : empty) state->slots[slot] = Tensor();
  if (plan_->may_have_dead) std::fill(state->dead.begin(), state->dead.end(), 0);
  return status;
}

void Executor::ReleaseState(ExecutionState* state) {
  const MutexLock lock(mutex_);
  if (state->cancellation->cancelled()) state->cancellation = std::make_unique<Cancellation>();
  state->step.cancellation = state->cancellation.get();
  state->step.call = nullptr;
  state->step.trace = nullptr;
  state->step.draws = nullptr;
  state->step.rendezvous = nullptr;
  idle_.push_back(state);
}

absl::Status Executor::Execute(ExecutionState& state) {
  if (sequential_) {
    absl::Status status;
    const ScopedCancellation of_step(state.step.cancellation);
    const ScopedHeapCount heap_of_step;
    try {  // not in RunSequence: a try per instruction would take a tenth of a small one's time
      status = state.step.trace != nullptr ? RunSequence<true>(state) : RunSequence<false>(state);
    } catch (...) {
      status = ExceptionStatus(state, state.running[0].load(std::memory_order_relaxed));
    }
    // A kernel that stops because the step was cancelled only repeats the reason.
    if (!status.ok() && state.step.cancellation->cancelled())
      status = state.step.cancellation->status();
    return plan_->streams.empty() ? status : WaitForStreams(state, std::move(status));
  }
  return WaitForStreams(state, RunTasks(state));
}

absl::Status Executor::WaitForStreams(ExecutionState& state, absl::Status status) const {
  for (Device* device : plan_->streams) {
    const absl::Status late = device->Synchronize();
    if (status.ok() && !late.ok()) status = Annotate(late, device->text());
  }
  if (status.ok() && !plan_->streams.empty() && state.step.cancellation->cancelled())
    return state.step.cancellation->status();
  return status;
}

namespace {

// Counts what the strings of a kernel's outputs hold.
absl::Status ChargeStrings(const Instruction& instruction, const int32_t* outputs,
                           const std::vector<Tensor>& slots) {
  for (int k = 0; k < instruction.num_outputs; ++k) {
    if (BaseType(instruction.node->output_type(k)) == DT_STRING)
      WEIR_RETURN_IF_ERROR(MemoryQuota::ChargeStrings(slots[outputs[k]]));
  }
  CountHeapAnew();
  return absl::OkStatus();
}

}  // namespace

// Converts the exception that is being handled to a status. Kernels have no status for small
// allocations besides their results: these throw std::bad_alloc or std::length_error, from any
// thread of a loop. Any other exception is a fault of the kernel, but must not end the program.
absl::Status Executor::ExceptionStatus(const ExecutionState& state, int32_t instruction) const {
  const ScopedUnlimitedHeap for_the_message;
  absl::Status status =
      ExceptionToStatus("The kernel", /*before_message=*/[] { Reserve().Release(); });
  if (state.memory != nullptr && absl::IsResourceExhausted(status)) {
    status = Annotate(status, absl::StrCat(state.memory->bytes_in_use(), " bytes in use, ",
                                           state.memory->bytes_free(), " free by allocator ",
                                           state.memory->name()));
  }
  if (instruction < 0) return status;
  const Instruction& failed = plan_->instructions[instruction];
  return AtNode(*failed.reported_node, *failed.device, status, state.step.call);
}

bool Executor::IsPastDeadline(const ExecutionState& state) {
  return state.step.deadline && Clock::now() > *state.step.deadline;
}

namespace {

// True for what stands for no node of the graph.
bool IsLoopMark(const Instruction& instruction) {
  return instruction.mark == Instruction::Mark::kBegin ||
         instruction.mark == Instruction::Mark::kEnd;
}

}  // namespace

// Returns the error of a step that has exceeded its time limit. It names the node that was running:
// the one in `task`, or if `task` is -1 any, preferably one that waits; at the mark of a loop, the
// one before it.
absl::Status Executor::TimedOut(const ExecutionState& state, int32_t task) const {
  int32_t found = -1;
  for (size_t t = 0; t < plan_->tasks.size(); ++t) {
    int32_t instruction = state.running[t].load(std::memory_order_relaxed);
    if (instruction < 0 || (task >= 0 && static_cast<size_t>(task) != t)) continue;
    while (instruction > 0 && IsLoopMark(plan_->instructions[instruction])) --instruction;
    if (found < 0 || plan_->instructions[instruction].is_async) found = instruction;
  }
  std::string message = TimeoutMessage(state.step.timeout);
  if (found < 0) return absl::DeadlineExceededError(message);
  const Instruction& late = plan_->instructions[found];
  if (late.is_async) absl::StrAppend(&message, DescribeAwaitedResources(*late.reported_node));
  return AtNode(*late.reported_node, *late.device, absl::DeadlineExceededError(message),
                state.step.call);
}

absl::Status Executor::TimedOut(int64_t step_id) {
  const MutexLock lock(mutex_);
  for (const auto& state : states_) {
    if (state->id.load(std::memory_order_acquire) == step_id) return TimedOut(*state, -1);
  }
  return absl::DeadlineExceededError("The step took longer than its time limit");
}

template <bool kTrace>
absl::Status Executor::RunSequence(ExecutionState& state) {
  const int32_t count = static_cast<int32_t>(plan_->instructions.size());
  const Cancellation& cancellation = *state.step.cancellation;
  std::atomic<int32_t>& running = state.running[0];
  for (int32_t i = 0; i < count;) {
    if (cancellation.cancelled()) return cancellation.status();
    if (IsPastDeadline(state)) return TimedOut(state, 0);
    running.store(i, std::memory_order_relaxed);
    if (plan_->instructions[i].mark != Instruction::Mark::kNone) {
      WEIR_ASSIGN_OR_RETURN(i, RunMarker(state, i));
      continue;
    }
    if constexpr (kTrace) {
      std::optional<NodeTrace> record = BeginTrace(state, i);
      if (absl::Status s = RunInstruction(state, i); !s.ok()) return s;
      EndTrace(state, i, std::move(record));
    } else {
      if (absl::Status s = RunInstruction(state, i); !s.ok()) return s;
    }
    ++i;
  }
  // The last kernel may have failed by cancelling (KernelContext::SetOutput has no status).
  if (cancellation.cancelled()) return cancellation.status();
  return IsPastDeadline(state) ? TimedOut(state, 0) : absl::OkStatus();
}

// Runs a synchronous instruction.
inline absl::Status Executor::RunInstruction(ExecutionState& state, int32_t i) {
  const Instruction& instruction = plan_->instructions[i];
  if (instruction.num_releases_before > 0)
    ReleaseSlots(state, instruction.releases, instruction.num_releases_before);
  if (instruction.dead_slot < 0 || !SkipDead(state, instruction)) {
    absl::Status s = instruction.run(state.contexts[i]);
    if (instruction.is_custom_kernel && s.ok()) [[unlikely]]
      s = CheckOutputs(state, instruction);
    if (state.memory != nullptr && s.ok()) [[unlikely]]
      s = ChargeStrings(instruction, plan_->indices.data() + instruction.outputs(), state.slots);
    if (!s.ok()) return AtNode(*instruction.reported_node, *instruction.device, s, state.step.call);
    RecordDeadness(state, instruction);
  }
  if (instruction.num_releases_after > 0) {
    ReleaseSlots(state, instruction.releases + instruction.num_releases_before,
                 instruction.num_releases_after);
  }
  return absl::OkStatus();
}

// INTERNAL unless a custom kernel has set all outputs, to tensors of their types.
absl::Status Executor::CheckOutputs(const ExecutionState& state,
                                    const Instruction& instruction) const {
  for (int k = 0; k < instruction.num_outputs; ++k) {
    const int32_t slot = plan_->indices[instruction.outputs() + k];
    if (!state.dead.empty() && state.dead[slot] != 0) continue;
    const Tensor& value = state.slots[slot];
    if (!value.initialized())
      return absl::InternalError(
          absl::StrCat("Missing ", k, "-th output: the kernel has set none"));
    const DataType type = BaseType(instruction.node->output_type(k));
    if (value.dtype() != type && !IsRef(instruction.node->output_type(k))) {
      return absl::InternalError(absl::StrCat("Output ", k, " of the kernel is ",
                                              value.Description(), ", but must be of type ",
                                              DataTypeName(type)));
    }
  }
  return absl::OkStatus();
}

// Returns the instruction to continue with.
absl::StatusOr<int32_t> Executor::RunMarker(ExecutionState& state, int32_t i) const {
  const Instruction& instruction = plan_->instructions[i];
  const Loop& loop = plan_->loops[instruction.loop];
  if (instruction.mark == Instruction::Mark::kTest) {
    const Tensor& condition = state.slots[plan_->indices[instruction.inputs]];
    if (condition.rank() != 0) {
      const absl::Status error = InvalidArgument("The input must be a scalar, but it has shape ",
                                                 condition.shape().ToString());
      return AtNode(*instruction.reported_node, *instruction.device, error, state.step.call);
    }
    const bool is_done = !*condition.data<bool>();
    if (instruction.num_releases_after > 0)
      ReleaseSlots(state, instruction.releases, instruction.num_releases_after);
    if (!is_done) return i + 1;
    const Instruction& end = plan_->instructions[loop.end];
    ReleaseSlots(state, end.releases, end.num_releases_after);
    return loop.end + 1;
  }
  if (instruction.mark == Instruction::Mark::kEnd) return EndIteration(state, i);
  state.frames[instruction.loop + 1] = state.frames[loop.parent + 1].Inner(loop.name_hash);
  for (const Loop::Carry& c : loop.carries) state.dead[c.to] = 1;
  for (const int32_t slot : loop.entered_alive) state.dead[slot] = 0;
  return i + 1;
}

absl::StatusOr<int32_t> Executor::EndIteration(ExecutionState& state, int32_t i) const {
  const Instruction& instruction = plan_->instructions[i];
  const Loop& loop = plan_->loops[instruction.loop];
  std::vector<uint8_t>& dead = state.dead;
  if (loop.is_structured) {
    MoveVariables(state, loop);
    if (loop.slots.first < loop.slots.second) ClearDeadFlags(state, loop);
    return loop.begin;
  }
  const bool over = std::all_of(loop.carries.begin(), loop.carries.end(),
                                [&](const Loop::Carry& c) { return dead[c.from] != 0; });
  if (over) {
    ReleaseSlots(state, instruction.releases, instruction.num_releases_after);
    return i + 1;
  }
  for (const Loop::Carry& c : loop.carries) {
    dead[c.to] = dead[c.from];
    if (dead[c.from] != 0) continue;
    if (c.instruction < 0) {  // a constant
      state.slots[c.to] = state.slots[c.from];
    } else if (c.copied) {
      WEIR_ASSIGN_OR_RETURN(state.slots[c.to],
                            state.contexts[c.instruction].Own(state.slots[c.from]));
    } else {
      state.slots[c.to] = std::move(state.slots[c.from]);
    }
  }
  ++state.frames[instruction.loop + 1].iteration;
  ClearDeadFlags(state, loop);
  for (const int32_t slot : loop.entered) dead[slot] = 1;
  return loop.begin;
}

void Executor::ClearDeadFlags(ExecutionState& state, const Loop& loop) {
  const auto forget = [&](const std::pair<int32_t, int32_t>& range) {
    std::fill(state.dead.begin() + range.first, state.dead.begin() + range.second, 0);
  };
  forget(loop.slots);
  forget(loop.dead_slots);
}

void Executor::MoveVariables(ExecutionState& state, const Loop& loop) {
  absl::InlinedVector<Tensor, 4> shared;
  for (const Loop::Move& m : loop.shared) shared.push_back(state.slots[m.from]);
  for (const Loop::Move& m : loop.moved) state.slots[m.to] = std::move(state.slots[m.from]);
  for (const Loop::Move& m : loop.swapped) {
    Tensor &from = state.slots[m.from], &to = state.slots[m.to];
    if (from.dtype() == to.dtype() && from.shape() == to.shape()) {
      from.SwapElements(to);
    } else {
      std::swap(from, to);
    }
    state.planned[m.from].SwapElements(state.planned[m.to]);
  }
  for (size_t k = 0; k < shared.size(); ++k) state.slots[loop.shared[k].to] = std::move(shared[k]);
}

bool Executor::SkipDead(ExecutionState& state, const Instruction& instruction) const {
  const int32_t* indices = plan_->indices.data();
  bool dead = false;
  if (!instruction.accepts_dead) {
    for (int k = 0; k < instruction.num_inputs; ++k)
      dead = dead || state.dead[indices[instruction.inputs + k]] != 0;
  }
  for (int k = 0; !instruction.accepts_dead && k < instruction.num_dead_controls; ++k)
    dead = dead || state.dead[indices[instruction.dead_controls() + k]] != 0;
  state.dead[instruction.dead_slot] = dead ? 1 : 0;
  if (dead) {
    for (int k = 0; k < instruction.num_outputs; ++k)
      state.dead[indices[instruction.outputs() + k]] = 1;
  }
  return dead;
}

// A Merge without a live input is dead, as its output is.
inline void Executor::RecordDeadness(ExecutionState& state, const Instruction& instruction) const {
  if (instruction.accepts_dead && instruction.dead_slot >= 0 && instruction.num_outputs > 0)
    state.dead[instruction.dead_slot] = state.dead[plan_->indices[instruction.outputs()]];
}

void Executor::ReleaseSlots(ExecutionState& state, int32_t offset, int count) const {
  for (int k = 0; k < count; ++k) state.slots[plan_->indices[offset + k]] = Tensor();
}

namespace {

// Returns "caller/callee/". The middle of a long path is left out.
std::string CallPath(const FunctionCall* call) {
  constexpr int kShown = 3;  // at either end
  std::string path;
  const int depth = call == nullptr ? 0 : call->depth;
  for (; call != nullptr; call = call->outer) {
    if (call->depth <= kShown || call->depth > depth - kShown) {
      path = absl::StrCat(call->node->name(), "/", path);
    } else if (call->depth == kShown + 1) {
      path = absl::StrCat(".../", path);
    }
  }
  return path;
}

}  // namespace

absl::Status AtNode(const Node& node, const Device& device, const absl::Status& status,
                    const FunctionCall* call) {
  if (status.GetPayload(kReportedInFunction)) return status;
  std::string where = absl::StrCat(node.op_name(), " (node ", CallPath(call), node.name());
  if (!device.is_host()) absl::StrAppend(&where, ", ", device.text());
  absl::Status out = Annotate(status, absl::StrCat(where, ")"));
  while (call != nullptr && call->outer != nullptr) call = call->outer;
  out.SetPayload(kFailedNode, absl::Cord(call != nullptr ? call->node->name() : node.name()));
  return out;
}

std::string FailedNode(const absl::Status& error) {
  const auto name = error.GetPayload(kFailedNode);
  return name ? std::string(*name) : "";
}

namespace {

int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::vector<NodeTrace::Value> Describe(absl::Span<const int32_t> slots, const Tensors& values) {
  std::vector<NodeTrace::Value> out;
  for (const int32_t slot : slots) {
    out.push_back({values[slot].dtype(), values[slot].shape(), values[slot].raw()});
  }
  return out;
}

}  // namespace

std::optional<NodeTrace> Executor::BeginTrace(const ExecutionState& state, int32_t i) const {
  const Instruction& instruction = plan_->instructions[i];
  if (state.step.trace == nullptr || instruction.has_subplan) return std::nullopt;
  const absl::Span<const int32_t> inputs(&plan_->indices[instruction.inputs],
                                         instruction.num_inputs);
  NodeTrace record{.node = instruction.node->name(),
                   .op = instruction.node->op_name(),
                   .device = instruction.device->text(),
                   .inputs = Describe(inputs, state.slots)};
  record.fused_ops = instruction.node->attr_or("fused_ops", record.fused_ops);
  record.traits = &instruction.node->op().traits();
  record.start_ns = NowNs();
  return record;
}

void Executor::EndTrace(ExecutionState& state, int32_t i, std::optional<NodeTrace> record) const {
  if (!record) return;
  record->end_ns = NowNs();
  const Instruction& instruction = plan_->instructions[i];
  record->outputs = Describe(
      {&plan_->indices[instruction.outputs()], static_cast<size_t>(instruction.num_outputs)},
      state.slots);
  record->thread =
      static_cast<int>(std::hash<std::thread::id>()(std::this_thread::get_id()) % 10007);
  state.step.trace->Add(*std::move(record));
}

// ---- several tasks

absl::Status Executor::RunTasks(ExecutionState& state) {
  {
    const MutexLock lock(state.mutex);
    state.tasks_left = static_cast<int32_t>(plan_->tasks.size());
  }
  state.failed.store(false, std::memory_order_relaxed);
  state.float_mode = FloatMode::Current();
  for (size_t t = 0; t < plan_->tasks.size(); ++t) {
    state.num_pending[t].store(plan_->tasks[t].num_predecessors, std::memory_order_relaxed);
  }
  RunTask(state, 0, plan_->tasks[0].begin);
  std::optional<Clock::time_point> deadline =
      state.step.deadline;  // reset once it has been reported
  for (;;) {
    {
      const MutexLock lock(state.mutex);
      if (state.tasks_left == 0) break;
    }
    const bool ran = RunPosted(state);
    const auto news = [&state] {
      const MutexLock l(state.mutex);
      return state.tasks_left == 0 || !state.posted.empty();
    };
    if (!ran && !pool_.HelpUntil(news, deadline)) {
      deadline.reset();
      Fail(state, TimedOut(state, -1));
    }
  }
  const MutexLock lock(state.mutex);
  if (state.step.cancellation->cancelled() && state.status.ok())
    state.status = state.step.cancellation->status();
  return std::exchange(state.status, absl::OkStatus());
}

bool Executor::RunPosted(ExecutionState& state) {
  std::pair<int32_t, int32_t> work;
  {
    const MutexLock lock(state.mutex);
    if (state.posted.empty()) return false;
    work = state.posted.front();
    state.posted.pop_front();
  }
  RunTask(state, work.first, work.second);
  return true;
}

void Executor::Post(ExecutionState& state, int32_t task, int32_t instruction) {
  const bool helped = pool_.num_threads() > 1 && pool_.HasRoom();
  // Incremented before another thread can take the work, finish the step and let the session end.
  if (helped) jobs_.fetch_add(1, std::memory_order_relaxed);
  {
    const MutexLock lock(state.mutex);
    state.posted.emplace_back(task, instruction);
    if (!helped) return pool_.Wake();
  }
  // If the pool has no room by then because of other callers, this step's own caller does the work.
  pool_.Schedule([this, &state] {
    if (pool_.HasRoom()) RunPosted(state);
    jobs_.fetch_sub(1, std::memory_order_release);
  });
}

void Executor::RunTask(ExecutionState& state, int32_t t, int32_t first) {
  const ScopedFloatMode as_the_step(state.float_mode);
  const ScopedCancellation of_step(state.step.cancellation);
  const ScopedMemoryQuota of_caller(state.memory);
  const ScopedHeapCount heap_of_step;
  const Task& task = plan_->tasks[t];
  for (int32_t i = first; i < task.end;) {
    if (state.failed.load(std::memory_order_acquire)) break;
    if (state.step.cancellation->cancelled()) {
      Fail(state, state.step.cancellation->status());
      break;
    }
    if (IsPastDeadline(state)) break;
    state.running[t].store(i, std::memory_order_relaxed);
    if (plan_->instructions[i].mark != Instruction::Mark::kNone) {
      const absl::StatusOr<int32_t> next = RunMarker(state, i);
      if (!next.ok()) {
        Fail(state, next.status());
        break;
      }
      if (*next < task.begin)
        return StartIteration(state, plan_->loops[plan_->instructions[i].loop]);
      i = *next;
      continue;
    }
    if (plan_->instructions[i].is_async) {
      if (!StartAsync(state, t, i)) return;
      ++i;
      continue;
    }
    std::optional<NodeTrace> record = BeginTrace(state, i);
    try {
      if (absl::Status s = RunInstruction(state, i); !s.ok()) Fail(state, s);
    } catch (...) {
      Fail(state, ExceptionStatus(state, i));
    }
    EndTrace(state, i, std::move(record));
    ++i;
  }
  if (!state.failed.load(std::memory_order_acquire) && IsPastDeadline(state))
    Fail(state, TimedOut(state, t));
  FinishTask(state, t);
}

// Starts an asynchronous instruction. Returns true if it has already finished and the task may
// continue; otherwise `done` posts the rest of the task. The second of the two events, the return
// of the kernel and the call of `done`, continues the task: the exchange decides which is second. A
// kernel that has thrown an exception is finished, whatever it calls later.
bool Executor::StartAsync(ExecutionState& state, int32_t t, int32_t i) {
  const Instruction& instruction = plan_->instructions[i];
  if (instruction.num_releases_before > 0)
    ReleaseSlots(state, instruction.releases, instruction.num_releases_before);
  std::shared_ptr<const NodeTrace> record;
  if (std::optional<NodeTrace> begun = BeginTrace(state, i))
    record = std::make_shared<const NodeTrace>(*std::move(begun));
  const auto release = [this, &state, i, record](const Instruction& finished) {
    RecordDeadness(state, finished);
    if (record) EndTrace(state, i, *record);
    ReleaseSlots(state, finished.releases + finished.num_releases_before,
                 finished.num_releases_after);
  };
  if (instruction.dead_slot >= 0 && SkipDead(state, instruction)) {
    release(instruction);
    return true;
  }
  enum class Arrival { kNone, kFirst, kException };
  const auto arrived = std::make_shared<std::atomic<Arrival>>(Arrival::kNone);
  const auto done = [this, &state, t, i, arrived, release](absl::Status s) {
    const ScopedUnlimitedHeap for_another_step;  // the thread may run one of its kernels
    if (arrived->load(std::memory_order_acquire) == Arrival::kException) return;
    const Instruction& done_instruction = plan_->instructions[i];
    if (done_instruction.is_custom_kernel && s.ok()) s = CheckOutputs(state, done_instruction);
    if (state.memory != nullptr && s.ok()) {
      s = ChargeStrings(done_instruction, plan_->indices.data() + done_instruction.outputs(),
                        state.slots);
    }
    if (!s.ok()) {
      Fail(state,
           AtNode(*done_instruction.reported_node, *done_instruction.device, s, state.step.call));
    } else {
      release(done_instruction);
    }
    if (arrived->exchange(Arrival::kFirst, std::memory_order_acq_rel) == Arrival::kFirst)
      Post(state, t, i + 1);
  };
  try {
    plan_->run_async[instruction.run_async](state.contexts[i], done);
  } catch (...) {
    arrived->store(Arrival::kException, std::memory_order_release);
    Fail(state, ExceptionStatus(state, i));
    return true;
  }
  return arrived->exchange(Arrival::kFirst, std::memory_order_acq_rel) == Arrival::kFirst;
}

// Starts the tasks of a loop once more. All of them have finished but the last, which calls this.
void Executor::StartIteration(ExecutionState& state, const Loop& loop) {
  for (int32_t t = loop.first_task + 1; t <= loop.last_task; ++t)
    state.num_pending[t].store(plan_->tasks[t].num_predecessors, std::memory_order_relaxed);
  state.running[loop.last_task].store(-1, std::memory_order_relaxed);
  {
    const MutexLock lock(state.mutex);
    state.tasks_left += loop.last_task - loop.first_task;
  }
  Post(state, loop.first_task, loop.begin);
}

void Executor::FinishTask(ExecutionState& state, int32_t t) {
  state.running[t].store(-1, std::memory_order_relaxed);
  for (const int32_t s : plan_->tasks[t].successors) {
    if (state.num_pending[s].fetch_sub(1, std::memory_order_acq_rel) == 1)
      Post(state, s, plan_->tasks[s].begin);
  }
  const MutexLock lock(state.mutex);
  if (--state.tasks_left == 0) pool_.Wake();
}

// The first reason counts: a kernel that stops because the step was cancelled only repeats it.
void Executor::Fail(ExecutionState& state, const absl::Status& status) {
  state.step.cancellation->Cancel(status);
  const MutexLock lock(state.mutex);
  if (state.status.ok()) state.status = state.step.cancellation->status();
  state.failed.store(true, std::memory_order_release);
}

// Returns the value in memory that outlives the step.
absl::Status Executor::TakeFetch(ExecutionState& state, size_t i, Tensor* fetch) const {
  const int32_t slot = plan_->fetch_slots[i];
  Tensor& value = state.slots[slot];
  const int32_t maker = value.buffer() && value.buffer()->transient() ? ProducerOf(slot) : -1;
  if (maker >= 0) {
    absl::StatusOr<Tensor> copy = state.contexts[maker].Own(value);
    if (!copy.ok()) {
      return AtNode(*plan_->instructions[maker].reported_node, *plan_->instructions[maker].device,
                    copy.status(), state.step.call);
    }
    *fetch = *std::move(copy);
    if (plan_->moved_fetches[i] != 0) value = Tensor();
  } else if (plan_->moved_fetches[i] != 0) {
    *fetch = std::move(value);
  } else {
    *fetch = value;
  }
  return absl::OkStatus();
}

absl::Status Executor::TakeFetches(ExecutionState& state, Tensors* fetches) const {
  const size_t count = plan_->fetch_slots.size();
  if (fetches == nullptr) {
    for (size_t i = 0; i < count; ++i) {
      if (plan_->moved_fetches[i] != 0) state.slots[plan_->fetch_slots[i]] = Tensor();
    }
    return absl::OkStatus();
  }
  fetches->resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (state.dead[plan_->fetch_slots[i]] != 0) {
      return InvalidArgument(
          "Retval[", i,
          "] does not have value: the fetched tensor is in a branch that was not taken");
    }
    WEIR_RETURN_IF_ERROR(TakeFetch(state, i, &(*fetches)[i]));
  }
  return absl::OkStatus();
}

}  // namespace weir
