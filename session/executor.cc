#include "weir/session/executor.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "weir/core/exception.h"
#include "weir/core/float_mode.h"

// How a step runs. Everything was decided by the plan: the items of a task are called one after
// another, and all that is left to do between two of them is to look at a status and a flag or two.
// A step reads no protobuf, hashes nothing, and takes no lock that another step wants.
//
// A plan of a single task runs on the calling thread (its big kernels split their loops over the
// pool). With several tasks, each has a counter of those it waits for; the task that brings a
// counter to zero posts its successor to the frame's queue, where the caller and helpers from the
// pool pick work up. A caller that finds none helps with the loops of kernels that run. An
// asynchronous item leaves its task standing: whoever calls `done` posts the rest of the task, so
// waiting holds no thread.
//
// Branches. Switch marks the outputs of the branch not taken dead; an item with a dead input (or
// dead control input) is skipped and its outputs are dead; Merge takes the one that is alive. The
// static order needs no more: by the time Merge runs, both branches have been decided.
//
// Loops. The items of a loop stand between two marks. At the second one, what live NextIterations
// have is handed over to the next iteration, the marks of death of this one are wiped away, and the
// step goes back to the first item of the loop; if none is alive, the loop is over. Iterations run
// one after another: what an iteration does depends on nothing but the ones before it, so no order
// of TensorFlow's, which may overlap them, gives other values. A raised loop has a mark in the
// place of its LoopCond, which ends it; its variables move to the next iteration all at once, small
// ones by changing places in the arena with what was made for them.
//
// Errors. The first one is kept, with the node's name, op and device. In a sequence the step ends
// at once; with tasks the remaining items are skipped, waiters are told through the Cancellation,
// and the step ends when every task has been counted off. Then all values the frame holds are
// dropped, so that the next step starts clean. A kernel that runs when its step is cancelled leaves
// its loops by an exception (core/cancellation.h), unless it writes to a variable.
//
// Accelerators. To run an item of a device with a stream is to enqueue it. What comes after it in
// the stream needs no waiting, memory included; only a copy to the host, an asynchronous item,
// waits. A step ends when the streams it used have run what it enqueued, so that it can tell
// whether all went well: an error that a kernel finds after it has returned comes as the reason of
// the step's Cancellation, or from Synchronize if the device cannot tell whose it is.
namespace weir {

namespace {

// Memory that nobody touches, for the end of a step that had no other: where small things have
// taken all there was, not even the message of an error could be made. One for the process.
class MemoryReserve {
 public:
  void Have() {
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

// A payload of errors that say already which node of which function they come from.
constexpr char kInFunction[] = "weir/in_function";
// A payload that names the node of the step's graph.
constexpr char kFailedNode[] = "weir/node";

std::string TookTooLong(std::chrono::milliseconds limit) {
  return absl::StrCat("The step took longer than its time limit of ", limit.count(), " ms");
}

// The resources that a waiting node works on, as the graph names them: "files (FIFOQueueV2)".
std::string WaitsFor(const Node& node) {
  std::string resources;
  for (const Output& in : node.inputs()) {
    if (!in.is_ref() && in.dtype() != DT_RESOURCE) continue;
    absl::StrAppend(&resources, resources.empty() ? " while it waited for " : ", ",
                    in.node->Label());
  }
  return resources;
}

}  // namespace

struct Executor::Frame {
  std::vector<Tensor> slots, planned;
  std::vector<uint8_t> dead;
  std::vector<KernelContext> contexts;
  TracedStep step;
  std::atomic<int64_t> id{0};  // of the step in flight, for who asks for it; 0: none
  std::unique_ptr<Cancellation> cancellation = std::make_unique<Cancellation>();

