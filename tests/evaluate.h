#ifndef WEIR_TESTS_EVALUATE_H_
#define WEIR_TESTS_EVALUATE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/runtime/resource.h"
#include "weir/core/tensor/tensor.h"

namespace weir {

// Computes `fetches` with the kernels of the CPU, one node after the other in an order that
// respects data and control edges: no session, no plan, no optimization. For tests of ops, kernels
// and gradients, and as the slow truth that sessions are compared with. Loops and branches not
// taken (Switch, Merge, NextIteration) are beyond it.
//
// A fed output replaces the node that makes it. A reference that goes to an input which wants a
// value is read on the way. State lives in `resources`, so that one call can initialize a variable
// and the next one read it; null: in a map that is gone when the call returns. Errors have the
// node's name and op in front, as a session's have.
absl::StatusOr<Tensors> Evaluate(const Graph& graph,
                                 const std::vector<std::pair<Output, Tensor>>& feeds,
                                 const Outputs& fetches, ResourceMap* resources = nullptr);
// Without feeds.
absl::StatusOr<Tensors> Evaluate(const Graph& graph, const Outputs& fetches,
                                 ResourceMap* resources = nullptr);
// Runs operations for their effects.
absl::Status EvaluateTargets(const Graph& graph, const std::vector<Operation>& targets,
                             ResourceMap* resources);

// One node of its own: all inputs are fed, and their shapes unknown to the graph, so that only the
// kernel can object to them. The first `list` inputs make up a list argument. INTERNAL if the graph
// refuses the node. An op that new graphs reject is in a graph of the last version that does not.
absl::StatusOr<Tensors> RunFed(absl::string_view op, const Tensors& inputs, const Attrs& attrs = {},
                               size_t list = 0);

// From now on every node for which `kernels` has one for the device's place runs on this device,
// for a whole program (tests/gpu/evaluate_on_gpu.cc). Between nodes plain values lie on the host;
// variables go where the node is that wants them. Null: on the CPU again.
void EvaluateOn(Device* device, const KernelRegistry* kernels);
// On the CPU whatever EvaluateOn has said, for as long as it lives.
class EvaluateOnCpu {
 public:
  EvaluateOnCpu();
  ~EvaluateOnCpu();
  EvaluateOnCpu(const EvaluateOnCpu&) = delete;
  EvaluateOnCpu& operator=(const EvaluateOnCpu&) = delete;

 private:
  Device* const device_;  // that of EvaluateOn
};
// How many nodes of each op have run there.
const std::map<std::string, int64_t>& EvaluatedThere();

}  // namespace weir

#endif  // WEIR_TESTS_EVALUATE_H_
