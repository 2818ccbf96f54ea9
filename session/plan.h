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

// From a graph to a step that is ready to run. The passes, in order:
//
// clang-format off
//   Prune              feeds, fetches, targets -> the nodes they need                 prune.cc
//   FindLoops          which loop each node belongs to                                loops.cc
//   Place              a device and a kernel for every node; colocations              place.cc
//   OrderInitializers  initial values that read variables wait for these              initializer_order.cc
//   OrderReads         users of a shared read see the writes that they run after      order_reads.cc
//   InsertReads        a value where an op takes the value of a reference             insert_copies.cc
//   InsertCopies       a copy wherever a tensor crosses devices                       insert_copies.cc
//   AnalyzeDeadness       which nodes may stand in a branch that is not taken            deadness.cc
//   CheckRaces         if asked for: no unordered uses of a variable that is written  races.cc
//   HoistConstants      constants of a branch that are there anyway                    deadness.cc
//   -- what follows is done once for each set of feed shapes --
//   StructureLoops         while loops run as such, without the nodes that pass values    structure_loops.cc
//   InlineFunctions    functions become parts of the plan, their loops among them     inline_functions.cc
//   CheckUnknownOps    no node is sure to run whose op nobody knows                   unknown_ops.cc
//   Specialize         shapes, constants and kernels, as far as they are known        specialize.cc
//   PruneControlEdges          nobody waits where that orders nothing                         prune_control_edges.cc
//   Simplify           one value for all that are equal                               simplify.cc
//   EliminateDeadNodes       no more is run than somebody uses                              eliminate_dead_nodes.cc
//   CacheStepInvariants        what depends on nothing but weights is computed once           cache_step_invariants.cc
//   TileBatch       layers take one slice of a batch after the other               tile_batch.cc
//   FuseScalarLoops    raised loops over scalars become one node                      fuse_scalar_loops.cc
//   Fuse               what is spread out is computed before,                         sink_tiles.cc
//                      what is cut from a product is cut before,                      sink_slices.cc
//                      products take up what is done to their elements next,          fuse_epilogues.cc
//                      layer norms and softmaxes in small ops become one node,        fuse_layer_norm.cc, fuse_softmax.cc
//                      element-wise neighbors become one node,                       fuse_elementwise.cc
//                      products that a loop adds up are multiplied together           defer_matmuls.cc
//   OrderNodes         one static order                                               order.cc
//   Schedule           tasks that may run side by side; the items of a step           schedule.cc
//   PlanMemory         where in the step's arena each value lies; in-place reuse      plan_memory.cc
// clang-format on
//
// and executor.cc runs the result. Each pass is one function from plan to plan.
namespace weir {

// Numbers of nodes, slots or variables, where nearly always there are one or two: as large as a
// vector, without memory of its own.
using IndexList = absl::InlinedVector<int, 4>;

// One output of a node of the plan.
struct PlanValue {
  int node = -1;
  int output = 0;
  friend bool operator==(const PlanValue&, const PlanValue&) = default;
};

// A node of the plan: a node of the graph, a fed tensor, or something that a pass has put in.
struct PlanNode {
  enum class Kind : uint8_t {
    kOp,
    kFeed,   // output 0 is fed
    kRead,   // the value of the variable behind the reference at input 0
    kCopy,   // input 0 on another device
    kWait,   // computes nothing: stands for a node of which only the end matters
    kCarry,  // what a NextIteration has handed over from the iteration before
  };
  Kind kind = Kind::kOp;
  bool may_be_dead = false;  // may stand in a branch that is not taken
  bool removed = false;
  bool in_body = false;   // in a raised loop: runs only if the LoopCond has been true
  bool must_run = false;  // even if nobody takes its value any more
  bool step_invariant = false;     // of a feed, or what is computed from lasting values (IsStepInvariant)
  // The loop that the node runs in, and the one that its outputs belong to (they differ for Enter
  // and Exit): positions in PlanGraph::loops, -1 for none.
  int loop = -1, value_loop = -1;
  // The graph's node; for kRead, kCopy and kWait a node of the runtime's own that carries the
  // types; for kFeed the node fed, for kCarry the NextIteration.
  const Node* node = nullptr;
  int fed_output = 0;  // of that node, for kFeed
  absl::InlinedVector<PlanValue, 3> inputs;
  absl::InlinedVector<int, 1> controls;
  Device* device = nullptr;
  const KernelDef* def = nullptr;  // null for feeds, reads and copies

