#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/scope.h"
#include "weir/core/shape_context.h"
#include "weir/ops/array.h"
#include "weir/ops/math.h"
#include "weir/ops/random.h"
#include "weir/ops/registry.h"
#include "weir/ops/variables.h"
#include "weir/tests/session/late_device.h"

// Where nodes go, with a simulated accelerator beside the CPU.
namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCpuName[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kGpuName[] = "/job:localhost/replica:0/task:0/device:GPU:0";

struct Outcome {
  absl::Status status;
  std::map<std::string, std::string> device;  // by node
  std::string log;
};

// Runs the fetch, and says where every node ran and what was printed.
Outcome Place(const Graph& g, const Output& fetch, SessionOptions options = {}) {
  ::testing::internal::CaptureStderr();
  Outcome outcome;
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

// A source that is not folded away.
Output Source(Graph& g) { return RandomUniform(g, {3}, {}, "source"); }

TEST(Placement, AcceleratorGoesBeforeTheCpu) {
  Graph g;
  const Outcome o = Place(g, Add(Source(g), 1.f, "sum"));
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
  const Outcome o = Place(g, z);
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_EQ(o.device.at("on_cpu"), kCpuName);
  EXPECT_EQ(o.device.at("on_gpu"), kGpuName);
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
  const Outcome o = Place(g, Multiply(y, 2.f, "free"));
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
      ControlDependencies initialised(g, {v.initializer()});
      added = v.AssignAdd(Source(g));
    }
    const Outcome o = Place(g, added);
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
  const Outcome o = Place(g, y);
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_EQ(o.device.at("sum"), kCpuName);
  EXPECT_THAT(o.log, HasSubstr("sum (AddV2) asked for /device:GPU:7"));
}

TEST(Placement, MissingDeviceIsAnErrorWithoutSoftPlacement) {
  Graph g;
  Output y;
  {
    DeviceScope missing(g, "/gpu:7");
    y = Add(Source(g), 1.f, "sum");
  }
  const Outcome o = Place(g, y, {.allow_soft_placement = false});
  EXPECT_EQ(o.status.code(), absl::StatusCode::kInvalidArgument) << o.status;
  EXPECT_THAT(std::string(o.status.message()), HasSubstr("Cannot assign a device for operation"));
  EXPECT_THAT(std::string(o.status.message()), HasSubstr("/device:GPU:7"));
  EXPECT_THAT(std::string(o.status.message()), HasSubstr(kGpuName));  // what there is
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
    ControlDependencies initialised(g, {v.initializer()});
    read = AddOp("ReadVariableOp", {v.handle()}, {{"dtype", DT_FLOAT}}, "read");
  }
  const Outcome hard = Place(g, read, {.allow_soft_placement = false});
  EXPECT_EQ(hard.status.code(), absl::StatusCode::kInvalidArgument) << hard.status;
  EXPECT_THAT(std::string(hard.status.message()), HasSubstr("Cannot colocate nodes"));
  const Outcome soft = Place(g, read);
  ASSERT_TRUE(soft.status.ok()) << soft.status;
  EXPECT_EQ(soft.device.at("read"), kCpuName);  // what was asked first wins
}

TEST(Placement, LogSaysWhereEveryNodeGoes) {
  Graph g;
  Output y;
  {
    DeviceScope cpu(g, "/cpu:0");
    y = Add(Source(g), 1.f, "sum");
  }
  const Output z = Multiply(y, 2.f, "product");
  const Outcome o = Place(g, z, {.log_device_placement = true});
  ASSERT_TRUE(o.status.ok()) << o.status;
  EXPECT_THAT(o.log, HasSubstr(absl::StrCat("sum: (AddV2): ", kCpuName, "\n")));
  EXPECT_THAT(o.log, HasSubstr(absl::StrCat("product: (Mul): ", kGpuName, "\n")));
  EXPECT_THAT(Place(g, z).log, Not(HasSubstr("product")));
}

TEST(Placement, OpWithoutKernelIsInvalid) {
  OpRegistry ops(&BuiltinOps());
  ops.Add(OpSpec("Unheard").In("x: T").Out("y: T").Attr("T: type").InferShape(SameShape).Doc("?"));
  Graph g(ops);
  const Outcome o = Place(g, AddOp("Unheard", {Source(g)}));
  EXPECT_EQ(o.status.code(), absl::StatusCode::kInvalidArgument) << o.status;
  EXPECT_THAT(std::string(o.status.message()), HasSubstr("Unheard"));
}

}  // namespace
}  // namespace weir
