// Programs with partitioned variables and device setters, built as make_partitioned_goldens.py
// builds them with TensorFlow. The graphs must agree node by node.

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/device_setter.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/train/optimizers.h"
#include "weir/ops/train/saver.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

void PartitionedUse(Graph& g) {
  const Variable w = GetVariable(g, "w", {7, 3}, {.partitioner = FixedSizePartitioner(3)});
  Identity(w, "a");
  const Output x = Placeholder(g, DT_FLOAT, {2, 7}, "x");
  MatMul(x, w, {.name = "y"});
  {
    const NameScope scope(g, "n");
    Identity(w, "b");
  }
  Variable v, one;
  {
    const VariableScope scope(g, "s");
    v = GetVariable(
        g, "v", {2, 5},
        {.initializer = Zeros(), .dtype = DT_DOUBLE, .partitioner = FixedSizePartitioner(2, 1)});
    one = GetVariable(g, "one", {4}, {.partitioner = FixedSizePartitioner(1)});
  }
  Identity(v, "c");
  Identity(one, "d");
  Identity(one, "e");
  GlobalVariablesInitializer(g);
  ReportUninitializedVariables(g);
}

void PartitionedInitializers(Graph& g) {
  g.set_seed(7);
  {
    const VariableScope scope(g, "s", {.partitioner = FixedSizePartitioner(2)});
    using Scaling = VarianceScalingOptions;
    const std::pair<const char*, Initializer> rows[] = {
        {"zeros", Zeros()},
        {"ones", Ones()},
        {"constant", Constant(0.5)},
        {"uniform", RandomUniformInitializer(-1, 2)},
        {"normal", RandomNormalInitializer(1, 0.5)},
        {"truncated", TruncatedNormalInitializer(0, 0.1f, 3)},
        {"unit_scaling", UniformUnitScaling(1.5)},
        {"scaling", VarianceScaling(
                        {.scale = 2, .mode = Scaling::kFanOut, .distribution = Scaling::kUniform})},
        {"scaling_normal", VarianceScaling()},
        {"glorot_normal", GlorotNormal()},
        {"orthogonal", Orthogonal()},
        {"identity", Identity(2.0f)},
    };
    for (const auto& [name, initializer] : rows) GetVariable(g, name, {5, 4}, initializer);
    GetVariable(g, "scalar", {}, Zeros());
    GetVariable(g, "ints", {4}, {.dtype = DT_INT32});
    GetVariable(g, "tensor",
                {.initializer = Const<float>(g, Shape({2, 2}), {1, 2, 3, 4}, "whole")});
    GetVariable(g, "literal", {3}, Literal{1.0, 2.0, 3.0});
  }
  {
    const VariableScope scope(g, "t", {.partitioner = VariableAxisSizePartitioner(16)});
    GetVariable(g, "axis_size", {8, 4});
  }
  const VariableScope scope(g, "u", {.partitioner = MinMaxVariablePartitioner(4, 1, 16)});
  GetVariable(g, "min_max", {3, 8});
}

