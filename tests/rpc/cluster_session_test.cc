// Sessions over the tasks of a cluster: servers in this process, each of which is a task.

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/rpc/client.h"
#include "weir/rpc/lib/listener.h"
#include "weir/rpc/server.h"
#include "weir/session/session.h"

namespace weir::rpc {
namespace {

using testing::HasSubstr;

constexpr char kPs[] = "/job:ps/task:0", kWorker[] = "/job:worker/task:0",
               kOtherWorker[] = "/job:worker/task:1";

// Its port is free again when this returns.
int FreePort() { return (*Listener::Bind("127.0.0.1", 0))->port(); }

class ClusterSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    EnableGrpcTargets();
    const auto address = [] { return absl::StrCat("127.0.0.1:", FreePort()); };
    cluster_ =
        *ClusterSpec::Parse(absl::StrCat("ps|", address(), ",worker|", address(), ";", address()));
    ps_ = Start({"ps", 0});
    worker_ = Start({"worker", 0});
    other_worker_ = Start({"worker", 1});
  }

  std::unique_ptr<Server> Start(const TaskName& name) {
    ServerOptions options;
    const std::string address = cluster_.AddressOf(name);
    options.port = std::stoi(address.substr(address.rfind(':') + 1));
    options.cluster = ClusterOptions{cluster_, name};
    auto server = Server::Start(options);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  // A session whose master is this task.
  static Session Open(const Graph& g, const Server& master, bool isolated = false) {
    auto session =
        Session::Create(g, {.target = master.target(), .isolate_session_state = isolated});
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  // A float scalar that begins with this value.
  struct ScalarVariable {
    Output handle;
    Operation initialize;
    Output Read() const { return AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}}); }
    Operation Add(const Output& delta) const {
      return Operation(AddNode("AssignAddVariableOp", {handle, delta}));
    }
  };
  static ScalarVariable OnPs(Graph& g, const std::string& name, float value) {
    const DeviceScope on(g, kPs);
    ScalarVariable v;
    v.handle =
        Output(AddNode(g, "VarHandleOp", {},
                       {{"dtype", DT_FLOAT}, {"shape", Shape()}, {"shared_name", name}}, name));
    v.initialize = Operation(AddNode("AssignVariableOp", {v.handle, Const(g, value)}));
    return v;
  }

  static float Value(const absl::StatusOr<Tensors>& values, int i = 0) {
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[i].scalar<float>() : -1;
  }

  ClusterSpec cluster_;
  std::unique_ptr<Server> ps_, worker_, other_worker_;
};

TEST_F(ClusterSessionTest, VariablesOnThePsComputationOnTheWorkers) {
  Graph g;
  const ScalarVariable v = OnPs(g, "v", 1.f);
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  Output delta;
  {
    const DeviceScope on(g, kOtherWorker);
    delta = x * 10.f;
  }
  const Operation add = v.Add(delta);
  const Output y = v.Read() + x;  // on the master
  for (const auto* master : {&worker_, &ps_}) {
    Session session = Open(g, **master);
    ASSERT_TRUE(session.Run(v.initialize).ok());
    ASSERT_TRUE(session.Run(Feeds{{x, Tensor::Scalar(2.f)}}, Outputs(), {add}).ok());
    ASSERT_TRUE(session.Run(Feeds{{x, Tensor::Scalar(0.5f)}}, Outputs(), {add}).ok());
    EXPECT_EQ(Value(session.Run({{x, Tensor::Scalar(3.f)}}, {y})), 29.f);
  }
}

TEST_F(ClusterSessionTest, SessionsOfSeveralMastersShareVariables) {
  Graph g;
  const ScalarVariable v = OnPs(g, "v", 1.f);
  const Operation add = v.Add(Const(g, 1.f));
  const Output read = v.Read();
  Session first = Open(g, *worker_), second = Open(g, *other_worker_);
  ASSERT_TRUE(first.Run(v.initialize).ok());
  ASSERT_TRUE(second.Run(add).ok());
  EXPECT_EQ(Value(first.Run({read})), 2.f);
  Session alone = Open(g, *worker_, /*isolated=*/true);
  EXPECT_TRUE(absl::IsFailedPrecondition(alone.Run({read}).status()));
  first.Reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(second.Run({read}).status()));
}