  // Known after Specialize.
  absl::InlinedVector<Shape, 1> shapes;  // by output
  // By output, in host memory; empty, or uninitialized tensors where nothing is known.
  std::vector<Tensor> constants;
  Kernel kernel;
  double cost_ns = 0;

  int num_outputs() const {
    return kind == Kind::kOp ? node->num_outputs() : kind == Kind::kWait ? 0 : 1;
  }
  // A node of the graph that is one of these ops.
  template <class... Names>
  bool Is(const Names&... ops) const {
    return kind == Kind::kOp && ((node->op_name() == ops) || ...);
  }
  // Enter and RefEnter, Exit and RefExit, once FindLoops has set the loops.
  bool is_enter() const;
  bool is_exit() const;
  // Something is done for it in a step: it is not fed, and not known.
  bool runs() const;
  // Neither takes nor waits for anything from now on: has been removed, or is known.
  void DropEdges() {
    inputs.clear();
    controls.clear();
  }
  void Remove() {
    removed = true;
    DropEdges();
  }
  // In the same iterations of the same loop, if in any.
  bool runs_with(const PlanNode& other) const {
    return loop == other.loop && in_body == other.in_body;
  }
  DataType type(int output) const {
    return node->output_type(kind == Kind::kFeed ? fed_output : output);
  }
  // An argument that the kernel keeps in host memory, whatever its device.
  bool is_host_input(int input) const;
  bool is_host_output(int output) const;
  // Output lies in the memory of an accelerator.
  bool is_on_accelerator(int output) const;
  bool is_constant(int output) const {
    return output < static_cast<int>(constants.size()) && constants[output].initialized();
  }
  // All outputs are these; none if there are no values.
  void set_constants(std::vector<Tensor> values) {
    constants = std::move(values);
    for (size_t i = 0; i < constants.size(); ++i) shapes[i] = constants[i].shape();
  }
};

// A frame of old control flow: what lies between the Enters and the Exits of one frame name.
struct PlanLoop {
  int parent = -1;
  std::string frame_name;
  // Of a raised loop (structure_loops.cc): its LoopCond. Its Enters are its variables; what closes it
  // is in PlanGraph::carries, and its values are used outside of it where they are.
  int condition = -1;
  bool in_body = false;  // of the raised loop around it: PlanNode::in_body of the loop as a whole
  bool is_structured() const { return condition >= 0; }
};

// Nodes in topological order (inputs and controls come before), and what goes in and out. The edges
// that close a loop, from a NextIteration to what takes its value, are cut: in the place of the
// NextIteration stands a kCarry.
struct PlanGraph {
  struct Carry {
    int carry;       // the kCarry; in a raised loop the Enter, whose value is replaced
    PlanValue next;  // what the next iteration finds there: the value of a NextIteration
  };
  std::vector<PlanNode> nodes;
  std::vector<PlanLoop> loops;  // outer ones first
  std::vector<Carry> carries;
  // An Enter of a raised loop whose value changes from iteration to iteration.
  bool IsLoopVariable(const PlanNode& node) const;
  // The loop, if this is a variable of one that `user` is not in: then `user` takes its last value.
  // -1 for everything else.
  int LoopLeft(const PlanNode& variable, const PlanNode& user) const;
  // The LoopCond of a raised loop, which is run as the test that ends it.
  bool EndsLoop(int node) const {
    const int loop = nodes[node].loop;
    return loop >= 0 && loops[loop].condition == node;
  }
  // The loop is `outer`, or in it. Neither may be -1 (no loop) but `loop`.
  bool IsInside(int loop, int outer) const;
  // The innermost loop around both, or -1.
  int CommonLoop(int a, int b) const;
  // The outermost loop that `node` is in and `loop` is neither nor in; -1 if there is none.
  int LoopAround(int node, int loop) const;
  // What their kernels are told of inputs: KernelInit::step_invariant_inputs.
  using Flags = absl::InlinedVector<bool, 4>;
  Flags StepInvariantsOf(absl::Span<const PlanValue> inputs) const;
  bool IsStepInvariant(PlanValue value) const;
  bool writes_state = false;  // some node writes to a variable, or to what is used like one
  // The nodes that passes have made for this plan; null as long as there are none.
  std::shared_ptr<Graph> made;
  // Those of functions whose nodes are in the plan.
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::vector<PlanValue> feeds;    // by feed; node -1 if nothing needs it
  std::vector<PlanValue> fetches;  // by fetch
  std::vector<int> targets;
};

struct PlanRequest {
  Outputs feeds, fetches;
  std::vector<Operation> targets;
  // Nodes that earlier pieces of a partial run have run: nobody waits for them, and what is needed
  // of their values is fed.
  std::vector<const Node*> done = {};
  Connections connections = {};
};

// Takes up what the iteration before has handed over, and needs nothing else of its loop: the first
// thing to run in an iteration.
bool StartsIteration(const PlanGraph& plan, const PlanNode& node);

// What passes may use.
struct PlanEnvironment {
  const Graph& graph;
  // Of the session's graph: shared by whoever reads more of that than nodes which he has.
  std::shared_mutex& graph_mutex;
  const KernelRegistry& kernels;
  absl::Span<const std::unique_ptr<Device>> devices;  // devices[0] is the CPU
  ResourceMap& resources;
  ThreadPool& pool;
  const SessionOptions& options;
  Placement& placement;
  Functions* functions = nullptr;

