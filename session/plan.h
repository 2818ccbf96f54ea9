#ifndef WEIR_SESSION_PLAN_H_
#define WEIR_SESSION_PLAN_H_

#include <map>
#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "weir/core/graph.h"
#include "weir/core/kernel.h"
#include "weir/session/place.h"
#include "weir/session/session.h"

// The intermediate form that passes transform (passes.h), and the executable that executor.cc runs.
namespace weir {

// Indices of nodes, slots or variables, nearly always one or two. The object has the size of a
// vector and stores short lists inline.
using IndexList = absl::InlinedVector<int, 4>;

// One output of a node of the plan.
struct PlanValue {
  int node = -1;
  int output = 0;
  friend bool operator==(const PlanValue&, const PlanValue&) = default;
};

// A node of the plan: a node of the graph, a fed tensor, or a node that a pass has inserted.
struct PlanNode {
  enum class Kind : uint8_t {
    kOp,
    kFeed,   // output 0 is fed
    kRead,   // reads the value of the variable behind the reference at input 0
    kCopy,   // copies input 0 to another device
    kWait,   // computes nothing: replaces a node of which only the completion matters
    kCarry,  // the value that a NextIteration has passed on from the previous iteration
  };
  Kind kind = Kind::kOp;
  bool may_be_dead = false;  // may be in a branch that is not taken
  bool removed = false;
  bool in_body = false;   // in the body of a structured loop: runs only if the LoopCond was true
  bool must_run = false;  // even if nothing uses its outputs any more
  bool step_invariant =
      false;  // of a feed, or computed from step-invariant values alone (IsStepInvariant)
  // The loop that the node runs in, and the loop that its outputs belong to (they differ for Enter
  // and Exit): indices into PlanGraph::loops, -1 for none.
  int loop = -1, value_loop = -1;
  // The graph's node; for kRead, kCopy and kWait an internal node of the runtime that carries the
  // types; for kFeed the fed node, for kCarry the NextIteration.
  const Node* node = nullptr;
  int fed_output = 0;  // for kFeed: the output of `node` that is fed
  absl::InlinedVector<PlanValue, 3> inputs;
  absl::InlinedVector<int, 1> controls;
  Device* device = nullptr;
  const KernelDef* def = nullptr;  // null for feeds, reads and copies

  // Known after Specialize.
  absl::InlinedVector<Shape, 1> shapes;  // by output
  // By output, in host memory; empty, or uninitialized tensors where the value is not known.
  std::vector<Tensor> constants;
  Kernel kernel;
  double cost_ns = 0;

  int num_outputs() const {
    return kind == Kind::kOp ? node->num_outputs() : kind == Kind::kWait ? 0 : 1;
  }
  // Traits of the op; those of an op without any for other kinds of nodes.
  const OpTraits& traits() const;
  bool Is(ControlFlow flow) const { return traits().control_flow == flow; }
  // The same, of values and not of references.
  bool IsValueFlow(ControlFlow flow) const { return Is(flow) && !IsRef(type(0)); }
  bool Is(VariableUse use) const { return traits().variable_use == use; }
  // Returns true for an op of one input and one output that returns its input, as Identity does.
  bool is_identity() const {
    return traits().movement == Movement::kIdentity && inputs.size() == 1 && num_outputs() == 1 &&
           traits().effect == Effect::kByState && !node->op().stateful();
  }
  // True for a node of the graph that is one of these ops.
  template <class... Names>
  bool Is(const Names&... ops) const {
    return kind == Kind::kOp && ((node->op_name() == ops) || ...);
  }
  // True for Enter and RefEnter, and for Exit and RefExit, once FindLoops has set the loops.
  bool is_enter() const;
  bool is_exit() const;
  // True if a step does work for this node: it is neither fed nor constant.
  bool runs() const;
  // Removes all incoming edges, of a node that is removed or has become constant.
  void DropEdges() {
    inputs.clear();
    controls.clear();
  }
  // True if both nodes run in the same iterations of the same loop, or both outside all loops.
  bool runs_with(const PlanNode& other) const {
    return loop == other.loop && in_body == other.in_body;
  }
  DataType type(int output) const {
    return node->output_type(kind == Kind::kFeed ? fed_output : output);
  }
  // True for an argument that the kernel keeps in host memory, whatever its device.
  bool is_host_input(int input) const;
  bool is_host_output(int output) const;
  // True if the output is in the memory of an accelerator.
  bool is_on_accelerator(int output) const;
  bool is_constant(int output) const {
    return output < static_cast<int>(constants.size()) && constants[output].initialized();
  }
  // Sets the constant values of all outputs; an empty vector means that they are not known.
  void set_constants(std::vector<Tensor> values) {
    constants = std::move(values);
    for (size_t i = 0; i < constants.size(); ++i) shapes[i] = constants[i].shape();
  }
};

// A frame of v1 control flow: the nodes between the Enters and the Exits of one frame name.
struct PlanLoop {
  int parent = -1;
  std::string frame_name;
  // For a structured loop (structure_loops.cc): its LoopCond. Its Enters are its loop variables,
  // and PlanGraph::carries holds its back edges. Nodes outside the loop use its values directly,
  // without an Exit.
  int condition = -1;
  bool in_body = false;  // PlanNode::in_body of the loop as a whole, with respect to the structured
                         // loop around it
  bool is_structured() const { return condition >= 0; }
};

// What a pass did to the nodes of a plan.
struct PlanChanges {
  int removed = 0;  // nodes that are gone
  int added = 0;    // new nodes
  int fused = 0;    // nodes that became a part of another node
  int moved = 0;    // uses that take another, equal value from now on
  int difference() const { return added - removed - fused; }
};

// A graph of nodes in topological order (inputs and controls come first), with its feeds, fetches
// and targets. The back edges of loops, from a NextIteration to the nodes that take its value, are
// cut: a kCarry replaces the NextIteration as their input.
struct PlanGraph {
  struct Carry {
    int carry;       // the kCarry; in a structured loop the Enter, whose value is replaced
    PlanValue next;  // the value that the next iteration finds there: that of a NextIteration
  };
  std::vector<PlanNode> nodes;
  std::vector<PlanLoop> loops;  // outer loops first
  PlanChanges changes = {};     // by the pass that runs

