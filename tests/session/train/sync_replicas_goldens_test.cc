// Replicated training as tests/ops/make_sync_replicas_goldens.py builds it with TensorFlow. The
// graphs must agree node by node.

#include "weir/session/train/sync_replicas.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/device_setter.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/train/optimizers.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

// A dense, a sparse and an unused variable, trained by replicas.
void Build(Graph& g, std::unique_ptr<Optimizer> optimizer, SyncReplicasOptions options,
           bool is_chief, std::optional<int> num_tokens = {}) {
  const Variable w = GetVariable(g, "w", {2, 3}, Zeros()),
                 table = GetVariable(g, "table", {5, 2}, Zeros()),
                 unused = GetVariable(g, "unused", {4}, Zeros());
  const Variable step = GetOrCreateGlobalStep(g);
  const Output rows = EmbeddingLookup(table, Const<int32_t>(g, {1, 3}, "ids"));
  const Output dense = ReduceSum(Square(w)), sparse = ReduceSum(rows);
  const Output loss = Add(dense, sparse, "loss");
  if (options.variable_averages != nullptr) options.variables_to_average = {w};
  SyncReplicasOptimizer sync(std::move(optimizer), options);
  const GradsAndVariables grads = sync.ComputeGradients(loss, {.var_list = {{w, table, unused}}});
  sync.ApplyGradients(grads, {.global_step = step});
  sync.MakeSessionHook(is_chief, num_tokens);
}

Graph::DeviceFn Setter(const char* worker) {
  return ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = worker});
}

void Chief(Graph& g) {
  const DeviceScope setter(g, Setter("/job:worker/task:0"));
  Build(g, std::make_unique<GradientDescent>(0.1),
        {.replicas_to_aggregate = 2, .total_num_replicas = 3}, true);
}

void Worker(Graph& g) {
  const DeviceScope setter(g, Setter("/job:worker/task:1"));
  Build(g, std::make_unique<GradientDescent>(0.1), {.replicas_to_aggregate = 2}, false);
}

void Averages(Graph& g) {
  ExponentialMovingAverage averages(0.9);
  Build(g, std::make_unique<Momentum>(0.1, 0.9),
        {.replicas_to_aggregate = 2,
         .total_num_replicas = 2,
         .variable_averages = &averages,
         .name = "together"},
        true, 0);
}

const GoldenProgram kPrograms[] = {
    {"sync_replicas_chief", Chief},
    {"sync_replicas_worker", Worker},
    {"sync_replicas_averages", Averages},
};

INSTANTIATE_TEST_SUITE_P(SyncReplicas, GoldenTest, GoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