  std::unique_ptr<std::atomic<int32_t>[]> waits_for;  // by task
  std::unique_ptr<std::atomic<int32_t>[]> running;    // by task: the item, -1 if there is none
  std::mutex mutex;
  std::deque<std::pair<int32_t, int32_t>> posted;  // task, item to go on with
  int32_t tasks_left = 0;
  std::atomic<bool> failed{false};
  FloatMode float_mode;  // of all tasks
  absl::Status status;
};

Executor::Executor(std::unique_ptr<const Plan> plan, ThreadPool& pool, ResourceMap& resources)
    : plan_(std::move(plan)), pool_(pool), resources_(resources) {
  sequential_ = plan_->tasks.size() == 1 && std::none_of(plan_->items.begin(), plan_->items.end(),
                                                         [](const Instruction& i) { return i.is_async; });
}

Executor::~Executor() {
  while (jobs_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

absl::StatusOr<std::unique_ptr<Executor::Frame>> Executor::NewFrame() {
  auto frame = std::make_unique<Frame>();
  frame->slots.resize(plan_->num_slots);
  frame->planned.resize(plan_->num_slots);
  frame->dead.assign(plan_->num_dead_slots, 0);
  frame->step.pool = &pool_;
  frame->step.resources = &resources_;
  frame->step.cancellation = frame->cancellation.get();
  for (const auto& [device, bytes] : plan_->arenas) {
    void* memory = device->allocator().Allocate(bytes);
    if (memory == nullptr) return NoArena(*device, bytes);
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
        frame->planned[p.slot] =
            Tensor(p.dtype, p.shape, arena, static_cast<char*>(memory) + p.offset);
      }
    }
  }
  for (const auto& [slot, value] : plan_->constants) frame->slots[slot] = value;
  frame->contexts.reserve(plan_->items.size());
  for (const Instruction& item : plan_->items) {
    frame->contexts.emplace_back(
        *item.node, *item.device, frame->step,
        KernelContext::Binding{.slots = frame->slots.data(),
                               .planned = frame->planned.data(),
                               .dead = frame->dead.data(),
                               .inputs = plan_->indices.data() + item.inputs,
                               .outputs = plan_->indices.data() + item.outputs(),
                               .num_inputs = item.num_inputs,
                               .num_outputs = item.num_outputs,
                               .host_outputs = item.host_outputs,
                               .aliases = item.aliases,
                               .last_uses = plan_->indices.data() + item.last_uses,
                               .num_last_uses = item.num_last_uses});
  }
  frame->waits_for = std::make_unique<std::atomic<int32_t>[]>(plan_->tasks.size());
  frame->running = std::make_unique<std::atomic<int32_t>[]>(plan_->tasks.size());
  return frame;
}

// The item that has this slot as an output; -1 for feeds and constants.
int32_t Executor::MakerOf(int32_t slot) const {
  for (size_t i = 0; i < plan_->items.size(); ++i) {
    const int32_t* outputs = plan_->indices.data() + plan_->items[i].outputs();
    const int32_t* end = outputs + plan_->items[i].num_outputs;
    if (std::find(outputs, end, slot) != end) return static_cast<int32_t>(i);
  }
  return -1;
}

absl::Status Executor::NoArena(const Device& device, size_t bytes) const {
  const Plan::Placement* largest = nullptr;
  const auto size = [](const Plan::Placement& p) {
    return static_cast<size_t>(p.shape.num_elements()) * ElementSize(p.dtype);
  };
  for (const Plan::Placement& p : plan_->placements) {
    if (p.device == &device && (largest == nullptr || size(p) >= size(*largest))) largest = &p;
  }
  std::string what;
  if (const int32_t i = largest == nullptr ? -1 : MakerOf(largest->slot); i >= 0) {
    what = absl::StrCat("; the largest is ", DataTypeName(largest->dtype),
                        largest->shape.ToString(), ", of node ", plan_->items[i].node->Label());
  }
  if (largest != nullptr) {
    const Allocator& allocator = largest->device->allocator();
    absl::StrAppend(&what, "; ", allocator.bytes_in_use(), " bytes are in use, ",
                    allocator.bytes_free(), " free");
  }
  return absl::ResourceExhaustedError(absl::StrCat("OOM when allocating ", bytes, " bytes on ",
                                                   device.text(), " for the values of a step",
                                                   what));
}

absl::StatusOr<Executor::Frame*> Executor::Acquire() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_RETURN_IF_ERROR(cancelled_);
    if (!idle_.empty()) {
      Frame* frame = idle_.back();
      idle_.pop_back();
      return frame;
    }
  }
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<Frame> frame, NewFrame());
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_RETURN_IF_ERROR(cancelled_);
  frames_.push_back(std::move(frame));
  return frames_.back().get();
}