void PartitionedWrites(Graph& g) {
  const Variable w =
      GetVariable(g, "w", {5, 2}, {.initializer = Zeros(), .partitioner = FixedSizePartitioner(2)});
  const Output x = Const<float>(g, Shape({5, 2}), {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "x");
  const Outputs split = SplitV(x, {3, 2});
  const std::vector<TensorArg> parts(split.begin(), split.end());
  w.AssignParts(parts);
  w.AssignAddParts(parts, {.use_locking = true});
  w.AssignSubParts(parts);
  w.AssignParts(parts, {.name = "set"});
}

void PartitionedEmbeddingMod(Graph& g) {
  const Variable tables =
      GetVariable(g, "tables", {7, 3}, {.partitioner = FixedSizePartitioner(3)});
  const Output ids = Placeholder(g, DT_INT32, {2, 4}, "ids");
  const Output y = EmbeddingLookup(tables, ids);
  Gradients({y}, tables.parts());
  EmbeddingLookup(tables, Placeholder(g, DT_INT64, {-1}, "more"), {}, "more_rows");
}

void PartitionedEmbeddingDiv(Graph& g) {
  const EmbeddingLookupOptions div = {.partition_strategy = PartitionStrategy::kDiv};
  const Variable tables =
      GetVariable(g, "tables", {7, 3}, {.partitioner = FixedSizePartitioner(3)});
  const Output ids = Placeholder(g, DT_INT64, Shape::UnknownRank(), "ids");
  const Output y = EmbeddingLookup(tables, ids, div);
  Gradients({y}, tables.parts());
  EmbeddingLookup(tables, Const<int32_t>(g, {1, 6, 3}, "known"), div, "known_rows");
}

void PartitionedEmbeddingNorms(Graph& g) {
  const Variable tables =
      GetVariable(g, "tables", {7, 3}, {.partitioner = FixedSizePartitioner(3)});
  const Variable one = GetVariable(g, "one", {7, 3});
  const std::pair<std::string, Shape> rows[] = {{"vector", {4}}, {"unknown", Shape::UnknownRank()}};
  for (const auto& [name, shape] : rows) {
    const Output ids = Placeholder(g, DT_INT32, shape, name + "_ids");
    EmbeddingLookup(tables, ids, {.max_norm = 1.5}, name + "_parts");
    EmbeddingLookup(one, ids, {.max_norm = 1.5}, name + "_one");
  }
  Outputs tensors;
  for (const Shape& shape : {Shape({2, 3}), Shape({-1, 3})})
    tensors.push_back(Placeholder(g, DT_FLOAT, shape, "t"));
  EmbeddingLookup(tensors, Const<int32_t>(g, {0, 1}, "i"),
                  {.partition_strategy = PartitionStrategy::kDiv}, "of_tensors");
  tensors.clear();
  for (const Shape& shape : {Shape({2, -1}), Shape::UnknownRank()})
    tensors.push_back(Placeholder(g, DT_FLOAT, shape, "u"));
  EmbeddingLookup(tensors, Const<int32_t>(g, {0, 1}, "j"), {}, "of_unknown");
}

absl::Status SaveAll(Graph& g, const SaverGraphOptions& options = {}) {
  return BuildSaverGraph(g, NameVariables(GlobalVariables(g)), options).status();
}

void PartitionedAdam(Graph& g) {
  g.set_seed(3);
  Variable w, tables;
  {
    const VariableScope scope(g, "m", {.partitioner = FixedSizePartitioner(2)});
    w = GetVariable(g, "w", {4, 3});
    tables = GetVariable(g, "tables", {5, 3});
  }
  const Output x = Placeholder(g, DT_FLOAT, {4, 3}, "x");
  const Output w_value = Identity(w, "w_value");
  const Output loss = ReduceSum(Tanh(Multiply(x, w_value)));
  const Output rows = EmbeddingLookup(tables, Placeholder(g, DT_INT32, {2}, "ids"));
  Adam(0.1).Minimize(Add(loss, ReduceSum(Tanh(rows))));
  GlobalVariablesInitializer(g);
  EXPECT_TRUE(SaveAll(g).ok());
}

void PartitionedSaver(Graph& g) {
  const Variable w = GetVariable(g, "w", {7, 2}, {.partitioner = FixedSizePartitioner(3)});
  GetVariable(g, "a", {2});
  EXPECT_TRUE(SaveAll(g).ok());
  EXPECT_TRUE(BuildSaverGraph(g, {{"renamed", w}}).ok());
  EXPECT_TRUE(SaveAll(g, {.sharded = true}).ok());
}

void Model(Graph& g) {
  Variable w, b, c, d;
  {
    const VariableScope scope(g, "m");
    w = GetVariable(g, "w", {2});
    b = GetVariable(g, "b", {2}, Zeros());
    {
      const DeviceScope device(g, "/gpu:1");
      c = GetVariable(g, "c", {2}, Zeros());
    }
    {
      const DeviceScope device(g, "/job:other/task:5");
      d = GetVariable(g, "d", {2}, Zeros());
    }
    const DeviceScope device(g, "/job:ps/task:0");
    GetVariable(g, "e", {2}, Zeros());
  }
  const Output x = Placeholder(g, DT_FLOAT, {2}, "x");
  Output y = Add(Multiply(x, w), b);
  {
    const DeviceScope device(g, "/gpu:0");
    y = Multiply(y, c);
  }
  y = Subtract(y, d);
  const Variable step = MakeVariable(g, 0, {.name = "step", .dtype = DT_INT64, .trainable = false});
  Momentum(0.1, 0.9).Minimize(ReduceSum(Tanh(y)), {.global_step = step});
}

void DevicesRoundRobin(Graph& g) {
  {
    const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 2}));
    Model(g);
  }
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 2}));
  GetVariable(g, "parts", {5, 2}, {.partitioner = FixedSizePartitioner(3)});
}

void DevicesCluster(Graph& g) {
  const ClusterSpec cluster = {{"ps", {"a:1", "b:1", "c:1"}}, {"worker", {"d:1"}}};
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_device = "/job:ps/cpu:0",
                                                   .worker_device = "/job:worker/task:3/gpu:0",
                                                   .cluster = cluster}));
  Model(g);
}

void DevicesUnmerged(Graph& g) {
  const DeviceScope setter(
      g, ReplicaDeviceSetter({.ps_tasks = 2, .merge_devices = false, .ps_ops = {"Const"}}));
  Model(g);
}

void DevicesGreedy(Graph& g) {
  const DeviceScope setter(
      g, ReplicaDeviceSetter(
             {.ps_tasks = 3, .ps_strategy = GreedyLoadBalancingStrategy(3, ByteSizeLoad)}));
  GetVariable(g, "big", {100, 10});
  for (int i = 0; i < 5; ++i) {
    GetVariable(g, absl::StrCat("small_", i), {10 * (i + 1)},
                {.dtype = i == 2 ? DT_DOUBLE : DT_FLOAT});
  }
}

const GoldenProgram kPrograms[] = {
    {"partitioned_use", PartitionedUse},
    {"partitioned_initializers", PartitionedInitializers},
    {"partitioned_writes", PartitionedWrites},
    {"partitioned_embedding_mod", PartitionedEmbeddingMod},
    {"partitioned_embedding_div", PartitionedEmbeddingDiv},
    {"partitioned_embedding_norms", PartitionedEmbeddingNorms},
    {"partitioned_adam", PartitionedAdam},
    {"partitioned_saver", PartitionedSaver},
    {"devices_round_robin", DevicesRoundRobin},
    {"devices_cluster", DevicesCluster},
    {"devices_unmerged", DevicesUnmerged},
    {"devices_greedy", DevicesGreedy},
};

INSTANTIATE_TEST_SUITE_P(Partitioned, GoldenTest, GoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
