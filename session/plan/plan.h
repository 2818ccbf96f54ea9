#ifndef WEIR_SESSION_PLAN_PLAN_H_
#define WEIR_SESSION_PLAN_PLAN_H_

#include <memory>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/runtime/kernel.h"

// The executable form of a step: instructions for the executor (executor.h). Lowering (lowering.h)
// makes it of a PlanGraph.
namespace weir {

// One node ready to run: its kernel in one of the two forms. Slot indices are stored in
// Plan::indices. The fields that every run reads fill the first cache line.
struct alignas(64) Instruction {
  Kernel::Run run;  // null for marks and where `is_async`
  int32_t num_releases_before = 0, num_releases_after = 0;
  int32_t releases =
      0;  // offset; slots released before this instruction runs, then those released after it
  int32_t dead_slot =
      -1;  // where the deadness of the instruction is recorded; -1 if it cannot be dead
  bool accepts_dead = false;
  bool aliases = false;
  bool is_async = false;  // its kernel is in Plan::run_async
  enum class Mark : int8_t {
    kNone,
    kBegin,  // begins the iterations of `loop`
    kTest,   // ends a structured loop if the input is false
    kEnd,    // ends an iteration
  };
  Mark mark = Mark::kNone;

  // Offset; the slots of the inputs, of the outputs and of the control inputs that may be dead are
  // stored consecutively.
  int32_t inputs = 0;
  int32_t num_inputs = 0;
  int32_t num_outputs = 0;
  int32_t num_dead_controls = 0;
  int32_t outputs() const { return inputs + num_inputs; }
  int32_t dead_controls() const { return outputs() + num_outputs; }
  int32_t last_uses = 0;  // offset; slots of inputs whose memory an output may reuse
  int32_t num_last_uses = 0;
  int32_t loop = -1;              // of a mark; or of an op that crosses tasks, that it is in
  int32_t run_async = -1;         // index into Plan::run_async
  bool has_subplan = false;       // runs a plan of its own, whose instructions are traced instead
  bool is_custom_kernel = false;  // not one of Weir's kernels: its outputs are checked
  uint64_t host_outputs = 0;
  const Node* node = nullptr;
  // The node that errors name: `node`, or the node for which a pass has inserted it.
  const Node* reported_node = nullptr;
  Device* device = nullptr;
};

// The instructions up to the mark that ends an iteration. They run again as long as some
// loop-carried value is alive.
struct Loop {
  int32_t begin = 0;  // the first instruction, after the kBegin mark of an unstructured loop
  struct Carry {
    int32_t from, to;     // slots: that of a NextIteration, and that which the next iteration reads
    int32_t instruction;  // the instruction of the NextIteration
    bool copied = false;  // the next iteration writes other values to the memory of `from` early
  };
  std::vector<Carry> carries;
  std::vector<int32_t> entered;        // slots of values that only the first iteration sees
  std::vector<int32_t> entered_alive;  // those of them that are alive whenever the loop is
  // The slots and dead slots that belong to the iterations: [first, last).
  std::pair<int32_t, int32_t> slots, dead_slots;

  // For a structured loop. It has none of the above but `begin`, and `slots` and `dead_slots` if
  // something in it may be dead. Between two iterations all loop-carried values move from slot to
  // slot at once.
  struct Move {
    int32_t from, to;
  };
  bool is_structured = false;

  // For an unstructured loop: the loop around it, or -1, and the hash of its frame's name. If its
  // iterations are partitioned, the task that begins one, and the task that ends it; otherwise -1.
  int parent = -1;
  uint64_t name_hash = 0;
  int32_t first_task = -1, last_task = -1;
  int32_t end = 0;            // the instruction that ends an iteration
  std::vector<Move> shared;   // both slots have the value afterward
  std::vector<Move> moved;    // the value is not needed in `from` afterward
  std::vector<Move> swapped;  // the two slots also exchange their places in the arena
};

// Instructions that one thread runs one after another. A task starts when the counter of its
// unfinished predecessors reaches zero; one of a loop, in each iteration.
struct Task {
  int32_t begin = 0, end = 0;  // instructions
  int32_t num_predecessors = 0;
  std::vector<int32_t> successors;
};

// A step compiled for one set of feed shapes. Immutable; many threads run it at once, each with an
// ExecutionState of its own.
class Plan {
 public:
  std::vector<Shape> feed_shapes;
  // The graphs besides the session's that own nodes of instructions.
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::vector<Instruction> instructions;
  std::vector<Kernel::RunAsync> run_async;  // of the few asynchronous instructions
  std::vector<int32_t> indices;
  std::vector<Task> tasks;  // tasks[0] runs first, on the calling thread; often it is the only task
  std::vector<Loop> loops;
  int32_t num_slots = 0;
  int32_t num_dead_slots = 0;          // one per slot, then one per instruction that may be dead
  std::vector<int32_t> feed_slots;     // by feed; -1 if the feed is not needed
  std::vector<int32_t> fetch_slots;    // by fetch
  std::vector<uint8_t> moved_fetches;  // by fetch: 1 if it takes the value out of its slot
  // slot -> value, set before the first step, in the memory of the device that uses it
  std::vector<std::pair<int32_t, Tensor>> constants;
  std::vector<int32_t> reset_slots;  // released at the end of the step
  std::vector<int32_t>
      dynamic_slots;  // all slots that are released at some time; after an error, all at once
  bool may_have_dead = false;
  // Kernels treat subnormal floats as zero. Also false where no kernel computes: setting and
  // restoring the processor's mode takes a tenth of the time of a step that reads a variable.
  bool flushes_subnormals = false;
  std::vector<Device*>
      streams;  // devices with a stream: a step ends when the streams have run its work

  // The arena placement of a slot: device and offset, with the dtype and shape of the value.
  struct Placement {
    int32_t slot;
    Device* device;
    size_t offset;
    DataType dtype;
    Shape shape;
  };
  std::vector<Placement> placements;
  std::vector<std::pair<Device*, size_t>> arenas;  // bytes per device
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PLAN_H_
