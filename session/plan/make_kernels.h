#ifndef WEIR_SESSION_PLAN_MAKE_KERNELS_H_
#define WEIR_SESSION_PLAN_MAKE_KERNELS_H_

#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"

// The kernels of a plan's nodes. Lowering makes the kernel of each node that runs (MakeKernels),
// for the inputs that it has after all passes. Where passes must know whether a kernel waits, or
// what constant it returns, Specialize makes it earlier, and a pass that changes such a node's
// inputs discards the kernel.
//
// A kernel is told which of its inputs are step-invariant, so that it may cache what it derives
// from them, such as a filter packed for oneDNN. The memory of a constant or a variable is
// copy-on-write: its owner does not write to it while it is shared. Fed memory may be overwritten
// between steps. In a step that writes variables they do not count as step-invariant: such a step
// mostly trains, and what it derives from a weight is used once. Variables that are passed to a
// function count if the body writes none.
namespace weir {

// True for an op that is a function, or has an attribute that is one.
bool CallsFunctions(const OpSpec& op);

// True for a node whose kernel comes from a registry that the user gave to the session.
bool HasCustomKernel(const PlanNode& n, const KernelRegistry& kernels);

// True for nodes whose kernel Specialize makes: those with state, functions, handles or references,
// without inputs, or with a custom kernel. All others have synchronous kernels that only compute.
bool HasEarlyKernel(const PlanNode& n, const KernelRegistry& kernels);

// The shapes of a node's inputs as far as they are known, as kernels are told.
absl::InlinedVector<Shape, 4> InputShapesOf(const PlanGraph& plan, const PlanNode& n);

// Makes the kernel of a node on the node's device. Errors name the node. `used_outputs`:
// KernelInit::used_outputs.
absl::StatusOr<Kernel> MakeKernel(const PlanGraph& plan, const PlanNode& n,
                                  const PlanEnvironment& env,
                                  absl::Span<const bool> used_outputs = {});
// Makes the CPU's kernel of a node of a graph, without knowledge of its inputs.
absl::StatusOr<Kernel> MakeHostKernel(const KernelDef& def, const Node& node,
                                      absl::Span<const Shape> input_shapes,
                                      const PlanEnvironment& env);

// Estimates the nanoseconds that a run of the node takes on one thread; on a device with a stream,
// those that its launch takes. The shapes of the outputs must be known already.
double EstimateCost(const PlanGraph& plan, const PlanNode& n, const PlanEnvironment& env);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_MAKE_KERNELS_H_
