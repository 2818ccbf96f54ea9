#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

// Ops about the process that runs the graph.
namespace weir {

void AddProcessOps(OpRegistry* ops) {
  ops->Add(
      OpSpec("Abort")
          .Attr("error_msg: string = ''")
          .Attr("exit_without_error: bool = false")
          .Has(Effect::kChecks)
          .InferShape(NoOutputs)
          .NotDifferentiable()
          .Doc("Fails with ABORTED and `error_msg`. TensorFlow ends the process, which may serve "
               "others."));
  ops->Add(OpSpec("Timestamp")
               .Out("ts: double")
               .Stateful()
               .Has(Effect::kObserves)
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns the time of the run, in seconds since the epoch."));
  ops->Add(OpSpec("Fact")
               .Out("fact: string")
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns a fact about factorials."));
}

}  // namespace weir