void Executor::Cancel(const absl::Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cancelled_ = why;
  for (const auto& frame : frames_) {
    if (std::find(idle_.begin(), idle_.end(), frame.get()) == idle_.end())
      frame->cancellation->Cancel(why);
  }
}

absl::Status Executor::Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                           const RunOptions& options, int64_t step_id) {
  Reserve().Have();
  const ThreadPool::Caller caller(pool_, /*schedules=*/plan_->tasks.size() > 1);
  WEIR_ASSIGN_OR_RETURN(Frame* const frame, Acquire());
  TracedStep& step = frame->step;
  step.step_id = step_id;
  step.deadline.reset();
  step.timeout = options.timeout;
  if (options.timeout.count() > 0) step.deadline = Clock::now() + options.timeout;
  std::optional<StepTrace> trace;
  if (options.trace != nullptr) step.trace = &trace.emplace(options.trace);
  frame->id.store(step_id, std::memory_order_release);
  absl::Status status;
  {
    const LinkedCancellation linked(options.cancellation, *frame->cancellation);
    status = RunFilled(frame, feeds, fetches);
  }
  frame->id.store(0, std::memory_order_relaxed);
  ReleaseFrame(frame);
  if (status.ok()) return status;
  status.ErasePayload(kInFunction);
  return status;
}

absl::Status Executor::Call(const StepInfo& step, const Node& caller, absl::Span<const Tensor> args,
                            Tensors* results) {
  const FunctionCall call{&caller, step.call, step.call == nullptr ? 1 : step.call->depth + 1};
  TracedStep within{step};
  within.call = &call;
  return RunWithin(within, args, results);
}

absl::Status Executor::RunWithin(const TracedStep& step, absl::Span<const Tensor> feeds,
                                 Tensors* fetches) {
  if (step.deadline && Clock::now() > *step.deadline)
    return absl::DeadlineExceededError(TookTooLong(step.timeout));
  WEIR_ASSIGN_OR_RETURN(Frame* const frame, Acquire());
  Cancellation* const own = frame->step.cancellation;
  frame->step = step;
  if (step.cancellation == nullptr) frame->step.cancellation = own;
  absl::Status status = RunFilled(frame, feeds, fetches);
  ReleaseFrame(frame);
  if (!status.ok()) status.SetPayload(kInFunction, absl::Cord());
  return status;
}

absl::Status Executor::RunFilled(Frame* frame, absl::Span<const Tensor> feeds, Tensors* fetches) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (plan_->feed_slots[i] >= 0) frame->slots[plan_->feed_slots[i]] = feeds[i];
  }
  for (size_t t = 0; t < plan_->tasks.size(); ++t)
    frame->running[t].store(-1, std::memory_order_relaxed);
  absl::Status status = RunFrame(*frame);
  if (status.ok()) status = TakeFetches(*frame, fetches);
  const std::vector<int32_t>& empty = status.ok() ? plan_->reset_slots : plan_->dynamic_slots;
  for (const int32_t slot : empty) frame->slots[slot] = Tensor();
  if (plan_->may_have_dead) std::fill(frame->dead.begin(), frame->dead.end(), 0);
  return status;
}

void Executor::ReleaseFrame(Frame* frame) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (frame->cancellation->cancelled()) frame->cancellation = std::make_unique<Cancellation>();
  frame->step.cancellation = frame->cancellation.get();
  frame->step.call = nullptr;
  frame->step.trace = nullptr;
  idle_.push_back(frame);
}

