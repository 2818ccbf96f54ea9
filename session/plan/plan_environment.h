#ifndef WEIR_SESSION_PLAN_PLAN_ENVIRONMENT_H_
#define WEIR_SESSION_PLAN_PLAN_ENVIRONMENT_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/plan/place.h"
#include "weir/session/plan/session_options.h"

// What the passes that compile a step know besides the plan itself: the request, and the session.
namespace weir {

struct PlanRequest {
  Outputs feeds, fetches;
  std::vector<Operation> targets;
  // Nodes that earlier calls of a partial run have run. Nodes of this plan have no edges from them;
  // their values that are needed are fed.
  std::vector<const Node*> done = {};
  Connections connections = {};
};

// The context that passes use.
struct PlanEnvironment {
  const Graph& graph;
  // Of the session's graph. Code that reads more of the graph than nodes it already holds takes it
  // shared.
  SharedMutex& graph_mutex;
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

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PLAN_ENVIRONMENT_H_