// The tasks have other names in it, and another is the first.
TEST_F(ClusterSessionTest, TheClientMayGiveTheCluster) {
  const std::vector<std::string> addresses = {cluster_.AddressOf({"worker", 1}),
                                              cluster_.AddressOf({"worker", 0}),
                                              cluster_.AddressOf({"ps", 0})};
  EnableGrpcTargets({.cluster = {{"train", addresses}}});
  Graph g;
  Output handle, scaled;
  Operation initialize;
  {
    const DeviceScope on(g, "/job:train/task:2");
    handle = Output(AddNode(g, "VarHandleOp", {},
                            {{"dtype", DT_FLOAT}, {"shape", Shape()}, {"shared_name", "v"}}, "v"));
    initialize = Operation(AddNode("AssignVariableOp", {handle, Const(g, 3.f)}));
  }
  const Output read = AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}});
  {
    const DeviceScope on(g, "/job:train/task:0");
    scaled = read * 2.f;
  }
  const Output y = scaled + 1.f;
  {
    Session session = Open(g, *worker_);
    ASSERT_TRUE(session.Run(initialize).ok());
    EXPECT_EQ(Value(session.Run({y})), 7.f);
    // It has variables of its own.
    Session next = Open(g, *worker_);
    EXPECT_TRUE(absl::IsFailedPrecondition(next.Run({y}).status()));
    Graph names;
    {
      const DeviceScope on(names, kPs);
      Const(names, 1.f);
    }
    const absl::Status status = Session::Create(names, {.target = worker_->target()}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("/job:train/replica:0/task:2/device:CPU:0"));
  }
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{addresses[0]}, {addresses[1], addresses[1]}}) {
    EnableGrpcTargets({.cluster = {{"train", wrong}}});
    const absl::Status status = Session::Create(g, {.target = worker_->target()}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("ConfigProto.cluster_def"));
  }
}

TEST_F(ClusterSessionTest, LoopsAndBranchesOverTasks) {
  Graph g;
  const Output n = Placeholder(g, DT_INT32, Shape(), "n");
  const Output sum = WhileLoop([&](const Outputs& v) { return Less(v[0], n); },
                               [&](const Outputs& v) {
                                 Output square;
                                 {
                                   const DeviceScope on(g, kPs);
                                   square = Square(Cast(v[0], DT_FLOAT));
                                 }
                                 return Outputs{v[0] + 1, v[1] + square};
                               },
                               {Const(g, 0), Const(g, 0.f)})[1];
  Session session = Open(g, *worker_);
  EXPECT_EQ(Value(session.Run({{n, Tensor::Scalar(int32_t{5})}}, {sum})), 30.f);
  EXPECT_EQ(Value(session.Run({{n, Tensor::Scalar(int32_t{0})}}, {sum})), 0.f);
}

