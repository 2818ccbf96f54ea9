#include <chrono>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/shape_context.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/registry.h"
#include "weir/tests/session/lib/late_device.h"
#include "weir/tests/session/lib/test_models.h"

// Sessions on a device whose work runs later: what is synchronized and what is not, delayed errors,
// memory. Also verifies the properties of the simulated accelerator.
namespace weir {
namespace {

using std::chrono::milliseconds;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Session Start(const Graph& graph, SessionOptions options = {}, LateDeviceOptions device = {}) {
  absl::StatusOr<Session> session =
      Session::Create(graph, WithLateDevices(std::move(options), 1, device));
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

std::vector<float> FloatsOf(const Tensor& t) {
  return {t.flat<float>().begin(), t.flat<float>().end()};
}

// ---- the device itself

TEST(LateDeviceDeathTest, HostTouchOfItsMemoryDies) {
  LateDevice device;
  const auto t = Tensor::Allocate(device.allocator(), DT_FLOAT, Shape({4}));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_FALSE(t->host_accessible());
  ASSERT_TRUE(device.Synchronize().ok());
  EXPECT_DEATH(std::printf("%f\n", *t->data<float>()), "");
}

TEST(LateDevice, CopiesInOrderAndLate) {
  LateDevice device;
  const auto t = Tensor::Allocate(device.allocator(), DT_INT32, Shape({2}));
  const auto copy = Tensor::Allocate(device.allocator(), DT_INT32, Shape({2}));
  ASSERT_TRUE(t.ok() && copy.ok());
  device.late_stream().Pause();
  Tensor source = Tensor::Vector<int32_t>({1, 2});
  bool staged = false;
  device.CopyFromHost(source, *t, [&](const absl::Status& s) { staged = s.ok(); });
  EXPECT_TRUE(staged);
  source.data<int32_t>()[0] = 77;  // the copied values stay
  ASSERT_TRUE(device.CopyOnDevice(*t, *copy).ok());
  Tensor back = Tensor::Vector<int32_t>({0, 0});
  std::promise<absl::Status> done;
  device.CopyToHost(*copy, back, [&](absl::Status s) { done.set_value(std::move(s)); });
  std::future<absl::Status> arrived = done.get_future();
  EXPECT_EQ(arrived.wait_for(milliseconds(20)), std::future_status::timeout);
  EXPECT_EQ(back.data<int32_t>()[0], 0);
  device.late_stream().Resume();
  ASSERT_TRUE(arrived.get().ok());
  EXPECT_EQ(back.data<int32_t>()[0], 1);
}

TEST(LateDevice, FreshMemoryIsNonsense) {
  LateDevice device;
  const auto t = Tensor::Allocate(device.allocator(), DT_INT32, Shape({2}));
  ASSERT_TRUE(t.ok());
  Tensor back = Tensor::Vector<int32_t>({0, 0});
  device.CopyToHost(*t, back, [](const absl::Status&) {});
  ASSERT_TRUE(device.Synchronize().ok());
  EXPECT_EQ(back.data<int32_t>()[1], -1);
}

// ---- synchronization

// A chain that is not constant-folded.
struct Chain {
  explicit Chain(Graph& g, int length) {
    x = Placeholder(g, DT_FLOAT, {-1}, "x");
    Output y = x;
    for (int i = 0; i < length; ++i) y = y + 1.f;
    last = y;
  }
  Output x, last;
};

TEST(Stream, HostEnqueuesAStepWithoutWaiting) {
  Graph g;
  const Chain chain(g, 50);
  Session session = Start(g);
  const Feeds feeds = {{chain.x, Tensor::Vector<float>({0, 5})}};
  ASSERT_TRUE(session.Run(feeds, {chain.last}).ok());  // plans
  LateStream& stream = LateDeviceOf(session).late_stream();
  stream.Pause();
  auto result = std::async(std::launch::async, [&] { return session.Run(feeds, {chain.last}); });
  while (stream.num_pending() < 52) std::this_thread::yield();  // feed, 50 nodes, fetch
  EXPECT_EQ(result.wait_for(milliseconds(20)), std::future_status::timeout);
  stream.Resume();
  const absl::StatusOr<Tensors> out = result.get();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(50, 55));
}

TEST(Stream, StepWithoutFetchesEndsWhenItsWorkHasRun) {
  Graph g;
  const Variable v = GetVariable(g, "v", {4}, Zeros());
  const Operation init = GlobalVariablesInitializer(g), add = Operation(v.AssignAdd(Ones(g, {4})));
  Session session = Start(g);
  ASSERT_TRUE(session.Run(init).ok());
  LateStream& stream = LateDeviceOf(session).late_stream();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(session.Run(add).ok());
    EXPECT_EQ(stream.num_pending(), 0);
  }
}

TEST(Stream, FedTensorMayChangeAfterTheStep) {
  Graph g;
  const Chain chain(g, 3);
  Session session = Start(g);
  Tensor fed = Tensor::Vector<float>({1, 2});
  for (int i = 0; i < 10; ++i) {
    fed.data<float>()[0] = static_cast<float>(i);
    const auto out = session.Run({{chain.x, fed}}, {chain.last});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(static_cast<float>(i) + 3, 5));
  }
}

