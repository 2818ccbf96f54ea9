#include "absl/algorithm/container.h"
#include "weir/session/passes/fold_constants.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/infer_shapes.h"
#include "weir/session/plan/make_kernels.h"

// Specialization for the shapes of the feeds: they determine most shapes, and with them the values
// of the small integer ops that compute shapes (Shape, Pack, StridedSlice, BroadcastGradientArgs in
// every gradient). One walk in topological order infers each node's shapes (infer_shapes.h) and, if
// all its inputs are known, evaluates it (fold_constants.h): constant folding is not a separate
// pass but happens to every node whose inputs are constant.
//
// The walk is repeated where loop-carried values do not keep their initial shapes, and again with
// the shapes of values in stacks, arrays and lists: without these, no shapes would be known in a
// loop over an array, nor in a loop that pops the values of another loop's iterations, as gradients
// do.
//
// An error of a shape function is not reported here: the kernel's own check reports it.
namespace weir {

namespace {

class Specializer {
 public:
  Specializer(PlanGraph& plan, absl::Span<const Shape> feed_shapes, const PlanEnvironment& env)
      : plan_(plan),
        env_(env),
        shapes_(plan, feed_shapes),
        folder_(plan, env),
        folds_(env.enabled("constant_folding")) {}

  absl::Status Run() {
    // A value read from an array may be pushed onto a stack.
    constexpr int kMaxTimes = 3;
    WEIR_RETURN_IF_ERROR(WalkToFixpoint());
    for (int time = 1; time < kMaxTimes && shapes_.UpdateContainers(); ++time)
      WEIR_RETURN_IF_ERROR(WalkToFixpoint());
    return MakeEarlyKernels();
  }

 private:
  absl::Status WalkToFixpoint() {
    shapes_.Begin();
    for (int round = 0; round == 0 || !shapes_.AssumptionsHold(round); ++round) {
      for (PlanNode& n : plan_.nodes) WEIR_RETURN_IF_ERROR(Visit(n));
    }
    return absl::OkStatus();
  }

  absl::Status Visit(PlanNode& n) {
    n.constants.clear();
    if (!n.inputs.empty()) n.kernel = Kernel();  // of other shapes, in an earlier round
    shapes_.Visit(n);
    if (n.kind == PlanNode::Kind::kCopy) {
      if (const Tensor* const constant = plan_.ConstantOf(n.inputs[0])) n.constants = {*constant};
    }
    return n.kind == PlanNode::Kind::kOp ? VisitOp(n) : absl::OkStatus();
  }

  absl::Status VisitOp(PlanNode& n) {
    const bool is_unconditional = !n.may_be_dead && n.controls.empty();
    if (folds_ && is_unconditional && ConstantFolder::FoldShape(plan_, n)) return absl::OkStatus();
    n.cost_ns = EstimateCost(plan_, n, env_);
    if (n.inputs.empty() && !n.has_kernel()) {
      WEIR_ASSIGN_OR_RETURN(n.kernel, MakeKernel(plan_, n, env_));
    }
    if (n.kernel.is_constant()) {
      if (is_unconditional) n.constants = {n.kernel.constant()};
    } else if (folds_ && folder_.CanFold(n)) {
      n.set_constants(folder_.Fold(n));
    }
    return absl::OkStatus();
  }

  absl::Status MakeEarlyKernels() {
    for (PlanNode& n : plan_.nodes) {
      if (!n.runs() || n.has_kernel() || !HasEarlyKernel(n, env_.kernels)) continue;
      WEIR_ASSIGN_OR_RETURN(n.kernel, MakeKernel(plan_, n, env_));
    }
    return absl::OkStatus();
  }

  PlanGraph& plan_;
  const PlanEnvironment& env_;
  ShapeInference shapes_;
  ConstantFolder folder_;
  const bool folds_;
};

}  // namespace

absl::Status Specialize(PlanGraph& plan, const PassContext& context) {
  plan.writes_state = absl::c_any_of(
      plan.nodes, [](const PlanNode& n) { return n.def != nullptr && !n.def->writes.empty(); });
  return Specializer(plan, context.feed_shapes, context.env).Run();
}

}  // namespace weir