absl::Status Executor::RunFrame(Frame& frame) {
  if (sequential_) {
    absl::Status status;
    const ScopedCancellation of_step(frame.step.cancellation);
    try {  // out here: around each item it would take a tenth of a small one's time
      status = frame.step.trace != nullptr ? RunSequence<true>(frame) : RunSequence<false>(frame);
    } catch (...) {
      status = Thrown(frame, frame.running[0].load(std::memory_order_relaxed));
    }
    // A kernel that gives up because the step is over only repeats why.
    if (!status.ok() && frame.step.cancellation->cancelled())
      status = frame.step.cancellation->status();
    return plan_->streams.empty() ? status : WaitForStreams(frame, std::move(status));
  }
  RunTasks(frame);
  return WaitForStreams(frame, std::exchange(frame.status, absl::OkStatus()));
}

absl::Status Executor::WaitForStreams(Frame& frame, absl::Status status) const {
  for (Device* device : plan_->streams) {
    const absl::Status late = device->Synchronize();
    if (status.ok() && !late.ok()) status = Annotate(late, device->text());
  }
  if (status.ok() && !plan_->streams.empty() && frame.step.cancellation->cancelled())
    return frame.step.cancellation->status();
  return status;
}

// Called where an exception was caught. Kernels have no status for small memory that they need
// besides their results: std::bad_alloc comes out of them, or std::length_error, from whatever
// thread of a loop it was. Any other exception is a fault of the kernel, but no reason for a
// program to end.
absl::Status Executor::Thrown(const Frame& frame, int32_t item) const {
  const absl::Status status =
      StatusOfException("The kernel", /*before_message=*/[] { Reserve().Release(); });
  if (item < 0) return status;
  const Instruction& failed = plan_->items[item];
  return AtNode(*failed.named, *failed.device, status, frame.step.call);
}

bool Executor::IsLate(const Frame& frame) {
  return frame.step.deadline && Clock::now() > *frame.step.deadline;
}

// The error of a step whose time is up, of the node that was running by then: of the one in
// `task`, or of any, and rather of one that waits.
absl::Status Executor::TimedOut(const Frame& frame, int32_t task) const {
  int32_t found = -1;
  for (size_t t = 0; t < plan_->tasks.size(); ++t) {
    const int32_t item = frame.running[t].load(std::memory_order_relaxed);
    if (item < 0 || (task >= 0 && static_cast<size_t>(task) != t)) continue;
    if (found < 0 || plan_->items[item].is_async) found = item;
  }
  std::string message = TookTooLong(frame.step.timeout);
  if (found < 0) return absl::DeadlineExceededError(message);
  const Instruction& late = plan_->items[found];
  if (late.is_async) absl::StrAppend(&message, WaitsFor(*late.named));
  return AtNode(*late.named, *late.device, absl::DeadlineExceededError(message), frame.step.call);
}

absl::Status Executor::TimedOut(int64_t step_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& frame : frames_) {
    if (frame->id.load(std::memory_order_acquire) == step_id) return TimedOut(*frame, -1);
  }
  return absl::DeadlineExceededError("The step took longer than its time limit");
}

template <bool kTrace>
absl::Status Executor::RunSequence(Frame& frame) {
  const int32_t count = static_cast<int32_t>(plan_->items.size());
  const Cancellation& cancellation = *frame.step.cancellation;
  std::atomic<int32_t>& running = frame.running[0];
  for (int32_t i = 0; i < count;) {
    if (cancellation.cancelled()) return cancellation.status();
    if (IsLate(frame)) return TimedOut(frame, 0);
    running.store(i, std::memory_order_relaxed);
    if (plan_->items[i].mark != Instruction::Mark::kNone) {
      WEIR_ASSIGN_OR_RETURN(i, RunMarker(frame, i));
      continue;
    }
    if constexpr (kTrace) {
      std::optional<NodeTrace> record = BeginTrace(frame, i);
      if (absl::Status s = RunInstruction(frame, i); !s.ok()) return s;
      EndTrace(frame, i, std::move(record));
    } else {
      if (absl::Status s = RunInstruction(frame, i); !s.ok()) return s;
    }
    ++i;
  }
  // The last kernel may have failed by cancelling (KernelContext::SetOutput has no status).
  if (cancellation.cancelled()) return cancellation.status();
  return IsLate(frame) ? TimedOut(frame, 0) : absl::OkStatus();
}