// A loop whose body reads a variable on another task.
TEST_F(ClusterSessionTest, FunctionalLoopsAndBranchesOverTasks) {
  Graph g;
  const ScalarVariable v = OnPs(g, "v", 2.f);
  {
    Graph body;
    const Output i = Placeholder(body, DT_INT32, Shape()),
                 total = Placeholder(body, DT_FLOAT, Shape()),
                 handle = Placeholder(body, DT_RESOURCE, Shape());
    Output sum;
    {
      const DeviceScope on(body, kPs);
      sum = total + AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}});
    }
    ASSERT_TRUE(
        DefineFunction(g, "body", body, {i, total, handle}, {i + 1, sum * 1.f, handle}).ok());
    Graph cond;
    const Output j = Placeholder(cond, DT_INT32, Shape()),
                 any = Placeholder(cond, DT_FLOAT, Shape()),
                 unused = Placeholder(cond, DT_RESOURCE, Shape());
    ASSERT_TRUE(DefineFunction(g, "cond", cond, {j, any, unused}, {Less(j, Const(cond, 3))}).ok());
    Graph twice;
    const Output x = Placeholder(twice, DT_FLOAT, Shape());
    ASSERT_TRUE(DefineFunction(g, "twice", twice, {x}, {x * 2.f}).ok());
  }
  const Output start = Placeholder(g, DT_INT32, Shape(), "start");
  const Output total = FunctionalWhile({start, Const(g, 1.f), v.handle}, {"cond", nullptr},
                                       {"body", nullptr}, "loop")[1];
  const Output chosen =
      FunctionalIf(Less(start, Const(g, 1)), {total}, {"twice", nullptr}, {"twice", nullptr})[0];
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = Open(g, *worker_);
  ASSERT_TRUE(session.Run(v.initialize).ok());
  for (const auto& [from, sum] : {std::pair(0, 7.f), {2, 3.f}, {3, 1.f}}) {
    const auto values = session.Run({{start, Tensor::Scalar(int32_t{from})}}, {total, chosen});
    EXPECT_EQ(Value(values), sum);
    EXPECT_EQ(Value(values, 1), 2 * sum);
  }
  // The output of a loop may be fed.
  EXPECT_EQ(Value(session.Run({{start, Tensor::Scalar(int32_t{0})}, {total, Tensor::Scalar(5.f)}},
                              {chosen})),
            10.f);
}

TEST_F(ClusterSessionTest, AStepWhoseFetchesNobodyTakes) {
  Graph g;
  const ScalarVariable v = OnPs(g, "v", 1.f);
  Session session = Open(g, *worker_);
  ASSERT_TRUE(session.Run(v.initialize).ok());
  const auto step = session.Prepare({}, {v.Read()});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(step->Run({}, nullptr).ok());
}

TEST_F(ClusterSessionTest, TheGraphGrows) {
  Graph g;
  const ScalarVariable v = OnPs(g, "v", 4.f);
  Session session = Open(g, *worker_);
  ASSERT_TRUE(session.Run(v.initialize).ok());
  const Output doubled = v.Read() * 2.f;
  EXPECT_EQ(Value(session.Run({doubled})), 8.f);
}

TEST_F(ClusterSessionTest, PartialRuns) {
  Graph g;
  const Output a = Placeholder(g, DT_FLOAT, Shape(), "a"),
               b = Placeholder(g, DT_FLOAT, Shape(), "b");
  Output sum, product;
  {
    const DeviceScope on(g, kPs);
    sum = a + 1.f;
  }
  {
    const DeviceScope on(g, kOtherWorker);
    product = sum * b;
  }
  Session session = Open(g, *worker_);
  auto run = session.StartPartialRun({a, b}, {sum, product});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(Value(run->Run({{a, Tensor::Scalar(2.f)}}, {sum})), 3.f);
  EXPECT_EQ(Value(run->Run({{b, Tensor::Scalar(5.f)}}, {product})), 15.f);
  EXPECT_TRUE(run->is_over());
}

TEST_F(ClusterSessionTest, ConcurrentStepsDoNotMix) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  Output y;
  {
    const DeviceScope on(g, kPs);
    y = x * 2.f;
  }
  const Output z = y + 1.f;
  Session session = Open(g, *worker_);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 20; ++k) {
        const auto value = static_cast<float>(100 * t + k);
        const auto got = session.Run({{x, Tensor::Scalar(value)}}, {z});
        if (got.ok() && (*got)[0].scalar<float>() == 2 * value + 1) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

// ---- errors

TEST_F(ClusterSessionTest, AnErrorNamesTaskAndNodeAndTheSessionGoesOn) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  Output checked;
  {
    const DeviceScope on(g, kPs);
    checked = CheckNumerics(Log(x), "not a number", "checked");
  }
  const Output y = checked + 1.f;
  Session session = Open(g, *worker_);
  for (int i = 0; i < 5; ++i) {
    const absl::Status status = session.Run({{x, Tensor::Scalar(-1.f)}}, {y}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("not a number"));
    EXPECT_THAT(status.message(), HasSubstr("{{node checked}}"));
    EXPECT_THAT(status.message(), HasSubstr("/job:ps/replica:0/task:0"));
    EXPECT_EQ(Value(session.Run({{x, Tensor::Scalar(1.f)}}, {y})), 1.f);
  }
}