  // Adds a node behind all others and returns its index. SortTopologically restores the order.
  int Add(PlanNode node);
  // Removes a node that nothing uses any more, or that another node now computes too.
  void Remove(int node);
  void Fuse(int node);
  // Marks a node as removed; its edges stay until DropRemoved.
  void MarkRemoved(int node);
  // The number of nodes that are not removed.
  int NumNodes() const;

  const Shape& ShapeOf(const PlanValue& v) const { return nodes[v.node].shapes[v.output]; }
  // Returns null if the value is not known.
  const Tensor* ConstantOf(const PlanValue& v) const {
    const PlanNode& n = nodes[v.node];
    return n.is_constant(v.output) ? &n.constants[v.output] : nullptr;
  }
  // True if output 0 of the node has the shape of the value, and both are known.
  bool KeepsShape(const PlanNode& n, const PlanValue& v) const {
    return n.shapes[0].IsFullyDefined() && n.shapes[0] == ShapeOf(v);
  }
  std::vector<Carry> carries;
  // True for an Enter of a structured loop whose value changes from iteration to iteration.
  bool IsLoopVariable(const PlanNode& node) const;
  // Returns the loop of `variable` if it is a loop variable and `user` is outside that loop: `user`
  // then takes its last value. Returns -1 for everything else.
  int ExitedLoop(const PlanNode& variable, const PlanNode& user) const;
  // True for the LoopCond of a structured loop, which is lowered to the test that ends the loop.
  bool EndsLoop(int node) const {
    const int loop = nodes[node].loop;
    return loop >= 0 && loops[loop].condition == node;
  }
  // True if `loop` is `outer` or is inside it. Only `loop` may be -1 (no loop).
  bool IsInside(int loop, int outer) const;
  // Returns the innermost loop around both, or -1.
  int CommonLoop(int a, int b) const;
  // Returns the outermost loop that contains `node` and neither is nor contains `loop`; -1 if there
  // is none.
  int OutermostLoopExcluding(int node, int loop) const;
  // Which inputs are step-invariant, by input, as kernels are told:
  // KernelInit::step_invariant_inputs.
  using Flags = absl::InlinedVector<bool, 4>;
  Flags StepInvariantsOf(absl::Span<const PlanValue> inputs) const;
  bool IsStepInvariant(PlanValue value) const;
  bool writes_state = false;  // some node writes to a variable or to other state
  // Owns the nodes that passes have created for this plan; null as long as there are none.
  std::shared_ptr<Graph> internal_graph;
  // The graphs of functions whose nodes are in the plan.
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::vector<PlanValue> feeds;    // by feed; node -1 if nothing needs it
  std::vector<PlanValue> fetches;  // by fetch
  std::vector<int> targets;
};

struct PlanRequest {
  Outputs feeds, fetches;
  std::vector<Operation> targets;
  // Nodes that earlier calls of a partial run have run. Nodes of this plan have no edges from them;
  // their values that are needed are fed.
  std::vector<const Node*> done = {};
  Connections connections = {};
};

// Returns true if the node takes values of the previous iteration and depends on nothing else in
// its loop: it is among the first nodes to run in an iteration.
bool StartsIteration(const PlanGraph& plan, const PlanNode& node);

// The context that passes use.
struct PlanEnvironment {
  const Graph& graph;
  // Of the session's graph. Code that reads more of the graph than nodes it already holds takes it
  // shared.
  std::shared_mutex& graph_mutex;
  const KernelRegistry& kernels;
  absl::Span<const std::unique_ptr<Device>> devices;  // devices[0] is the CPU
  ResourceMap& resources;
  ThreadPool& pool;
  const SessionOptions& options;
  Placement& placement;
  Functions* functions = nullptr;
  bool is_subplan = false;  // a part of another plan is compiled