  bool enabled(absl::string_view optimization) const {
    return options.disable.find(std::string(optimization)) == options.disable.end();
  }
  // What the kernel of a node is told when it is made.
  KernelInit InitFor(const Node& node, Device& device, absl::Span<const Shape> input_shapes,
                     absl::Span<const bool> step_invariant_inputs = {}) const {
    return {node,
            device,
            resources,
            input_shapes,
            functions,
            step_invariant_inputs,
            enabled("fast_algorithms")};
  }
};

absl::StatusOr<PlanGraph> Prune(const PlanRequest& request, const Graph& graph);
absl::Status FindLoops(PlanGraph& plan);
absl::Status Place(PlanGraph& plan, const PlanEnvironment& env);
absl::Status OrderInitializers(PlanGraph& plan);
absl::Status OrderReads(PlanGraph& plan, const PlanEnvironment& env);
void InsertReads(PlanGraph& plan);
void InsertCopies(PlanGraph& plan, const PlanEnvironment& env);
absl::Status CheckRaces(const PlanGraph& plan);
// `feed_shapes`: by feed; unknown shapes are allowed. Of a handle, the shape of its variable.
absl::Status Specialize(PlanGraph& plan, absl::Span<const Shape> feed_shapes,
                        const PlanEnvironment& env);
// The values, by node, of constants that are not taken for such because they wait for something,
// and of what is computed from them and constants alone.
using ControlledConstants = std::map<int, std::vector<Tensor>>;
ControlledConstants FindControlledConstants(PlanGraph& plan, absl::Span<const Shape> feed_shapes,
                                      const PlanEnvironment& env);
// Takes away control edges that no order of effects depends on. What need not wait any more is a
// constant then.
void PruneControlEdges(PlanGraph& plan, const ControlledConstants& waiting);
// Gives users of a value an equal one that is there already.
void Simplify(PlanGraph& plan, const PlanEnvironment& env);
void EliminateDeadNodes(PlanGraph& plan, const PlanEnvironment& env);
// Makes one node of a raised loop all of whose values are scalars.
absl::Status FuseScalarLoops(PlanGraph& plan, const PlanEnvironment& env);
// Computes what is spread out before it is, makes one node of a convolution or matrix product and
// those after it that work on its elements, one of a layer norm or softmax that is spelled out, and
// one of element-wise neighbors.
absl::Status Fuse(PlanGraph& plan, const PlanEnvironment& env);

// Makes one node of those that depend on nothing but lasting values, after making more of them; it
// runs them when a value has changed.
absl::Status CacheStepInvariants(PlanGraph& plan, const PlanEnvironment& env);

// Makes one node of those that work on each row of a batch by itself; it runs them slice by slice.
absl::Status TileBatch(PlanGraph& plan, const PlanEnvironment& env);

// Sets `may_be_dead` of all nodes.
void AnalyzeDeadness(PlanGraph& plan);
// Python ties each constant of a branch or loop to it by a control edge. Takes the edge away, and
// `may_be_dead`, where whoever takes the constant is dead with the branch by another input.
void HoistConstants(PlanGraph& plan);
void StructureLoops(PlanGraph& plan);
// Puts functions that nodes call into the plan, those of While and StatelessWhile as raised loops.
absl::Status InlineFunctions(PlanGraph& plan, const PlanEnvironment& env);

// A node of the runtime's own that passes a value of this type through ("_Read", "_Copy"); lives
// for ever.
const Node& InternalNode(absl::string_view op, DataType dtype);

// Puts node order[i] at i, for all nodes.
void PutInOrder(PlanGraph& plan, absl::Span<const int> order);
// Puts the nodes into topological order again, after a pass has added edges or nodes. A cycle is
// INVALID_ARGUMENT naming a node on it.
absl::Status SortTopologically(PlanGraph& plan);
// What is wrong if a node waits for itself by way of a loop.
absl::Status CycleThroughLoop(const PlanNode& n);
// Takes out the nodes that are removed; nobody may use them any more.
void DropRemoved(PlanGraph& plan);

// ---- the executable form

// One node ready to run: its kernel in one of the two forms. Indices of slots stand in
// Plan::indices. What every run looks at fills the first cache line.
struct alignas(64) Instruction {
  Kernel::Run run;  // none in marks, and where `is_async`
  int32_t num_releases_before = 0, num_releases_after = 0;
  int32_t releases = 0;  // offset; slots emptied before this item runs, then those emptied after it
  int32_t dead_slot = -1;  // where the item's own deadness is noted; -1 if it cannot be dead
  bool accepts_dead = false;
  bool aliases = false;
  bool is_async = false;  // Plan::run_async has its kernel
  enum class Mark : int8_t {
    kNone,
    kBegin,  // of the iterations of `loop`
    kTest,   // of a raised loop: ends it if the input is false
    kEnd,    // of an iteration
  };
  Mark mark = Mark::kNone;