// A synchronous item, start to end.
inline absl::Status Executor::RunInstruction(Frame& frame, int32_t i) {
  const Instruction& item = plan_->items[i];
  if (item.num_releases_before > 0) ReleaseSlots(frame, item.releases, item.num_releases_before);
  if (item.dead_slot < 0 || !SkipDead(frame, item)) {
    absl::Status s = item.run(frame.contexts[i]);
    if (item.is_users && s.ok()) [[unlikely]]
      s = CheckOutputs(frame, item);
    if (!s.ok()) return AtNode(*item.named, *item.device, s, frame.step.call);
    NoteDead(frame, item);
  }
  if (item.num_releases_after > 0) {
    ReleaseSlots(frame, item.releases + item.num_releases_before, item.num_releases_after);
  }
  return absl::OkStatus();
}

// INTERNAL unless a kernel that is not Weir's has set all outputs, to tensors of their types.
absl::Status Executor::CheckOutputs(const Frame& frame, const Instruction& item) const {
  for (int k = 0; k < item.num_outputs; ++k) {
    const int32_t slot = plan_->indices[item.outputs() + k];
    if (!frame.dead.empty() && frame.dead[slot] != 0) continue;
    const Tensor& value = frame.slots[slot];
    if (!value.initialized())
      return absl::InternalError(
          absl::StrCat("Missing ", k, "-th output: the kernel has set none"));
    const DataType type = BaseType(item.node->output_type(k));
    if (value.dtype() != type && !IsRef(item.node->output_type(k))) {
      return absl::InternalError(absl::StrCat("Output ", k, " of the kernel is ",
                                              value.Description(), ", but must be of type ",
                                              DataTypeName(type)));
    }
  }
  return absl::OkStatus();
}

// The item to go on with.
absl::StatusOr<int32_t> Executor::RunMarker(Frame& frame, int32_t i) const {
  const Instruction& item = plan_->items[i];
  const Loop& loop = plan_->loops[item.loop];
  if (item.mark == Instruction::Mark::kTest) {
    const Tensor& goes_on = frame.slots[plan_->indices[item.inputs]];
    if (goes_on.num_elements() != 1) {
      const absl::Status error = InvalidArgument("The input must be a scalar, but it has shape ",
                                                 goes_on.shape().ToString());
      return AtNode(*item.named, *item.device, error, frame.step.call);
    }
    const bool is_over = !*goes_on.data<bool>();
    if (item.num_releases_after > 0) ReleaseSlots(frame, item.releases, item.num_releases_after);
    if (!is_over) return i + 1;
    const Instruction& end = plan_->items[loop.end];
    ReleaseSlots(frame, end.releases, end.num_releases_after);
    return loop.end + 1;
  }
  if (item.mark == Instruction::Mark::kEnd) return EndIteration(frame, i);
  for (const Loop::Carry& c : loop.carries) frame.dead[c.to] = 1;
  for (const int32_t slot : loop.entered_always) frame.dead[slot] = 0;
  return i + 1;
}

absl::StatusOr<int32_t> Executor::EndIteration(Frame& frame, int32_t i) const {
  const Instruction& item = plan_->items[i];
  const Loop& loop = plan_->loops[item.loop];
  std::vector<uint8_t>& dead = frame.dead;
  if (loop.is_structured) {
    MoveVariables(frame, loop);
    if (loop.slots.first < loop.slots.second) ClearDeadFlags(frame, loop);
    return loop.begin;
  }
  const bool over = std::all_of(loop.carries.begin(), loop.carries.end(),
                                [&](const Loop::Carry& c) { return dead[c.from] != 0; });
  if (over) {
    ReleaseSlots(frame, item.releases, item.num_releases_after);
    return i + 1;
  }
  for (const Loop::Carry& c : loop.carries) {
    dead[c.to] = dead[c.from];
    if (dead[c.from] != 0) continue;
    if (c.item < 0) {  // a constant
      frame.slots[c.to] = frame.slots[c.from];
    } else if (c.copied) {
      WEIR_ASSIGN_OR_RETURN(frame.slots[c.to], frame.contexts[c.item].Own(frame.slots[c.from]));
    } else {
      frame.slots[c.to] = std::move(frame.slots[c.from]);
    }
  }
  ClearDeadFlags(frame, loop);
  for (const int32_t slot : loop.entered) dead[slot] = 1;
  return loop.begin;
}