TEST_F(ClusterSessionTest, ADeviceThatNoTaskHas) {
  Graph g;
  {
    const DeviceScope on(g, "/job:ps/task:7");
    Const(g, 1.f, "lost");
  }
  const absl::Status status = Session::Create(g, {.target = worker_->target()}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("lost"));
  EXPECT_THAT(status.message(), HasSubstr("/job:worker/replica:0/task:1/device:CPU:0"));
}

TEST_F(ClusterSessionTest, AServerOutsideOfClustersRefusesOtherTasks) {
  const auto server = Server::Start({});
  ASSERT_TRUE(server.ok()) << server.status();
  Graph g;
  Output lost;
  {
    const DeviceScope on(g, kPs);
    lost = Const(g, 1.f, "lost");
  }
  Session session = Open(g, **server);
  const absl::Status status = session.Run({lost}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("/job:localhost/replica:0/task:0/device:CPU:0"));
}

TEST_F(ClusterSessionTest, ADeadFetch) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x"),
               p = Placeholder(g, DT_BOOL, Shape(), "p");
  const SwitchResult branches = Switch(x, p);
  Output y;
  {
    const DeviceScope on(g, kPs);
    y = branches.on_true * 2.f;
  }
  Session session = Open(g, *worker_);
  EXPECT_EQ(Value(session.Run({{x, Tensor::Scalar(1.f)}, {p, Tensor::Scalar(true)}}, {y})), 2.f);
  const absl::Status status =
      session.Run({{x, Tensor::Scalar(1.f)}, {p, Tensor::Scalar(false)}}, {y}).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("was not valid"));
}

TEST_F(ClusterSessionTest, TimeLimitAndCloseEndAStepThatWaits) {
  Graph g;
  Output queue, taken;
  {
    const DeviceScope on(g, kPs);
    queue = Output(AddNode(g, "FIFOQueueV2", {}, {{"component_types", DataTypes{DT_FLOAT}}}, "q"));
    taken = Output(AddNode("QueueDequeueV2", {queue}, {{"component_types", DataTypes{DT_FLOAT}}}));
  }
  const Output y = taken + 1.f;
  const Operation put(AddNode("QueueEnqueueV2", {queue, std::vector<Output>{Const(g, 7.f)}}));
  Session session = Open(g, *worker_);
  RunOptions limited;
  limited.timeout = std::chrono::milliseconds(200);
  EXPECT_TRUE(absl::IsDeadlineExceeded(session.Run({}, {y}, {}, limited).status()));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // until the ps has noticed, too
  ASSERT_TRUE(session.Run(put).ok());
  EXPECT_EQ(Value(session.Run({y})), 8.f);  // the step before has not taken it
  absl::Status ended;
  std::thread waiter([&] { ended = session.Run({y}).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  session.Close();
  waiter.join();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
}

// A task that comes back empty is not taken for the one that was there before.
TEST_F(ClusterSessionTest, ARestartedTaskIsAborted) {
  Graph g;
  const ScalarVariable v = OnPs(g, "v", 1.f);
  const Output y = v.Read() * 2.f;
  Session session = Open(g, *worker_);
  ASSERT_TRUE(session.Run(v.initialize).ok());
  EXPECT_EQ(Value(session.Run({y})), 2.f);
  ps_ = nullptr;
  const absl::Status down = session.Run({y}).status();
  EXPECT_TRUE(absl::IsUnavailable(down)) << down;
  EXPECT_THAT(down.message(), HasSubstr("/job:ps/replica:0/task:0"));
  ps_ = Start({"ps", 0});
  absl::Status status = absl::UnavailableError("");
  for (int i = 0; i < 100 && absl::IsUnavailable(status); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    status = session.Run({y}).status();
  }
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  Session next = Open(g, *worker_);
  EXPECT_TRUE(absl::IsFailedPrecondition(next.Run({y}).status()));
}

}  // namespace
}  // namespace weir::rpc