TEST(Stream, AsynchronousKernelsRunOnIt) {
  OpRegistry ops(&BuiltinOps());
  KernelRegistry kernels(&BuiltinKernels());
  ops.Add(
      OpSpec("Hold").In("x: T").Out("y: T").Attr("T: type").Stateful().InferShape(SameShape).Doc(
          "Passes its input on a little later."));
  std::vector<std::thread> threads;
  kernels.Add("Hold", kCpu, [&](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([&](KernelContext& c, Kernel::Done done) {
      threads.emplace_back([&c, done = std::move(done)] {
        std::this_thread::sleep_for(milliseconds(2));
        c.SetOutput(0, c.input(0));
        done(absl::OkStatus());
      });
    });
  });
  Graph g(ops);
  const Output x = Placeholder(g, DT_FLOAT, {-1});
  const Output y = AddOp("Hold", {x * 2.f}) + 1.f;
  Session session = Start(g, {.num_threads = 1, .kernels = &kernels}, {.kernels = &kernels});
  for (int i = 0; i < 3; ++i) {
    const auto out = session.Run({{x, Tensor::Vector<float>({1, 2})}}, {y});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(3, 5));
  }
  for (std::thread& t : threads) t.join();
}

// ---- errors

class LateErrors : public ::testing::Test {
 protected:
  LateErrors() {
    table_ = GetVariable(g_, "table", {4}, Zeros());
    rows_ = Placeholder(g_, DT_INT32, {-1}, "rows");
    init_ = GlobalVariablesInitializer(g_);
    // The index is checked on the stream, after the step has been enqueued.
    picked_ = Gather(Const(g_, {1.f, 2.f, 3.f}), rows_, {}, "pick");
    ControlDependencies after(g_, {Operation(picked_)});
    update_ = Operation(table_.AssignAdd(Ones(g_, {4})));
  }
  Tensor Row(int32_t row) { return Tensor::Vector<int32_t>({row}); }

  Graph g_;
  Variable table_;
  Output rows_, picked_;
  Operation init_, update_;
};

TEST_F(LateErrors, NameNodeOpAndDevice) {
  Session session = Start(g_);
  ASSERT_TRUE(session.Run(init_).ok());
  const absl::Status s = session.Run({{rows_, Row(9)}}, {picked_}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("GatherV2 (node pick"));
  EXPECT_THAT(std::string(s.message()), HasSubstr("/device:GPU:0"));
  EXPECT_THAT(std::string(s.message()), HasSubstr("9"));
  const auto out = session.Run({{rows_, Row(2)}}, {picked_});  // the session stays usable
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(3));
}

