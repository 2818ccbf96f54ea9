#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/random/random.h"
#include "weir/tests/session/lib/late_device.h"

// Placement of nodes, with a simulated accelerator beside the CPU.
namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCpuName[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kGpuName[] = "/job:localhost/replica:0/task:0/device:GPU:0";

struct StepPlacement {
  absl::Status status;
  std::map<std::string, std::string> device;  // by node
  std::string log;
};

// Runs the fetch, and records the device of every node and what was printed.
StepPlacement Place(const Graph& g, const Output& fetch, SessionOptions options = {}) {
  ::testing::internal::CaptureStderr();
  StepPlacement outcome;
  absl::StatusOr<Session> session = Session::Create(g, WithLateDevices(std::move(options)));
  if (session.ok()) {
    std::vector<NodeTrace> trace;
    RunOptions run;
    run.trace = &trace;
    outcome.status = session->Run(Feeds{}, {fetch}, {}, run).status();
    for (const NodeTrace& t : trace) outcome.device[t.node] = t.device;
  } else {
    outcome.status = session.status();
  }
  outcome.log = ::testing::internal::GetCapturedStderr();
  return outcome;
}

// A source that is not constant-folded.
Output Source(Graph& g) { return RandomUniform(g, {3}, {}, "source"); }

TEST(Placement, AcceleratorIsPreferredOverTheCpu) {
  Graph g;
  const StepPlacement o = Place(g, Add(Source(g), 1.f, "sum"));
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_EQ(o.device.at("sum"), kGpuName);
}

TEST(Placement, DeviceScopesDecide) {
  Graph g;
  const Output x = Source(g);
  Output y, z;
  {
    DeviceScope cpu(g, "/cpu:0");
    y = Add(x, 1.f, "on_cpu");
    DeviceScope gpu(g, "/device:GPU:0");
    z = Add(y, 1.f, "on_gpu");
  }
  const StepPlacement o = Place(g, z);
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_EQ(o.device.at("on_cpu"), kCpuName);
  EXPECT_EQ(o.device.at("on_gpu"), kGpuName);
}

// Loop conditions are computed from counts in host memory, and used there.
TEST(Placement, LogicOnScalarsOfTheHostStaysThere) {
  Graph g;
  const Output x = Source(g);
  Output all, first, second;
  {
    DeviceScope cpu(g, "/cpu:0");
    all = Less(x, 2.f);
    first = Less(ReduceSum(x), 9.f);
    second = Less(ReduceMax(x), 9.f);
  }
  const Output both = LogicalAnd(first, LogicalNot(second, "not"), "both");
  const Output there = Less(ReduceSum(x), 8.f, "there");
  const Output mixed = LogicalAnd(both, there, "mixed");
  const StepPlacement o = Place(g, LogicalOr(LogicalAnd(all, all, "each"), mixed));
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_EQ(o.device.at("not"), kCpuName);
  EXPECT_EQ(o.device.at("both"), kCpuName);
  EXPECT_EQ(o.device.at("each"), kGpuName);   // not a scalar
  EXPECT_EQ(o.device.at("mixed"), kGpuName);  // with one input in device memory
}

TEST(Placement, ColocatedNodesFollowEachOther) {
  Graph g;
  Output x, y;
  {
    DeviceScope cpu(g, "/cpu:0");
    x = RandomUniform(g, {3}, {}, "leader");
  }
  {
    ColocateWith leader(g, Operation(x));
    y = Add(x, 1.f, "follower");
  }
  const StepPlacement o = Place(g, Multiply(y, 2.f, "free"));
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_EQ(o.device.at("follower"), kCpuName);
  EXPECT_EQ(o.device.at("free"), kGpuName);
}

TEST(Placement, UsersOfAVariableFollowIt) {
  for (const bool resource : {true, false}) {
    Graph g(GraphOptions{.use_resource = resource});
    Variable v;
    {
      DeviceScope cpu(g, "/cpu:0");
      v = GetVariable(g, "v", {3}, Ones());
    }
    Output added;
    {
      ControlDependencies initialized(g, {v.initializer()});
      added = v.AssignAdd(Source(g));
    }
    const StepPlacement o = Place(g, added);
    ASSERT_TRUE(o.status.ok()) << o.status;
    EXPECT_EQ(o.device.at(resource ? "AssignAddVariableOp" : "AssignAdd"), kCpuName);
    EXPECT_EQ(o.device.at("source/RandomUniform"), kGpuName);
  }
}

TEST(Placement, MissingDeviceFallsBackWithALine) {
  Graph g;
  Output y;
  {
    DeviceScope missing(g, "/gpu:7");
    y = Add(Source(g), 1.f, "sum");
  }
  const StepPlacement o = Place(g, y);
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_EQ(o.device.at("sum"), kCpuName);
  EXPECT_THAT(o.log, HasSubstr("sum (AddV2) requests /device:GPU:7"));
}

TEST(Placement, MissingDeviceIsAnErrorWithoutSoftPlacement) {
  Graph g;
  Output y;
  {
    DeviceScope missing(g, "/gpu:7");
    y = Add(Source(g), 1.f, "sum");
  }
  const StepPlacement o = Place(g, y, {.allow_soft_placement = false});
  EXPECT_EQ(o.status.code(), absl::StatusCode::kInvalidArgument) << o.status;
  EXPECT_THAT(std::string(o.status.message()), HasSubstr("Cannot assign a device for operation"));
  EXPECT_THAT(std::string(o.status.message()), HasSubstr("/device:GPU:7"));
  EXPECT_THAT(std::string(o.status.message()), HasSubstr(kGpuName));  // the available devices
}

TEST(Placement, ContradictingRequestsAreAnErrorWithoutSoftPlacement) {
  Graph g;
  Variable v;
  {
    DeviceScope cpu(g, "/cpu:0");
    v = GetVariable(g, "v", {3}, Ones());
  }
  Output read;
  {
    DeviceScope gpu(g, "/gpu:0");
    ControlDependencies initialized(g, {v.initializer()});
    read = AddOp("ReadVariableOp", {v.handle()}, {{"dtype", DT_FLOAT}}, "read");
  }
  const StepPlacement hard = Place(g, read, {.allow_soft_placement = false});
  EXPECT_EQ(hard.status.code(), absl::StatusCode::kInvalidArgument) << hard.status;
  EXPECT_THAT(std::string(hard.status.message()), HasSubstr("Cannot colocate nodes"));
  const StepPlacement soft = Place(g, read);
  ASSERT_TRUE(soft.status.ok()) << soft.status;
  EXPECT_EQ(soft.device.at("read"), kCpuName);  // the first request wins
}

TEST(Placement, LogShowsTheDeviceOfEveryNode) {
  Graph g;
  Output y;
  {
    DeviceScope cpu(g, "/cpu:0");
    y = Add(Source(g), 1.f, "sum");
  }
  const Output z = Multiply(y, 2.f, "product");
  const StepPlacement o = Place(g, z, {.log_device_placement = true});
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_THAT(o.log, HasSubstr(absl::StrCat("sum: (AddV2): ", kCpuName, "\n")));
  EXPECT_THAT(o.log, HasSubstr(absl::StrCat("product: (Mul): ", kGpuName, "\n")));
  EXPECT_THAT(Place(g, z).log, Not(HasSubstr("product")));
}

TEST(Placement, OpWithoutKernelIsInvalid) {
  OpRegistry ops(&BuiltinOps());
  ops.Add(OpSpec("Unheard").In("x: T").Out("y: T").Attr("T: type").InferShape(SameShape).Doc("?"));
  Graph g(ops);
  const StepPlacement o = Place(g, AddOp("Unheard", {Source(g)}));
  EXPECT_EQ(o.status.code(), absl::StatusCode::kInvalidArgument) << o.status;
  EXPECT_THAT(std::string(o.status.message()), HasSubstr("Unheard"));
}

// ---- one device for a variable, in all steps

// The CPU's kernels, also registered for accelerators except for these ops.
std::unique_ptr<KernelRegistry> KernelsWithout(const std::set<std::string>& lacking) {
  auto kernels = std::make_unique<KernelRegistry>();
  for (const std::string& op : BuiltinKernels().Ops(kCpu)) {
    for (const KernelDef* def : BuiltinKernels().KernelsOf(op)) {
      if (def->place != kCpu) continue;
      for (const auto place : {kCpu, kGpu}) {
        if (place == kGpu && lacking.contains(op)) continue;
        KernelDef& added = kernels->Add(op, place, def->constraints, def->make);
        added = *def;
        added.place = place;
      }
    }
  }
  return kernels;
}

class OneDevice : public ::testing::TestWithParam<bool> {
 protected:
  // A session whose accelerator has no kernels for these ops.
  Session Start(const std::set<std::string>& lacking, SessionOptions options = {}) {
    kernels_ = KernelsWithout(lacking);
    options.kernels = kernels_.get();
    LateDeviceOptions device;
    device.kernels = kernels_.get();
    device.place = kGpu;
    absl::StatusOr<Session> session = Session::Create(g_, WithLateDevices(options, 1, device));
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  // The device of each node of the step.
  static std::map<std::string, std::string> Run(Session& session, const Outputs& fetches,
                                                const std::vector<Operation>& targets = {}) {
    std::vector<NodeTrace> trace;
    RunOptions run;
    run.trace = &trace;
    const auto out = session.Run(Feeds{}, fetches, targets, run);
    EXPECT_TRUE(out.ok()) << out.status();
    std::map<std::string, std::string> device;
    for (const NodeTrace& t : trace) device[t.node] = t.device;
    return device;
  }

  std::string AddName() const { return GetParam() ? "AssignAddVariableOp" : "AssignAdd"; }
  std::string SubName() const { return GetParam() ? "AssignSubVariableOp" : "AssignSub"; }

  Graph g_{GraphOptions{.use_resource = GetParam()}};
  std::unique_ptr<KernelRegistry> kernels_;
};

TEST_P(OneDevice, IsOneThatAllUsersInTheGraphHaveKernelsFor) {
  const Variable v = GetVariable(g_, "v", {3}, Ones());
  const Output add = v.AssignAdd(Source(g_)), sub = v.AssignSub(Source(g_));
  Session session = Start({SubName()});
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
  EXPECT_EQ(Run(session, {add}).at(AddName()), kCpuName);
  EXPECT_EQ(Run(session, {sub}).at(SubName()), kCpuName);
  Session able = Start({});
  ASSERT_TRUE(able.Run(GlobalVariablesInitializer(g_)).ok());
  EXPECT_EQ(Run(able, {add}).at(AddName()), kGpuName);
  EXPECT_EQ(Run(able, {sub}).at(SubName()), kGpuName);
}

TEST_P(OneDevice, IsTheRequestedDeviceInEveryStep) {
  const Variable v = GetVariable(g_, "v", {3}, Ones());
  const Output add = v.AssignAdd(Source(g_));
  const Output sub = v.AssignSub(Source(g_));
  g_.SetDevice(g_.FindNode(SubName()), "/cpu:0");
  Session session = Start({});
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
  EXPECT_EQ(Run(session, {add}).at(AddName()), kCpuName);
  EXPECT_EQ(Run(session, {sub}).at(SubName()), kCpuName);
}

TEST_P(OneDevice, IsFollowedByNodesAddedLater) {
  const Variable v = GetVariable(g_, "v", {3}, Ones());
  Session session = Start({});
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
  DeviceScope cpu(g_, "/cpu:0");
  const Output sub = v.AssignSub(Source(g_));
  EXPECT_EQ(Run(session, {sub}).at(SubName()), kGpuName);
}

TEST_P(OneDevice, IsAnErrorForANodeAddedLaterThatCannotGoThere) {
  const Variable v = GetVariable(g_, "v", {3}, Ones());
  const Output add = v.AssignAdd(Source(g_));
  Session session = Start({SubName()});
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
  const Output sub = v.AssignSub(Source(g_));
  const absl::Status status = session.Run({sub}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("(" + SubName() + ")"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("v ("));
  EXPECT_THAT(std::string(status.message()), HasSubstr(kGpuName));
  EXPECT_EQ(Run(session, {add}).at(AddName()), kGpuName);
}

TEST_P(OneDevice, IsSharedByHandlesOfOneName) {
  const Variable v = GetVariable(g_, "v", {3}, Ones());
  Output twin;
  {
    DeviceScope cpu(g_, "/cpu:0");
    const char* op = GetParam() ? "VarHandleOp" : "VariableV2";
    twin = Output(
        AddNode(g_, op, {}, {{"dtype", DT_FLOAT}, {"shape", Shape({3})}, {"shared_name", "v"}}), 0);
  }
  const Operation add(AddNode(AddName(), {twin, Source(g_)}, {}, "add"));
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = Start({});
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
  EXPECT_EQ(Run(session, {}, {add}).at("add"), kCpuName);
  EXPECT_EQ(Run(session, {v.AssignSub(Source(g_))}).at(SubName()), kCpuName);
}

INSTANTIATE_TEST_SUITE_P(OfVariables, OneDevice, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Resource" : "Reference"; });

TEST(Placement, FedHandleOfAnotherDeviceIsAnError) {
  Graph g;
  const Variable v = GetVariable(g, "v", {3}, Ones());
  const Output handle = Placeholder(g, DT_RESOURCE, {}, "handle");
  Output read, add;
  {
    DeviceScope cpu(g, "/cpu:0");
    read = AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}}, "read");
    add = Output(AddNode("AssignAddVariableOp", {handle, Const(g, {1.f, 1.f, 1.f})}, {}, "add"), 0);
  }
  absl::StatusOr<Session> session = Session::Create(g, WithLateDevices());
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run(GlobalVariablesInitializer(g)).ok());
  const auto fetched = session->Run({v.handle()});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  const absl::Status reading = session->Run({{handle, (*fetched)[0]}}, {read}).status();
  const absl::Status adding =
      session->Run({{handle, (*fetched)[0]}}, {}, {Operation(add.node)}).status();
  for (const absl::Status& status : {reading, adding}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("variable 'v'"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(kGpuName));
    EXPECT_THAT(std::string(status.message()), HasSubstr(kCpuName));
  }
}

}  // namespace
}  // namespace weir
