// Complete training graphs, built as make_training_goldens.py builds them with TensorFlow.

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/train/moving_averages.h"
#include "weir/ops/train/optimizers.h"
#include "weir/ops/train/saver.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

Output Dense(Graph& g, const char* name, const Output& x, int64_t n) {
  const VariableScope scope(g, name);
  const Variable w = GetVariable(g, "w", {x.dim(1), n});
  const Variable b = GetVariable(g, "b", {n}, Zeros());
  return MatMul(x, w) + b;
}

Output Mlp(Graph& g, int64_t batch) {
  const Output x = Placeholder(g, DT_FLOAT, {batch, 6}, "x");
  const Output labels = Placeholder(g, DT_INT32, {batch}, "labels");
  const Output logits = Dense(g, "out", Relu(Dense(g, "hidden", x, 5)), 3);
  return ReduceMean(SparseSoftmaxCrossEntropy(logits, labels));
}

void MlpAdam(Graph& g) {
  const Output loss = Mlp(g, 8);
  Adam(0.01).Minimize(loss, {.global_step = GetOrCreateGlobalStep(g)});
  GlobalVariablesInitializer(g);
}

void MlpMomentumAnyBatch(Graph& g) { Momentum(0.1, 0.9).Minimize(Mlp(g, -1)); }

void SharedScopes(Graph& g) {
  const auto branch = [&g](const Output& x) {
    const VariableScope scope(g, "shared", Reuse::kAuto);
    return Tanh(Dense(g, "layer", x, 4));
  };
  const Output a = Placeholder(g, DT_FLOAT, {2, 4}, "a"), b = Placeholder(g, DT_FLOAT, {2, 4}, "b");
  const Output of_a = branch(a), of_b = branch(b);
  GradientDescent(0.5).Minimize(ReduceSum(Square(of_a - of_b)));
}

void SaverSharded(Graph& g) {
  {
    const DeviceScope device(g, "/job:ps/task:0");
    GetVariable(g, "a", {2});
  }
  {
    const DeviceScope device(g, "/job:ps/task:1");
    GetVariable(g, "b", {3});
    GetVariable(g, "c", {4}, {.dtype = DT_INT32});
  }
  const auto saver = BuildSaverGraph(g, NameVariables(GlobalVariables(g)), {.sharded = true});
  g.Fail(saver.status());
}

void Averaged(Graph& g, const std::optional<Variable>& num_updates) {
  const Variable w = GetVariable(g, "w", {2}, RandomNormalInitializer(0, 1, 3));
  const Variable b = MakeVariable(g, {1.0, 2.0, 3.0}, {.name = "b"});
  const Output of_w = ReduceSum(w * w), of_b = ReduceSum(b * b);
  const Operation train = GradientDescent(0.5).Minimize(of_w + of_b);
  ExponentialMovingAverageOptions options;
  if (num_updates) options.num_updates = *num_updates;
  ExponentialMovingAverage averages(0.9, options);
  {
    const ControlDependencies after(g, {train});
    averages.Apply(g);
  }
  GlobalVariablesInitializer(g);
}

void MovingAverages(Graph& g) { Averaged(g, std::nullopt); }

void MovingAveragesNumUpdates(Graph& g) { Averaged(g, GetOrCreateGlobalStep(g)); }

void EmbeddingAdagrad(Graph& g) {
  const Variable table = GetVariable(g, "table", {10, 4});
  const Output ids = Placeholder(g, DT_INT32, {5}, "ids");
  Adagrad(0.1).Minimize(ReduceSum(EmbeddingLookup(table, ids)));
}

const GoldenProgram kPrograms[] = {
    {"training_mlp_adam", MlpAdam},
    {"training_mlp_momentum_any_batch", MlpMomentumAnyBatch},
    {"training_shared_scopes", SharedScopes},
    {"training_saver_sharded", SaverSharded},
    {"training_embedding_adagrad", EmbeddingAdagrad},
    {"training_moving_averages", MovingAverages},
    {"training_moving_averages_num_updates", MovingAveragesNumUpdates},
};

INSTANTIATE_TEST_SUITE_P(Training, GoldenTest, GoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