TEST_F(LateErrors, EndTheStepEvenIfNothingIsFetched) {
  // Otherwise the unused row would be eliminated.
  Session session = Start(g_, {.disable = {"prune_control_edges", "reduce_waits"}});
  ASSERT_TRUE(session.Run(init_).ok());
  const absl::Status s = session.Run({{rows_, Row(-1)}}, {}, {update_}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_THAT(FloatsOf((*session.Run({table_.value()}))[0]), Each(0));  // not updated
  EXPECT_TRUE(session.Run({{rows_, Row(1)}}, {}, {update_}).ok());
  EXPECT_THAT(FloatsOf((*session.Run({table_.value()}))[0]), Each(1));
}

TEST_F(LateErrors, BelongToTheirOwnStep) {
  Session session = Start(g_, {.num_threads = 2});
  ASSERT_TRUE(session.Run(init_).ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const bool bad = t % 2 == 0;
        if (session.Run({{rows_, Row(bad ? 9 : 1)}}, {picked_}).ok() == bad) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LateErrors, OfTheDeviceNameTheDevice) {
  Session session = Start(g_);
  LateDeviceOf(session).FailNextSynchronize(absl::InternalError("the fan stands still"));
  const absl::Status s = session.Run({{rows_, Row(1)}}, {picked_}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInternal) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("/device:GPU:0: the fan stands still"));
  EXPECT_TRUE(session.Run({{rows_, Row(1)}}, {picked_}).ok());
}

TEST(Stream, UninitializedVariableIsToldByName) {
  for (const bool resource : {true, false}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable v = GetVariable(g, "weights", {2}, Zeros());
    const Output value = v.value(), more = v.AssignAdd({1.f, 1.f});
    Session session = Start(g);
    for (const Output& fetch : {value, more}) {
      const absl::Status s = session.Run({fetch}).status();
      EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
      EXPECT_THAT(std::string(s.message()), HasSubstr("weights"));
    }
  }
}

// ---- the end of steps and sessions

TEST(Stream, TimeLimitEndsAStepOnceTheStreamResumes) {
  Graph g;
  const Chain chain(g, 20);
  Session session = Start(g);
  const Feeds feeds = {{chain.x, Tensor::Vector<float>({1})}};
  LateStream& stream = LateDeviceOf(session).late_stream();
  stream.Pause();
  RunOptions options;
  options.timeout = milliseconds(20);
  auto result =
      std::async(std::launch::async, [&] { return session.Run(feeds, {chain.last}, {}, options); });
  std::this_thread::sleep_for(milliseconds(60));
  stream.Resume();
  EXPECT_EQ(result.get().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(session.Run(feeds, {chain.last}).ok());
}

TEST(Stream, CloseCancelsAStepThatWaits) {
  Graph g;
  const Chain chain(g, 20);
  Session session = Start(g);
  LateStream& stream = LateDeviceOf(session).late_stream();
  stream.Pause();
  auto result = std::async(std::launch::async, [&] {
    return session.Run({{chain.x, Tensor::Vector<float>({1})}}, {chain.last});
  });
  while (stream.num_pending() < 22) std::this_thread::yield();
  session.Close();
  stream.Resume();
  EXPECT_EQ(result.get().status().code(), absl::StatusCode::kCancelled);
}

// ---- memory

TEST(Stream, StepsLeaveNoMemoryBehind) {
  Graph g;
  const TestModel model = AddConvNet(g);
  Session session = Start(g, {.num_threads = 2});
  ASSERT_TRUE(RunModel(session, model, {8, 5}).ok());
  const int64_t before = LateDeviceOf(session).memory().bytes_in_use();
  ASSERT_TRUE(RunModel(session, model, {8, 5, 8, 5, 8, 5}).ok());
  EXPECT_EQ(LateDeviceOf(session).memory().bytes_in_use(), before);
}

TEST(Stream, StepsAndHandlesMayOutliveTheSession) {
  Graph g(GraphOptions{.use_resource = true});
  const Variable v = GetVariable(g, "v", {64}, Ones());
  const Output x = Placeholder(g, DT_FLOAT, {64});
  const Output y = Tanh(x) * Sigmoid(x) + v.value();
  Step step;
  Tensors out, handles;
  {
    Session session = Start(g);
    ASSERT_TRUE(session.Run(v.initializer()).ok());
    step = *session.Prepare({x}, {y});
    ASSERT_TRUE(step.Run({Tensor::Zeros(DT_FLOAT, Shape({64}))}, &out).ok());
    handles = *session.Run({v.handle()});
  }
  step = Step();  // with an arena on the device
  EXPECT_THAT(FloatsOf(out[0]), Each(1));
  EXPECT_NE(handles[0].data<ResourceHandle>()->resource, nullptr);
  handles.clear();
}

TEST(Stream, NoRoomIsResourceExhausted) {
  Graph g;
  const Output n = Placeholder(g, DT_INT32, {});
  const Output sum = ReduceSum(Fill(Reshape(n, {1}), Const(g, 1.f)) * 2.f);
  Session session = Start(g, {}, {.memory = size_t{1} << 20});
  const auto run = [&](int32_t count) { return session.Run({{n, Tensor::Scalar(count)}}, {sum}); };
  const absl::Status s = run(1 << 20).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("Fill"));
  const auto out = run(1000);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 2000);
}

TEST(Stream, StepThatDoesNotFitIsResourceExhausted) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {1 << 18});  // an arena larger than the memory
  const Output y = ReduceSum(Tanh(x) * Sigmoid(x));
  Session session = Start(g, {}, {.memory = size_t{1} << 20});
  const auto out = session.Run({{x, Tensor::Zeros(DT_FLOAT, Shape({1 << 18}))}}, {y});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
  EXPECT_THAT(std::string(out.status().message()), HasSubstr("float[262144]"));
  EXPECT_THAT(std::string(out.status().message()), ContainsRegex("of node [A-Za-z]+ "));
  EXPECT_THAT(std::string(out.status().message()), HasSubstr("GPU:0"));
  EXPECT_THAT(std::string(out.status().message()),
              ContainsRegex("; [0-9]+ bytes are in use, [0-9]+ free"));
}

}  // namespace
}  // namespace weir
