#include "weir/core/graph/scope.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Controls(const Output& o) {
  std::vector<std::string> names;
  for (const Node* n : o.node->control_inputs()) names.push_back(n->name());
  return names;
}

Output Id(const Output& x, absl::string_view name) { return AddOp("Identity", {x}, {}, name); }

TEST(NameScope, NestsAndIsMadeUnique) {
  Graph g(TestOps());
  {
    NameScope a(g, "a");
    EXPECT_EQ(a.name(), "a/");
    NameScope b(g, "b");
    EXPECT_EQ(b.name(), "a/b/");
    EXPECT_EQ(AddNode(g, "NoOp", {})->name(), "a/b/NoOp");
    NameScope root(g, "");
    EXPECT_EQ(AddNode(g, "NoOp", {})->name(), "NoOp");
    NameScope again(g, "a/b/");
    EXPECT_EQ(AddNode(g, "NoOp", {})->name(), "a/b/NoOp_1");
  }
  NameScope second(g, "A");
  EXPECT_EQ(second.name(), "A_1/");
}

TEST(NameScope, BelongsToItsThread) {
  Graph g(TestOps());
  const NameScope a(g, "a");
  const DeviceScope device(g, "/job:a");
  std::thread([&g] {
    EXPECT_EQ(AddNode(g, "NoOp", {})->name(), "NoOp");
    const NameScope b(g, "b");
    const Node* node = AddNode(g, "NoOp", {});
    EXPECT_EQ(node->name(), "b/NoOp");
    EXPECT_EQ(node->device(), "");
  }).join();
  const Node* node = AddNode(g, "NoOp", {});
  EXPECT_EQ(node->name(), "a/NoOp");
  EXPECT_EQ(node->device(), "/job:a");
}

TEST(NameScope, BadCharactersFailTheGraph) {
  Graph g(TestOps());
  { NameScope bad(g, "bad name"); }
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
}

// The expected edges are those of the same graph built by TensorFlow.
TEST(ControlDependencies, EdgesImpliedByDataAreOmitted) {
  Graph g(TestOps());
  const Output c = Placeholder(g, DT_FLOAT, Shape({2, 2}), "c"),
               d = Placeholder(g, DT_FLOAT, Shape(), "d");
  ControlDependencies outer(g, {c});
  const Output a = Id(d, "a"), b = Id(a, "b"), e = Id(b, "e"), f = Id(c, "f");
  EXPECT_THAT(Controls(a), ElementsAre("c"));
  EXPECT_THAT(Controls(b), IsEmpty()) << "reads a, which already has the edge";
  EXPECT_THAT(Controls(e), IsEmpty());
  EXPECT_THAT(Controls(f), IsEmpty()) << "reads c itself";
  ControlDependencies inner(g, {d});
  const Output h = Id(c, "h"), i = Id(a, "i"), j = Id(h, "j");
  EXPECT_THAT(Controls(h), ElementsAre("d"));
  EXPECT_THAT(Controls(i), ElementsAre("d"));
  EXPECT_THAT(Controls(j), IsEmpty());
  EXPECT_THAT(Controls(Output(AddNode(g, "NoOp", {}))), ElementsAre("c", "d"));
  ClearControlDependencies clear(g);
  EXPECT_THAT(Controls(Id(d, "k")), IsEmpty());
}

TEST(ControlDependencies, ARepeatedEdgeIsOneEdge) {
  Graph g(TestOps());
  Node* a = AddNode(g, "NoOp", {}, {}, "a");
  ControlDependencies deps(g, {a, a});
  ControlDependencies more(g, {a});
  EXPECT_THAT(Controls(NodeBuilder(g, "NoOp").Control(a).Build()), ElementsAre("a"));
}

TEST(DeviceScope, InnerWinsFieldByField) {
  Graph g(TestOps());
  DeviceScope job(g, "/job:worker/cpu:0");
  EXPECT_EQ(AddNode(g, "NoOp", {})->device(), "/job:worker/device:CPU:0");
  {
    DeviceScope gpu(g, "/gpu:1");
    EXPECT_EQ(AddNode(g, "NoOp", {})->device(), "/job:worker/device:GPU:1");
    DeviceScope none(g, "");
    EXPECT_EQ(AddNode(g, "NoOp", {})->device(), "");
  }
  EXPECT_EQ(NodeBuilder(g, "NoOp").Device("/cpu:3").Build()->device(), "/cpu:3");
}

TEST(DeviceScope, FunctionsSeeTheNode) {
  Graph g(TestOps());
  DeviceScope by_op(g, [](const Node& n) { return n.op_name() == "NoOp" ? "/job:ps/task:1" : ""; });
  DeviceScope cpu(g, "/cpu:0");
  EXPECT_EQ(AddNode(g, "NoOp", {})->device(), "/job:ps/task:1/device:CPU:0");
  EXPECT_EQ(Placeholder(g, DT_FLOAT, Shape()).node->device(), "/device:CPU:0");
}

