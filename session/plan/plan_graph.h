#ifndef WEIR_SESSION_PLAN_PLAN_GRAPH_H_
#define WEIR_SESSION_PLAN_PLAN_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "weir/core/graph/graph.h"
#include "weir/core/runtime/kernel.h"
#include "weir/session/plan/pass_report.h"

// The intermediate form of a step: the graph that passes (passes.h) transform, before it is lowered
// to a Plan (lowering.h).
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
  // The node that errors name, if it is not `node`: that for which a pass has inserted this one.
  const Node* reported_node = nullptr;
  int fed_output = 0;  // for kFeed: the output of `node` that is fed
  absl::InlinedVector<PlanValue, 3> inputs;
  absl::InlinedVector<int, 1> controls;
  Device* device = nullptr;
  const KernelDef* def = nullptr;  // null unless kind is kOp

  // Known after Specialize.
  absl::InlinedVector<Shape, 1> shapes;  // by output
  // By output, in host memory; empty, or uninitialized tensors where the value is not known.
  std::vector<Tensor> constants;
  // Lowering makes the kernels. Nodes for which passes must know whether the kernel waits or is a
  // constant have theirs from Specialize on (HasEarlyKernel in make_kernels.h).
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
  // True for a constant of the graph, though it may have control inputs or be dead.
  bool is_const() const { return Is("Const"); }
  // True for nodes that only wait: NoOp; or ControlTrigger, which also runs after dead nodes.
  bool is_no_op() const { return Is("NoOp"); }
  bool is_control_trigger() const { return Is("ControlTrigger"); }
  // True for Enter and RefEnter, and for Exit and RefExit, once FindLoops has set the loops.
  bool is_enter() const;
  bool is_exit() const;
  // True if the kernel has been made.
  bool has_kernel() const { return kernel.run() || kernel.is_async() || kernel.is_constant(); }
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

  // ---- changes

  // Inserts a node behind all others and returns its index. SortTopologically restores the order.
  int Insert(PlanNode node);
  // Erases a node that nothing uses any more.
  void Erase(int node);
  // Erases a node that is now a part of another one.
  void Fuse(int node);
  // Marks a node as removed; its edges stay until DropRemoved.
  void MarkRemoved(int node);
  // Erases those of the candidates that nothing uses, users before the nodes that they use.
  void EraseUnused(std::vector<int> candidates);
  // All users of `from` take `to` from now on: nodes, fetches and next values of loop variables.
  void ReplaceAllUses(const PlanValue& from, const PlanValue& to);
  // Calls visit(PlanValue&) for each of these uses of a value, of any node. `visit` may replace it.
  template <class Visit>
  void ForEachUse(Visit&& visit) {
    for (PlanNode& n : nodes) {
      for (PlanValue& v : n.inputs) visit(v);
    }
    for (PlanValue& v : fetches) visit(v);
    for (Carry& c : carries) visit(c.next);
  }
  // Calls visit(int&) for each node that something waits for: control inputs and targets.
  template <class Visit>
  void ForEachWait(Visit&& visit) {
    for (PlanNode& n : nodes) {
      for (int& control : n.controls) visit(control);
    }
    for (int& target : targets) visit(target);
  }

  // ---- queries

  // The number of nodes that are not removed.
  int NumNodes() const;

  // The type of a value, a reference type included.
  DataType TypeOf(const PlanValue& v) const;
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

// Returns true if the node takes values of the previous iteration and depends on nothing else in
// its loop: it is among the first nodes to run in an iteration.
bool StartsIteration(const PlanGraph& plan, const PlanNode& node);

// Moves node order[i] to index i, for all nodes.
void ReorderNodes(PlanGraph& plan, absl::Span<const int> order);
// Restores the topological order after a pass has added edges or nodes. A cycle is INVALID_ARGUMENT
// naming a node on it.
absl::Status SortTopologically(PlanGraph& plan);
// The error for a node that depends on itself by way of a loop.
absl::Status CycleThroughLoop(const PlanNode& n);
// Erases the nodes that are marked as removed; no other node may still use them.
void DropRemoved(PlanGraph& plan);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PLAN_GRAPH_H_