void Executor::ClearDeadFlags(Frame& frame, const Loop& loop) {
  const auto forget = [&](const std::pair<int32_t, int32_t>& range) {
    std::fill(frame.dead.begin() + range.first, frame.dead.begin() + range.second, 0);
  };
  forget(loop.slots);
  forget(loop.dead_slots);
}

void Executor::MoveVariables(Frame& frame, const Loop& loop) {
  absl::InlinedVector<Tensor, 4> shared;
  for (const Loop::Move& m : loop.shared) shared.push_back(frame.slots[m.from]);
  for (const Loop::Move& m : loop.moved) frame.slots[m.to] = std::move(frame.slots[m.from]);
  for (const Loop::Move& m : loop.swapped) {
    Tensor &from = frame.slots[m.from], &to = frame.slots[m.to];
    if (from.dtype() == to.dtype() && from.shape() == to.shape()) {
      from.SwapElements(to);
    } else {
      std::swap(from, to);
    }
    frame.planned[m.from].SwapElements(frame.planned[m.to]);
  }
  for (size_t k = 0; k < shared.size(); ++k) frame.slots[loop.shared[k].to] = std::move(shared[k]);
}

bool Executor::SkipDead(Frame& frame, const Instruction& item) const {
  const int32_t* indices = plan_->indices.data();
  bool dead = false;
  if (!item.accepts_dead) {
    for (int k = 0; k < item.num_inputs; ++k)
      dead = dead || frame.dead[indices[item.inputs + k]] != 0;
  }
  for (int k = 0; !item.accepts_dead && k < item.num_dead_controls; ++k)
    dead = dead || frame.dead[indices[item.dead_controls() + k]] != 0;
  frame.dead[item.dead_slot] = dead ? 1 : 0;
  if (dead) {
    for (int k = 0; k < item.num_outputs; ++k) frame.dead[indices[item.outputs() + k]] = 1;
  }
  return dead;
}

// A Merge none of whose inputs is alive is as dead as what it makes.
inline void Executor::NoteDead(Frame& frame, const Instruction& item) const {
  if (item.accepts_dead && item.dead_slot >= 0 && item.num_outputs > 0)
    frame.dead[item.dead_slot] = frame.dead[plan_->indices[item.outputs()]];
}

void Executor::ReleaseSlots(Frame& frame, int32_t offset, int count) const {
  for (int k = 0; k < count; ++k) frame.slots[plan_->indices[offset + k]] = Tensor();
}

