// Steps cut into parts, which sessions run that act as tasks and share one rendezvous.

#include "weir/rpc/cluster/partition.h"

#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/session.h"

namespace weir::rpc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kPs[] = "/job:ps/task:0", kOther[] = "/job:ps/task:1";

std::vector<SessionTask> Tasks() {
  std::vector<SessionTask> tasks;
  uint64_t incarnation = 0xabc;
  for (const TaskName& name : {TaskName{"worker", 0}, TaskName{"ps", 0}, TaskName{"ps", 1}}) {
    tasks.push_back(
        {name, {{absl::StrCat(name.ToString(), "/device:CPU:0"), "CPU", "", 0, ++incarnation}}});
  }
  return tasks;
}

absl::StatusOr<StepPartition> Cut(const Graph& g, const PlanRequest& request, bool soft = true) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  TaskPlacement placement(g, Tasks(), soft);
  WEIR_RETURN_IF_ERROR(placement.PlaceNewNodes());
  return PartitionStep(request, g, placement);
}

std::string On(const Graph& g, const std::string& device) {
  TaskPlacement placement(g, Tasks(), true);
  EXPECT_TRUE(placement.PlaceNewNodes().ok());
  return placement.Of(*g.FindNode(device)).device;
}

const proto::GraphDef* PartOf(const StepPartition& partition, int task) {
  for (const StepPart& part : partition.parts) {
    if (part.task == task) return part.graph.get();
  }
  return nullptr;
}

int Count(const proto::GraphDef* part, const std::string& op) {
  int count = 0;
  for (const proto::NodeDef& node : part->node()) count += node.op() == op ? 1 : 0;
  return count;
}

const proto::NodeDef& Find(const proto::GraphDef* part, const std::string& name) {
  for (const proto::NodeDef& node : part->node()) {
    if (node.name() == name) return node;
  }
  ADD_FAILURE() << "no node " << name;
  return proto::NodeDef::default_instance();
}

// Tasks, each of which keeps the state of its variables from step to step.
class ActedTasks {
 public:
  // Runs the parts at the same time, and returns the fetched values.
  absl::StatusOr<Tensors> Run(const StepPartition& partition, const Tensors& feeds) {
    std::vector<std::thread> threads;
    std::vector<absl::Status> ended(partition.parts.size());
    LocalRendezvous rendezvous;
    for (const FedValue& fed : partition.feeds)
      WEIR_RETURN_IF_ERROR(rendezvous.Send(fed.key, {feeds[fed.feed], false}));
    for (size_t i = 0; i < partition.parts.size(); ++i) {
      threads.emplace_back([&, i] {
        ended[i] = RunPart(partition.parts[i], rendezvous);
        if (!ended[i].ok()) rendezvous.Abort(ended[i]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : ended) WEIR_RETURN_IF_ERROR(status);
    Tensors values;
    for (const RendezvousKey& key : partition.fetches) {
      rendezvous.Receive(key, nullptr, [&](absl::StatusOr<SentValue> value) {
        ASSERT_TRUE(value.ok()) << value.status();
        values.push_back(value->is_dead ? Tensor() : value->value);
      });
    }
    EXPECT_EQ(values.size(), partition.fetches.size());
    return values;
  }

 private:
  absl::Status RunPart(const StepPart& part, Rendezvous& rendezvous) {
    Graph g;
    WEIR_RETURN_IF_ERROR(ImportGraphDef(g, *part.graph).status());
    SessionOptions options;
    options.task = Tasks()[part.task].name.ToString();
    options.resources = resources_[part.task];
    options.allow_soft_placement = false;
    WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, std::move(options)));
    std::vector<Operation> all;
    for (const auto& node : g.nodes()) all.emplace_back(node.get());
    RunOptions run;
    run.rendezvous = &rendezvous;
    run.timeout = std::chrono::seconds(60);
    return session.Run(Feeds(), Outputs(), all, run).status();
  }

  const std::shared_ptr<ResourceMap> resources_[3] = {std::make_shared<ResourceMap>(),
                                                      std::make_shared<ResourceMap>(),
                                                      std::make_shared<ResourceMap>()};
};

// The step in parts has the values of the step in one session.
void ExpectSame(const Graph& g, const Outputs& feeds, const Outputs& fetches,
                const std::vector<Tensors>& steps) {
  Graph whole;  // the graph without devices
  proto::GraphDef def;
  ExportGraphDef(g, &def);
  for (proto::NodeDef& node : *def.mutable_node()) node.clear_device();
  ASSERT_TRUE(ImportGraphDef(whole, def).ok());
  Session reference = *Session::Create(whole);
  const auto partition = Cut(g, {.feeds = feeds, .fetches = fetches});
  ASSERT_TRUE(partition.ok()) << partition.status();
  ActedTasks tasks;
  for (const Tensors& values : steps) {
    std::vector<std::pair<std::string, Tensor>> fed;
    for (size_t i = 0; i < feeds.size(); ++i) fed.emplace_back(feeds[i].name(), values[i]);
    std::vector<std::string> names;
    for (const Output& fetch : fetches) names.push_back(fetch.name());
    const auto expected = reference.Run(fed, names, {});
    const auto got = tasks.Run(*partition, values);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < names.size(); ++i)
      EXPECT_TRUE(IdenticalTensors((*got)[i], (*expected)[i])) << names[i];
  }
}