  // Offset; the slots of inputs, outputs and control inputs that may be dead stand one after
  // another.
  int32_t inputs = 0;
  int32_t num_inputs = 0;
  int32_t num_outputs = 0;
  int32_t num_dead_controls = 0;
  int32_t outputs() const { return inputs + num_inputs; }
  int32_t dead_controls() const { return outputs() + num_outputs; }
  int32_t last_uses = 0;  // offset; slots of inputs whose memory an output may take over
  int32_t num_last_uses = 0;
  int32_t loop = -1;
  int32_t run_async = -1;  // position in Plan::run_async
  bool has_items = false;  // of a plan of its own, which are traced instead
  bool is_users = false;   // the kernel is none of Weir's: its outputs are looked at
  uint64_t host_outputs = 0;
  const Node* node = nullptr;
  // What errors name: the node itself, or the one for whose sake a pass has put it in.
  const Node* named = nullptr;
  Device* device = nullptr;
};

// The items up to the mark that ends an iteration, run again as long as a value goes round.
struct Loop {
  int32_t begin = 0;  // the first item, after the mark that begins a loop that is not raised
  struct Carry {
    int32_t from, to;     // slots: a NextIteration's, and where the next iteration looks for it
    int32_t item;         // of the NextIteration
    bool copied = false;  // `from` lies where the next iteration writes other values early
  };
  std::vector<Carry> carries;
  std::vector<int32_t> entered;         // slots of values that only the first iteration sees
  std::vector<int32_t> entered_always;  // those of them that are there whenever the loop is
  // What the iterations have to themselves: slots and dead slots, [first, last).
  std::pair<int32_t, int32_t> slots, dead_slots;

