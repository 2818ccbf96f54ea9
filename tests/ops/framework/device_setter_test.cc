#include "weir/ops/framework/device_setter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the devices of variables that are created one after the other.
std::vector<std::string> Places(Graph& g, const std::vector<Shape>& shapes) {
  std::vector<std::string> places;
  for (const Shape& shape : shapes) {
    const Variable v = GetVariable(g, absl::StrCat("v", g.num_nodes()), shape, Zeros());
    places.push_back(v.valid() ? v.device() : "none");
  }
  return places;
}

class DeviceSetter : public testing::TestWithParam<bool> {
 protected:
  DeviceSetter() : g({.use_resource = GetParam()}) {}
  Graph g;
};
INSTANTIATE_TEST_SUITE_P(Kinds, DeviceSetter, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Ref"; });

TEST_P(DeviceSetter, PlacesVariablesOnServersInTurnAndTheRestOnTheWorker) {
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 3}));
  EXPECT_THAT(Places(g, {{1}, {1}, {1}, {1}}),
              ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:2", "/job:ps/task:0"));
  EXPECT_EQ(Const(g, 1.0f).node->device(), "/job:worker");
}

TEST_P(DeviceSetter, PlacesPartsOfAVariableOnServersInTurn) {
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 2}));
  const Variable w = GetVariable(g, "w", {6}, {.partitioner = FixedSizePartitioner(3)});
  EXPECT_EQ(w.parts()[0].device(), "/job:ps/task:0");
  EXPECT_EQ(w.parts()[1].device(), "/job:ps/task:1");
  EXPECT_EQ(w.parts()[2].device(), "/job:ps/task:0");
}

TEST_P(DeviceSetter, ScopesOfOneSetterShareItsState) {
  const Graph::DeviceFn fn = ReplicaDeviceSetter({.ps_tasks = 2});
  for (const char* place : {"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"}) {
    const DeviceScope setter(g, fn);
    EXPECT_THAT(Places(g, {{1}}), ElementsAre(place));
  }
}

TEST_P(DeviceSetter, InnerScopesMergeAndAnExplicitJobWins) {
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 2}));
  {
    const DeviceScope gpu(g, "/gpu:1");
    EXPECT_THAT(Places(g, {{1}}), ElementsAre("/job:ps/task:0/device:GPU:1"));
    EXPECT_EQ(Const(g, 1.0f).node->device(), "/job:worker/device:GPU:1");
  }
  {
    const DeviceScope other(g, "/job:other");
    EXPECT_THAT(Places(g, {{1}, {1}}), ElementsAre("/job:other", "/job:other"));
  }
  {
    const DeviceScope task(g, "/job:ps/task:7");
    EXPECT_THAT(Places(g, {{1}}), ElementsAre("/job:ps/task:7")) << "but the turn is taken";
  }
  EXPECT_THAT(Places(g, {{1}}), ElementsAre("/job:ps/task:0"));
}

TEST_P(DeviceSetter, WithoutMergingPlacedNodesAreUnchanged) {
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 2, .merge_devices = false}));
  const DeviceScope gpu(g, "/gpu:1");
  EXPECT_THAT(Places(g, {{1}}), ElementsAre("/device:GPU:1"));
}

TEST_P(DeviceSetter, TasksAreCountedInTheCluster) {
  const ClusterSpec cluster = {{"servers", {"a:1", "b:1"}}, {"worker", {"c:1"}}};
  {
    const DeviceScope setter(
        g, ReplicaDeviceSetter({.ps_tasks = 9, .ps_device = "/job:servers", .cluster = cluster}));
    EXPECT_THAT(Places(g, {{1}, {1}, {1}}),
                ElementsAre("/job:servers/task:0", "/job:servers/task:1", "/job:servers/task:0"));
  }
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 9, .cluster = cluster}));
  EXPECT_THAT(Places(g, {{1}}), ElementsAre("")) << "no job called ps";
}

TEST_P(DeviceSetter, WithoutServersNothingIsPlaced) {
  const DeviceScope cpu(g, "/cpu:0");
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 0}));
  EXPECT_THAT(Places(g, {{1}}), ElementsAre("/device:CPU:0"));
}

TEST_P(DeviceSetter, DevicesMayBeEmpty) {
  {
    const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = ""}));
    EXPECT_THAT(Places(g, {{1}}), ElementsAre("/job:ps/task:0"));
    EXPECT_EQ(Const(g, 1.0f).node->device(), "");
  }
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 2, .ps_device = ""}));
  EXPECT_THAT(Places(g, {{1}}), ElementsAre("/job:worker"));
}

TEST_P(DeviceSetter, OtherOpsMayBePlacedOnServers) {
  const DeviceScope setter(g, ReplicaDeviceSetter({.ps_tasks = 2, .ps_ops = {"Const"}}));
  EXPECT_EQ(Const(g, 1.0f).node->device(), "/job:ps/task:0");
  EXPECT_THAT(Places(g, {{1}}), ElementsAre("/job:worker"));
}

TEST_P(DeviceSetter, GreedyStrategyPicksTheLeastLoadedServer) {
  const DeviceScope setter(
      g, ReplicaDeviceSetter(
             {.ps_tasks = 2, .ps_strategy = GreedyLoadBalancingStrategy(2, ByteSizeLoad)}));
  // Loads in bytes: 40 | 4 8 16, then 28 < 40: 20 | then 40 < 48.
  EXPECT_THAT(Places(g, {{10}, {1}, {2}, {2, 2}, {5}, {1}}),
              ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1",
                          "/job:ps/task:1", "/job:ps/task:0"));
}

TEST_P(DeviceSetter, LoadOfAnUnknownShapeIsInvalid) {
  const DeviceScope setter(
      g, ReplicaDeviceSetter(
             {.ps_tasks = 2, .ps_strategy = GreedyLoadBalancingStrategy(2, ByteSizeLoad)}));
  const Output x = Placeholder(g, DT_FLOAT, Shape::UnknownRank());
  MakeVariable(g, x, {.name = "w", .validate_shape = false});
  EXPECT_TRUE(absl::IsInvalidArgument(g.status()));
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("w"));
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("fully defined"));
}

TEST_P(DeviceSetter, InvalidDevicesAndNegativeTasksAreErrors) {
  for (const ReplicaDeviceSetterOptions& options :
       {ReplicaDeviceSetterOptions{.ps_tasks = 1, .ps_device = "/jobs:ps"},
        ReplicaDeviceSetterOptions{.ps_device = "/jobs:ps", .cluster = ClusterSpec()},
        ReplicaDeviceSetterOptions{.ps_tasks = 1, .worker_device = "/jobs:w"},
        ReplicaDeviceSetterOptions{.ps_tasks = 1, .ps_strategy = [](const Node&) { return -1; }}}) {
    const DeviceScope setter(g, ReplicaDeviceSetter(options));
    Places(g, {{1}});
    Const(g, 1.0f);
    const absl::Status status = g.TakeStatus();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

}  // namespace
}  // namespace weir