namespace {

// "caller/callee/", with the middle left out where it is long.
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
  if (status.GetPayload(kInFunction)) return status;
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

std::optional<NodeTrace> Executor::BeginTrace(const Frame& frame, int32_t i) const {
  const Instruction& item = plan_->items[i];
  if (frame.step.trace == nullptr || item.has_items) return std::nullopt;
  const absl::Span<const int32_t> inputs(&plan_->indices[item.inputs], item.num_inputs);
  NodeTrace record{.node = item.node->name(),
                   .op = item.node->op_name(),
                   .device = item.device->text(),
                   .inputs = Describe(inputs, frame.slots)};
  record.fused_ops = item.node->attr_or("fused_ops", record.fused_ops);
  record.start_ns = NowNs();
  return record;
}

void Executor::EndTrace(Frame& frame, int32_t i, std::optional<NodeTrace> record) const {
  if (!record) return;
  record->end_ns = NowNs();
  const Instruction& item = plan_->items[i];
  record->outputs = Describe(
      {&plan_->indices[item.outputs()], static_cast<size_t>(item.num_outputs)}, frame.slots);
  record->thread =
      static_cast<int>(std::hash<std::thread::id>()(std::this_thread::get_id()) % 10007);
  frame.step.trace->Add(*std::move(record));
}

// ---- several tasks

void Executor::RunTasks(Frame& frame) {
  frame.tasks_left = static_cast<int32_t>(plan_->tasks.size());
  frame.failed.store(false, std::memory_order_relaxed);
  frame.float_mode = FloatMode::Current();
  for (size_t t = 0; t < plan_->tasks.size(); ++t) {
    frame.waits_for[t].store(plan_->tasks[t].num_predecessors, std::memory_order_relaxed);
  }
  RunTask(frame, 0, plan_->tasks[0].begin);
  std::optional<Clock::time_point> deadline = frame.step.deadline;  // until it has been reported
  std::unique_lock<std::mutex> lock(frame.mutex);
  while (frame.tasks_left > 0) {
    lock.unlock();
    const bool ran = RunPosted(frame);
    const auto news = [&frame] {
      const std::lock_guard<std::mutex> l(frame.mutex);
      return frame.tasks_left == 0 || !frame.posted.empty();
    };
    if (!ran && !pool_.HelpUntil(news, deadline)) {
      deadline.reset();
      Fail(frame, TimedOut(frame, -1));
    }
    lock.lock();
  }
  if (frame.step.cancellation->cancelled() && frame.status.ok())
    frame.status = frame.step.cancellation->status();
}

bool Executor::RunPosted(Frame& frame) {
  std::pair<int32_t, int32_t> work;
  {
    const std::lock_guard<std::mutex> lock(frame.mutex);
    if (frame.posted.empty()) return false;
    work = frame.posted.front();
    frame.posted.pop_front();
  }
  RunTask(frame, work.first, work.second);
  return true;
}

void Executor::Post(Frame& frame, int32_t task, int32_t item) {
  const bool helped = pool_.num_threads() > 1 && pool_.HasRoom();
  // Counted before anyone can take the work up, finish the step and let the session end.
  if (helped) jobs_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard<std::mutex> lock(frame.mutex);
    frame.posted.emplace_back(task, item);
    if (!helped) return pool_.Wake();
  }
  // If other callers have come meanwhile, it is left to this step's own.
  pool_.Schedule([this, &frame] {
    if (pool_.HasRoom()) RunPosted(frame);
    jobs_.fetch_sub(1, std::memory_order_release);
  });
}

void Executor::RunTask(Frame& frame, int32_t t, int32_t first) {
  const ScopedFloatMode as_the_step(frame.float_mode);
  const ScopedCancellation of_step(frame.step.cancellation);
  const Task& task = plan_->tasks[t];
  for (int32_t i = first; i < task.end;) {
    if (frame.failed.load(std::memory_order_acquire)) break;
    if (frame.step.cancellation->cancelled()) {
      Fail(frame, frame.step.cancellation->status());
      break;
    }
    if (IsLate(frame)) break;
    frame.running[t].store(i, std::memory_order_relaxed);
    if (plan_->items[i].mark != Instruction::Mark::kNone) {
      const absl::StatusOr<int32_t> next = RunMarker(frame, i);
      if (!next.ok()) {
        Fail(frame, next.status());
        break;
      }
      i = *next;
      continue;
    }
    if (plan_->items[i].is_async) {
      if (!StartAsync(frame, t, i)) return;
      ++i;
      continue;
    }
    std::optional<NodeTrace> record = BeginTrace(frame, i);
    try {
      if (absl::Status s = RunInstruction(frame, i); !s.ok()) Fail(frame, s);
    } catch (...) {
      Fail(frame, Thrown(frame, i));
    }
    EndTrace(frame, i, std::move(record));
    ++i;
  }
  if (!frame.failed.load(std::memory_order_acquire) && IsLate(frame))
    Fail(frame, TimedOut(frame, t));
  FinishTask(frame, t);
}