  // Of a raised loop, which has none of the above but `begin`, and `slots` and `dead_slots` if
  // something in it may be dead. Between two iterations all values go from slot to slot at once.
  struct Move {
    int32_t from, to;
  };
  bool is_structured = false;
  int32_t end = 0;            // the item that ends an iteration
  std::vector<Move> shared;   // both have the value afterward
  std::vector<Move> moved;    // the value is not needed where it was
  std::vector<Move> swapped;  // with the places that the arena has for the two
};

// Items run one after another by one thread; tasks wait for others by counting down.
struct Task {
  int32_t begin = 0, end = 0;  // items
  int32_t num_predecessors = 0;
  std::vector<int32_t> successors;
};

// A step compiled for one set of feed shapes. Immutable; run by many threads, each with a Frame of
// its own.
class Plan {
 public:
  std::vector<Shape> feed_shapes;
  // Those that have nodes of items, besides the session's.
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::vector<Instruction> items;
  std::vector<Kernel::RunAsync> run_async;  // of the few items that have one
  std::vector<int32_t> indices;
  std::vector<Task>
      tasks;  // tasks[0] runs first, on the calling thread; alone if it is the only one
  std::vector<Loop> loops;
  int32_t num_slots = 0;
  int32_t num_dead_slots = 0;              // slots, then one for each item that may be dead
  std::vector<int32_t> feed_slots;         // by feed; -1: not needed
  std::vector<int32_t> fetch_slots;        // by fetch
  std::vector<int32_t> fetch_reset_slots;  // those that are no constants: emptied once fetched
  // slot -> value, there before the first step, in the memory of the device that uses it
  std::vector<std::pair<int32_t, Tensor>> constants;
  std::vector<int32_t> reset_slots;    // emptied when the step is over
  std::vector<int32_t> dynamic_slots;  // all that are emptied some time; after an error all at once
  bool may_have_dead = false;
  // Kernels take subnormal floats for zero. Also false where none computes: to set the processor's
  // mode and to set it back takes a tenth of the time of a step that reads a variable.
  bool flushes_subnormals = false;
  std::vector<Device*> streams;  // devices with a stream: a step ends when they have come so far

  // The arena: slot -> (device, offset), its dtype and shape.
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

// Moves the kernels out of the graph.
absl::Status Schedule(PlanGraph graph, const PlanEnvironment& env, Plan* plan);

// The order in which the nodes of a plan run.
struct NodeOrder {
  std::vector<int> order;
  std::vector<int> position;  // by node; -1 if it is not run
  // By loop: its first and last position; -1 if none of it runs.
  std::vector<std::pair<int, int>> loops;
  // By node: those that the order has put before it because of a variable that both use.
  std::vector<IndexList> overtaken;
  std::vector<int> value_of;    // by node: the variable whose value output 0 shares; or -1
  std::vector<IndexList> written_by;  // by node: variables
};
// INVALID_ARGUMENT if what goes into a loop waits for what comes out of it.
absl::StatusOr<NodeOrder> OrderNodes(const PlanGraph& graph);

// With tasks and slots: `task_of` each node, `slot_of[n]` the first slot of node n.
struct ScheduledOrder : public NodeOrder {
  std::vector<int> task_of;
  std::vector<std::vector<int>> task_predecessors;
  std::vector<int32_t> slot_of;
};
// Sets `copied` of the carries of `plan` that need it.
void PlanMemory(const PlanGraph& graph, const ScheduledOrder& scheduled, const PlanEnvironment& env,
                Plan* plan);

// The names of all optimizations, as in SessionOptions::disable.
const std::set<std::string>& OptimizationNames();
// INVALID_ARGUMENT for a name that no optimization has.
absl::Status CheckOptimizations(const std::set<std::string>& names);

// All passes after InsertCopies.
absl::StatusOr<std::unique_ptr<const Plan>> CompilePlan(PlanGraph graph,
                                                        absl::Span<const Shape> feed_shapes,
                                                        const PlanEnvironment& env);
// The last of them: Fuse and what comes after it.
absl::StatusOr<std::unique_ptr<const Plan>> FinishPlan(PlanGraph graph,
                                                       absl::Span<const Shape> feed_shapes,
                                                       const PlanEnvironment& env);
// All passes before.
absl::StatusOr<PlanGraph> PreparePlan(const PlanRequest& request, const PlanEnvironment& env);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_H_