TEST(DeviceScope, InvalidDeviceNameFailsTheGraph) {
  Graph g(TestOps());
  DeviceScope bad(g, "/job:");
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(g.status().message(), HasSubstr("'/job:'"));
}

TEST(ColocateWith, SetsDeviceAndMark) {
  Graph g(TestOps());
  Node *a = nullptr, *b = nullptr;
  {
    DeviceScope cpu(g, "/cpu:0");
    a = AddNode(g, "NoOp", {}, {}, "a");
  }
  {
    DeviceScope gpu(g, "/gpu:0");
    ColocateWith with(g, a);
    b = AddNode(g, "NoOp", {}, {}, "b");
  }
  EXPECT_EQ(b->device(), "/device:CPU:0");
  EXPECT_THAT(b->colocations(), ElementsAre("a"));
  ColocateWith with_b(g, b);
  Node* c = AddNode(g, "NoOp", {}, {}, "c");
  EXPECT_THAT(c->colocations(), ElementsAre("a")) << "colocation is transitive";
}

TEST(ColocateWith, MarksAreSortedAndUnique) {
  Graph g(TestOps());
  Node *b = AddNode(g, "NoOp", {}, {}, "b"), *a = AddNode(g, "NoOp", {}, {}, "a");
  ColocateWith with_b(g, b);
  Node* n = NodeBuilder(g, "NoOp").ColocateWith(a).ColocateWith(b).Build();
  EXPECT_THAT(n->attr<std::vector<std::string>>("_class"), ElementsAre("loc:@a", "loc:@b"));
}

TEST(AttrScope, InnerWinsAndTheCallerWinsOverBoth) {
  Graph g(TestOps());
  AttrScope outer(g, "_mark", 1);
  AttrScope inner(g, "_mark", 2);
  EXPECT_EQ(AddNode(g, "NoOp", {})->attr<int64_t>("_mark"), 2);
  EXPECT_EQ(AddNode(g, "NoOp", {}, {{"_mark", 3}})->attr<int64_t>("_mark"), 3);
}

TEST(ContainerScope, FillsAnEmptyContainerOnly) {
  Graph g(TestOps());
  ContainerScope scope(g, "box");
  const auto queue = [&g](absl::string_view container) {
    return AddNode(g, "FIFOQueueV2", {},
                   {{"component_types", DataTypes{DT_FLOAT}}, {"container", container}})
        ->attr<std::string>("container");
  };
  EXPECT_EQ(queue(""), "box");
  EXPECT_EQ(queue("mine"), "mine");
  EXPECT_EQ(AddNode(g, "NoOp", {})->FindAttr("container"), nullptr);
}

TEST(Verbatim, IgnoresControlsDevicesAndColocations) {
  Graph g(TestOps());
  Node* a = AddNode(g, "NoOp", {}, {}, "a");
  DeviceScope gpu(g, "/gpu:0");
  ControlDependencies deps(g, {a});
  Node* n = NodeBuilder(g, "NoOp").Verbatim().Build();
  EXPECT_EQ(n->device(), "");
  EXPECT_TRUE(n->control_inputs().empty());
}

TEST(DeviceName, ParsesFullAndShortForms) {
  const auto text = [](absl::string_view name) {
    const auto parsed = DeviceName::Parse(name);
    return parsed.ok() ? parsed->ToString() : parsed.status().ToString();
  };
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("/cpu:0"), "/device:CPU:0");
  EXPECT_EQ(text("GPU:1"), "/device:GPU:1");
  EXPECT_EQ(text("gpu"), "/device:GPU:*");
  EXPECT_EQ(text("/job:ps/task:3/device:CPU:*"), "/job:ps/task:3/device:CPU:*");
  EXPECT_EQ(text("/job:a_1/replica:0/task:1/device:GPU:0"),
            "/job:a_1/replica:0/task:1/device:GPU:0");
  EXPECT_EQ(text("/job:*/replica:*/task:*/device:*:*"), "");
}

TEST(DeviceName, RejectsOtherText) {
  for (const char* name : {"/job:", "/job:a b", "/task:x", "/task:-1", "//", "/cpu:0/", "cpu:1:2",
                           "/device:", "/task:99999999999", "\xff", "/cpu:0/cpu:1",
                           "/job:a/cpu:0/gpu:0", "/device:GPU:0/cpu"}) {
    EXPECT_EQ(DeviceName::Parse(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(DeviceName, MatchesUnlessPartsContradict) {
  const DeviceName gpu = *DeviceName::Parse("/gpu:0"),
                   worker = *DeviceName::Parse("/job:worker/gpu:0");
  EXPECT_TRUE(gpu.Matches(worker));
  EXPECT_TRUE(DeviceName().Matches(worker));
  EXPECT_FALSE(DeviceName::Parse("/gpu:1")->Matches(worker));
  EXPECT_FALSE(DeviceName::Parse("/job:ps")->Matches(worker));
}

}  // namespace
}  // namespace weir