  // True unless the pass or switch is disabled; `optimization` is no group.
  bool enabled(absl::string_view optimization) const {
    return options.disable.find(std::string(optimization)) == options.disable.end();
  }
  // Returns the arguments for creating the kernel of a node.
  KernelInit InitFor(const Node& node, Device& device, absl::Span<const Shape> input_shapes,
                     absl::Span<const bool> step_invariant_inputs = {}) const {
    return {node,
            device,
            resources,
            input_shapes,
            functions,
            step_invariant_inputs,
            enabled("fast_algorithms"),
            &kernels};
  }
};

// Returns an internal node of the runtime that passes a value of this type through ("_Read",
// "_Copy"). The node is never destroyed.
const Node& InternalNode(absl::string_view op, DataType dtype);
// The ops of these nodes.
const OpRegistry& InternalOps();

// Moves node order[i] to index i, for all nodes.
void ReorderNodes(PlanGraph& plan, absl::Span<const int> order);
// Restores the topological order after a pass has added edges or nodes. A cycle is INVALID_ARGUMENT
// naming a node on it.
absl::Status SortTopologically(PlanGraph& plan);
// The error for a node that depends on itself by way of a loop.
absl::Status CycleThroughLoop(const PlanNode& n);
// Erases the nodes that are marked as removed; no other node may still use them.
void DropRemoved(PlanGraph& plan);

// ---- the executable form

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
  int32_t loop = -1;
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
  int32_t end = 0;            // the instruction that ends an iteration
  std::vector<Move> shared;   // both slots have the value afterward
  std::vector<Move> moved;    // the value is not needed in `from` afterward
  std::vector<Move> swapped;  // the two slots also exchange their places in the arena
};

// Instructions that one thread runs one after another. A task starts when the counter of its
// unfinished predecessors reaches zero.
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
  int32_t num_dead_slots = 0;        // one per slot, then one per instruction that may be dead
  std::vector<int32_t> feed_slots;   // by feed; -1 if the feed is not needed
  std::vector<int32_t> fetch_slots;  // by fetch
  std::vector<int32_t> fetch_reset_slots;  // those that are not constants: released once fetched
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

// Lowers the graph to tasks and instructions. Moves the kernels out of the graph.
absl::Status Schedule(PlanGraph graph, const PlanEnvironment& env, Plan* plan);

// The order in which the nodes of a plan run.
struct NodeOrder {
  std::vector<int> order;
  std::vector<int> position;  // by node; -1 if it does not run
  // By loop: its first and last position; -1 if none of its nodes runs.
  std::vector<std::pair<int, int>> loops;
  // By node: nodes that the order has put before it because both use the same variable.
  std::vector<IndexList> variable_predecessors;
  std::vector<int> value_of;          // by node: the variable whose value output 0 shares, or -1
  std::vector<IndexList> written_by;  // by node: the variables that it writes
};
// INVALID_ARGUMENT if an input of a loop depends on an output of the same loop.
absl::StatusOr<NodeOrder> OrderNodes(const PlanGraph& graph);

// A NodeOrder with tasks and slots: `task_of` each node, `slot_of[n]` the first slot of node n.
struct ScheduledOrder : public NodeOrder {
  std::vector<int> task_of;
  std::vector<std::vector<int>> task_predecessors;
  std::vector<int32_t> slot_of;
};
// Also sets `copied` of the carries of `plan` that need it.
void PlanMemory(const PlanGraph& graph, const ScheduledOrder& scheduled, const PlanEnvironment& env,
                Plan* plan);

// Runs the passes of Phase::kPrepare, which do not depend on the feed shapes.
absl::StatusOr<PlanGraph> PreparePlan(const PlanRequest& request, const PlanEnvironment& env);
// Runs the other passes, and lowers the result to an executable.
absl::StatusOr<std::unique_ptr<const Plan>> CompilePlan(PlanGraph graph,
                                                        absl::Span<const Shape> feed_shapes,
                                                        const PlanEnvironment& env);
// The same from Phase::kFuse on, for a subplan whose nodes are specialized already.
absl::StatusOr<std::unique_ptr<const Plan>> CompileSubplan(PlanGraph graph,
                                                           absl::Span<const Shape> feed_shapes,
                                                           PlanEnvironment env);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_H_