Output Handle(Graph& g, absl::string_view name) {
  return Output(
      AddNode(g, "VarHandleOp", {},
              {{"dtype", DT_FLOAT}, {"shape", Shape()}, {"shared_name", std::string(name)}}, name));
}
Output Reference(Graph& g, absl::string_view name) {
  return Output(AddNode(g, "VariableV2", {}, {{"dtype", DT_FLOAT}, {"shape", Shape()}}, name));
}
Output Read(const Output& handle, absl::string_view name = "read") {
  return AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}}, name);
}

// ---- placement

TEST(TaskPlacement, OwnTaskByDefault) {
  Graph g;
  Const(g, 1.f, "a");
  {
    const DeviceScope on(g, "/job:ps");
    Const(g, 1.f, "first_of_job");
  }
  {
    const DeviceScope on(g, "/job:ps/task:1/device:GPU:3");
    Const(g, 1.f, "soft");
  }
  {
    const DeviceScope on(g, "/cpu:0");
    Const(g, 1.f, "cpu");
  }
  EXPECT_EQ(On(g, "a"), "/job:worker/replica:0/task:0");
  EXPECT_EQ(On(g, "first_of_job"), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(On(g, "soft"), "/job:ps/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(On(g, "cpu"), "/job:worker/replica:0/task:0/device:CPU:0");
}

TEST(TaskPlacement, UsersOfAVariableFollowIt) {
  Graph g;
  Output handle, ref;
  {
    const DeviceScope on(g, kOther);
    handle = Handle(g, "handle");
    ref = Reference(g, "ref");
  }
  Read(handle);
  AddOp("Assign", {ref, Const(g, 1.f)}, {}, "assign");
  AddOp("Neg", {ref}, {}, "reader");
  NodeBuilder(g, "NoOp").Name("beside").ColocateWith(g.FindNode("ref")).Device("").Build();
  for (const char* name : {"read", "assign", "beside"})
    EXPECT_EQ(On(g, name), "/job:ps/replica:0/task:1/device:CPU:0") << name;
  EXPECT_EQ(On(g, "reader"), "/job:worker/replica:0/task:0");  // takes the value
}

TEST(TaskPlacement, NamesTheDevicesThatThereAre) {
  Graph g;
  const DeviceScope on(g, "/job:ps/task:7");
  const Output lost = Const(g, 1.f, "lost");
  const absl::Status status = Cut(g, {.fetches = {lost}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("Cannot assign a device for operation lost"));
  EXPECT_THAT(status.message(), HasSubstr("/job:ps/task:7"));
  EXPECT_THAT(status.message(), HasSubstr("/job:ps/replica:0/task:1/device:CPU:0, /job:worker"));
}

TEST(TaskPlacement, AResourceDecidesForItsUsers) {
  Graph g;
  Output handle;
  {
    const DeviceScope on(g, kPs);
    handle = Handle(g, "v");
  }
  const DeviceScope on(g, kOther);
  Read(handle);
  EXPECT_EQ(On(g, "read"), "/job:ps/replica:0/task:0/device:CPU:0");
}

TEST(TaskPlacement, RefusesResourcesOfTwoTasksInOneNode) {
  Graph g;
  Outputs handles;
  for (const char* device : {kPs, kOther}) {
    const DeviceScope on(g, device);
    handles.push_back(Handle(g, absl::StrCat("v", handles.size())));
  }
  NodeBuilder(g, "IdentityN").Name("both").InputList(handles).Build();
  TaskPlacement placement(g, Tasks(), true);
  const absl::Status status = placement.PlaceNewNodes();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("v0 (VarHandleOp)"));
  EXPECT_THAT(status.message(), HasSubstr("v1 (VarHandleOp)"));
}

TEST(TaskPlacement, NewNodesFollowWhatIsPlaced) {
  Graph g;
  const Output handle = Handle(g, "v");
  TaskPlacement placement(g, Tasks(), true);
  ASSERT_TRUE(placement.PlaceNewNodes().ok());
  Read(handle);
  ASSERT_TRUE(placement.PlaceNewNodes().ok());
  EXPECT_EQ(placement.Of(*g.FindNode("read")).task, 0);
  {
    const DeviceScope on(g, kPs);
    Read(handle, "elsewhere");
  }
  ASSERT_TRUE(placement.PlaceNewNodes().ok());
  EXPECT_EQ(placement.Of(*g.FindNode("elsewhere")).task, 0);
  NodeBuilder(g, "NoOp").Name("beside").ColocateWith(g.FindNode("v")).Device(kPs).Build();
  EXPECT_TRUE(absl::IsInvalidArgument(placement.PlaceNewNodes()));
}

// ---- the cut

TEST(Partition, ConsumersOnATaskShareAPair) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({2}), "x");
  const Output big = Square(x, "big");
  Output y, z;
  {
    const DeviceScope on(g, kPs);
    y = Multiply(big, big, "y");
    z = Add(big, x, "z");
  }
  const auto cut = Cut(g, {.feeds = {x}, .fetches = {y, z}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  ASSERT_THAT(cut->parts, SizeIs(2));
  const proto::GraphDef *own = PartOf(*cut, 0), *ps = PartOf(*cut, 1);
  EXPECT_EQ(Count(own, "_Send"), 1);
  EXPECT_EQ(Count(own, "_Recv"), 1);  // the feed
  EXPECT_EQ(Count(ps, "_Recv"), 2);   // big, and the feed
  EXPECT_EQ(Count(ps, "_Send"), 2);   // the fetches
  const proto::NodeDef& mul = Find(ps, "y");
  EXPECT_EQ(mul.device(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(mul.input(0), mul.input(1));
  const proto::NodeDef& recv = Find(ps, mul.input(0));
  EXPECT_EQ(recv.op(), "_Recv");
  EXPECT_EQ(recv.attr().at("tensor_type").type(), proto::DT_FLOAT);
  EXPECT_EQ(recv.attr().at("send_device").s(), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(recv.attr().at("recv_device").s(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(recv.attr().at("send_device_incarnation").i(), 0xabd);
  EXPECT_FALSE(recv.attr().at("client_terminated").b());
  EXPECT_EQ(cut->feeds.size(), 2u);
  ASSERT_THAT(cut->fetches, SizeIs(2));
  const absl::StatusOr<RendezvousKey> key = RendezvousKey::Parse(cut->fetches[1].text);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key->incarnation, 0xabeu);
  EXPECT_EQ(key->receive_device, "/job:worker/replica:0/task:0/device:CPU:0");
}

// TensorFlow's tasks keep the kernels of stateful nodes by name.
TEST(Partition, NodesOfOneNameInTwoStepsHaveTheSameAttributes) {
  Graph g;
  Output x, y;
  {
    const DeviceScope on(g, kPs);
    x = Square(Placeholder(g, DT_FLOAT, Shape({2}), "p"), "x");
  }
  y = Square(x, "y");
  const Outputs feeds = {g.FindNode("p")->output()};
  const auto one = Cut(g, {.feeds = feeds, .fetches = {y}}),
             other = Cut(g, {.feeds = feeds, .fetches = {x, y}});
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  for (const proto::NodeDef& node : PartOf(*one, 1)->node()) {
    for (const proto::NodeDef& same : PartOf(*other, 1)->node()) {
      if (node.name() != same.name() || !node.attr().contains("recv_device")) continue;
      EXPECT_EQ(node.attr().at("tensor_name").s(), same.attr().at("tensor_name").s());
      EXPECT_EQ(node.attr().at("recv_device").s(), same.attr().at("recv_device").s());
    }
  }
}

TEST(Partition, PrunesWhatTheStepDoesNotNeed) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x"), y = Square(x, "y");
  {
    const DeviceScope on(g, kPs);
    Square(y, "unused");
  }
  const auto cut = Cut(g, {.feeds = {y}, .fetches = {Square(y, "z")}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  ASSERT_THAT(cut->parts, SizeIs(1));
  EXPECT_EQ(cut->parts[0].graph->node_size(), 3);  // _Recv, z, _Send
}

TEST(Partition, ControlEdgesCrossAsEmptyConstants) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  Operation written;
  Output handle, after;
  {
    const DeviceScope on(g, kPs);
    handle = Handle(g, "v");
    written = Operation(AddNode("AssignVariableOp", {handle, x}, {}, "write"));
  }
  {
    const ControlDependencies wait(g, {written});
    const DeviceScope on(g, kOther);
    after = Identity(Const(g, 5.f, "c"), "after");
  }
  const auto cut = Cut(g, {.feeds = {x}, .fetches = {after}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  const proto::GraphDef *ps = PartOf(*cut, 1), *other = PartOf(*cut, 2);
  int signals = 0;
  for (const proto::NodeDef& node : ps->node()) {
    if (node.op() != "Const") continue;
    EXPECT_THAT(node.input(), ElementsAre("^write"));
    ++signals;
  }
  EXPECT_EQ(signals, 1);
  EXPECT_EQ(Count(other, "_Recv"), 1);
  ExpectSame(g, {x}, {after}, {{Tensor::Scalar(1.f)}});
}

// A reader of a reference sees what was assigned before it, on whatever task it is.
TEST(Partition, AReferenceIsSentAfterWhatItsReaderWaitsFor) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  Output v;
  Operation write;
  {
    const DeviceScope on(g, kPs);
    v = Reference(g, "v");
    write = Operation(AddNode("Assign", {v, x}, {}, "write"));
  }
  Output read;
  {
    const ControlDependencies wait(g, {write});
    read = Identity(v, "read");
  }
  ExpectSame(g, {x}, {read}, {{Tensor::Scalar(1.f)}, {Tensor::Scalar(2.f)}, {Tensor::Scalar(3.f)}});
}

TEST(Partition, SmallConstantsAreCopied) {
  Graph g;
  Const(g, 1.f, "a");
  Output c;
  {
    const ColocateWith with(g, g.FindNode("a"));
    c = Const(g, std::vector<float>{1.f, 2.f}, "c");
  }
  const Output large = Const(g, std::vector<float>(1000, 1.f), "large");
  const DeviceScope on(g, kPs);
  const Output y = Add(ReduceSum(large), c, "y");
  const auto cut = Cut(g, {.fetches = {y}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(Count(PartOf(*cut, 0), "_Send"), 1);
  const proto::NodeDef& copy = Find(PartOf(*cut, 1), "c");
  EXPECT_EQ(copy.device(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_FALSE(copy.attr().contains("_class"));  // the other node is not there
}

TEST(Partition, FunctionsComeWithTheirCallers) {
  Graph g, body, inner;
  const Output a = Placeholder(inner, DT_FLOAT, Shape());
  ASSERT_TRUE(DefineFunction(body, "inner", inner, {a}, {a * 2.f}).ok());
  const Output b = Placeholder(body, DT_FLOAT, Shape());
  const auto call = [](const Output& x, const std::string& f) {
    return AddOp("PartitionedCall", {std::vector<Output>{x}},
                 {{"Tout", DataTypes{DT_FLOAT}}, {"f", FunctionRef{f}}});
  };
  const absl::Status defined = DefineFunction(g, "outer", body, {b}, {call(b, "inner")});
  ASSERT_TRUE(defined.ok()) << defined;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  Output y;
  {
    const DeviceScope on(g, kPs);
    y = call(x, "outer");
  }
  const Output z = Square(y, "z");
  const auto cut = Cut(g, {.feeds = {x}, .fetches = {z}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(PartOf(*cut, 0)->library().function_size(), 0);
  EXPECT_EQ(PartOf(*cut, 1)->library().function_size(), 2);
  ExpectSame(g, {x}, {z}, {{Tensor::Scalar(4.f)}});
}

TEST(Partition, VariantsStayWithTheirUsersOrCross) {
  Graph g;
  const Output list =
      AddOp("EmptyTensorList", {Const(g, -1), Const(g, -1)}, {{"element_dtype", DT_FLOAT}}, "list");
  {
    const DeviceScope on(g, kPs);
    AddOp("TensorListLength", {list}, {}, "length");
  }
  EXPECT_EQ(On(g, "list"), "/job:ps/replica:0/task:0/device:CPU:0");
  const DeviceScope on(g, kOther);
  const Output more = AddOp("TensorListPushBack", {list, Const(g, 2.f)});
  ExpectSame(g, {}, {AddOp("TensorListLength", {more}, {}, "elsewhere")}, {{}});
}

// ---- branches and loops

TEST(Partition, DeadValuesCross) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x"),
               p = Placeholder(g, DT_BOOL, Shape(), "p");
  const Output y = Cond(
      p,
      [&] {
        const DeviceScope on(g, kPs);
        return Exp(x);
      },
      [&] {
        const DeviceScope on(g, kOther);
        return Square(x) * 2.f;
      });
  const Output z = y + 1.f;
  ExpectSame(
      g, {x, p}, {z, y},
      {{Tensor::Scalar(1.f), Tensor::Scalar(true)}, {Tensor::Scalar(1.f), Tensor::Scalar(false)}});
}

// sum of (i * factor + 1) for i < n, the product on another task.
Output LoopOverTasks(Graph& g, const Output& n, const Output& factor, const char* device) {
  return WhileLoop([&](const Outputs& v) { return Less(v[0], n); },
                   [&](const Outputs& v) {
                     Output product;
                     {
                       const DeviceScope on(g, device);
                       product = Multiply(Cast(v[0], DT_FLOAT), factor);
                     }
                     return Outputs{v[0] + 1, v[1] + product + 1.f};
                   },
                   {Const(g, 0), Const(g, 0.f)})[1];
}

TEST(Partition, ALoopOnTwoTasksHasAControlLoopOnTheSecond) {
  Graph g;
  const Output n = Placeholder(g, DT_INT32, Shape(), "n"),
               factor = Placeholder(g, DT_FLOAT, Shape(), "factor");
  const Output sum = LoopOverTasks(g, n, factor, kPs);
  const auto cut = Cut(g, {.feeds = {n, factor}, .fetches = {sum}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  const proto::GraphDef* ps = PartOf(*cut, 1);
  EXPECT_EQ(Count(ps, "NextIteration"), 1);
  EXPECT_EQ(Count(ps, "Merge"), 1);
  EXPECT_EQ(Count(PartOf(*cut, 0), "Merge"), 2);  // only the loop's own
  int receives_in_loop = 0;
  for (const proto::NodeDef& node : ps->node()) {
    if (node.op() == "_Recv" && node.input_size() == 1) ++receives_in_loop;
  }
  EXPECT_EQ(receives_in_loop, 2);  // the condition and the counter
  for (const int32_t count : {0, 1, 5})
    ExpectSame(g, {n, factor}, {sum}, {{Tensor::Scalar(count), Tensor::Scalar(3.f)}});
}

TEST(Partition, NestedLoops) {
  Graph g;
  const Output n = Placeholder(g, DT_INT32, Shape(), "n");
  const Output total = WhileLoop([&](const Outputs& v) { return Less(v[0], n); },
                                 [&](const Outputs& v) {
                                   const Output inner = WhileLoop(
                                       [&](const Outputs& w) { return Less(w[0], v[0]); },
                                       [&](const Outputs& w) {
                                         const DeviceScope on(g, kOther);
                                         return Outputs{w[0] + 1, w[1] + Cast(w[0], DT_FLOAT)};
                                       },
                                       {Const(g, 0), v[1]})[1];
                                   return Outputs{v[0] + 1, inner + 1.f};
                                 },
                                 {Const(g, 0), Const(g, 0.f)})[1];
  for (const int32_t count : {0, 1, 4}) ExpectSame(g, {n}, {total}, {{Tensor::Scalar(count)}});
}

TEST(Partition, ALoopWithoutConditionIsRefused) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  const Output entered = Enter(x, "frame");
  const Output here = Square(entered, "here");
  Output there;
  {
    const DeviceScope on(g, kPs);
    there = Square(here, "there");
  }
  const absl::Status status = Cut(g, {.feeds = {x}, .fetches = {Exit(there)}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("must have a pivot predicate: frame"));
}

// Any cut has the values of the graph. The loop is cut in one way: the receives of an iteration
// have an order of their own, for which another task may have to wait.
TEST(Partition, RandomCuts) {
  Graph g;
  const Output n = Placeholder(g, DT_INT32, Shape(), "n"),
               x = Placeholder(g, DT_FLOAT, Shape(), "x");
  const Output sum = LoopOverTasks(g, n, x, kPs);
  const Output chosen = Cond(
      Greater(sum, x), [&] { return Exp(x * 0.1f) + sum; }, [&] { return Sqrt(Abs(sum)); });
  const Output y = chosen * x + sum;
  ASSERT_TRUE(g.status().ok()) << g.status();
  for (int seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 numbers(seed);
    for (const auto& node : g.nodes()) {
      const char* const devices[] = {"", "", kPs, kOther};
      const bool is_free = node->colocations().empty() && !absl::StartsWith(node->name(), "while");
      if (is_free) g.SetDevice(node.get(), devices[numbers() % 4]);
    }
    ExpectSame(g, {n, x}, {y, sum},
               {{Tensor::Scalar(int32_t{3}), Tensor::Scalar(2.f)},
                {Tensor::Scalar(int32_t{0}), Tensor::Scalar(-1.f)}});
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace weir::rpc