// True if the item has finished already and the task may go on; otherwise `done` posts the rest of
// the task. Which of the two comes second, the return of the kernel or the call of `done`, goes on:
// the exchange decides. A kernel that has thrown an exception is done, whatever it calls later.
bool Executor::StartAsync(Frame& frame, int32_t t, int32_t i) {
  const Instruction& item = plan_->items[i];
  if (item.num_releases_before > 0) ReleaseSlots(frame, item.releases, item.num_releases_before);
  std::shared_ptr<const NodeTrace> record;
  if (std::optional<NodeTrace> begun = BeginTrace(frame, i))
    record = std::make_shared<const NodeTrace>(*std::move(begun));
  const auto release = [this, &frame, i, record](const Instruction& finished) {
    NoteDead(frame, finished);
    if (record) EndTrace(frame, i, *record);
    ReleaseSlots(frame, finished.releases + finished.num_releases_before, finished.num_releases_after);
  };
  if (item.dead_slot >= 0 && SkipDead(frame, item)) {
    release(item);
    return true;
  }
  enum class Came { kNone, kOne, kException };
  const auto came = std::make_shared<std::atomic<Came>>(Came::kNone);
  const auto done = [this, &frame, t, i, came, release](absl::Status s) {
    if (came->load(std::memory_order_acquire) == Came::kException) return;
    const Instruction& done_item = plan_->items[i];
    if (done_item.is_users && s.ok()) s = CheckOutputs(frame, done_item);
    if (!s.ok()) {
      Fail(frame, AtNode(*done_item.named, *done_item.device, s, frame.step.call));
    } else {
      release(done_item);
    }
    if (came->exchange(Came::kOne, std::memory_order_acq_rel) == Came::kOne) Post(frame, t, i + 1);
  };
  try {
    plan_->run_async[item.run_async](frame.contexts[i], done);
  } catch (...) {
    came->store(Came::kException, std::memory_order_release);
    Fail(frame, Thrown(frame, i));
    return true;
  }
  return came->exchange(Came::kOne, std::memory_order_acq_rel) == Came::kOne;
}

void Executor::FinishTask(Frame& frame, int32_t t) {
  frame.running[t].store(-1, std::memory_order_relaxed);
  for (const int32_t s : plan_->tasks[t].successors) {
    if (frame.waits_for[s].fetch_sub(1, std::memory_order_acq_rel) == 1)
      Post(frame, s, plan_->tasks[s].begin);
  }
  const std::lock_guard<std::mutex> lock(frame.mutex);
  if (--frame.tasks_left == 0) pool_.Wake();
}

// The first reason counts: a kernel that gives up because the step is over only repeats it.
void Executor::Fail(Frame& frame, const absl::Status& status) {
  frame.step.cancellation->Cancel(status);
  const std::lock_guard<std::mutex> lock(frame.mutex);
  if (frame.status.ok()) frame.status = frame.step.cancellation->status();
  frame.failed.store(true, std::memory_order_release);
}

// The value, with memory that outlives the step.
absl::StatusOr<Tensor> Executor::OwnFetch(const Frame& frame, int32_t slot) const {
  const Tensor& value = frame.slots[slot];
  const int32_t maker = value.buffer() && value.buffer()->transient() ? MakerOf(slot) : -1;
  if (maker < 0) return value;
  absl::StatusOr<Tensor> copy = frame.contexts[maker].Own(value);
  if (copy.ok()) return copy;
  return AtNode(*plan_->items[maker].named, *plan_->items[maker].device, copy.status(),
                frame.step.call);
}

absl::Status Executor::TakeFetches(Frame& frame, Tensors* fetches) const {
  const size_t count = fetches == nullptr ? 0 : plan_->fetch_slots.size();
  if (fetches != nullptr) fetches->resize(count);
  for (size_t i = 0; i < count; ++i) {
    const int32_t slot = plan_->fetch_slots[i];
    if (frame.dead[slot] != 0) {
      return InvalidArgument(
          "Retval[", i,
          "] does not have value: the fetched tensor is in a branch that was not taken");
    }
    WEIR_ASSIGN_OR_RETURN((*fetches)[i], OwnFetch(frame, slot));
  }
  for (const int32_t slot : plan_->fetch_reset_slots) frame.slots[slot] = Tensor();
  return absl::OkStatus();
}

}  // namespace weir
