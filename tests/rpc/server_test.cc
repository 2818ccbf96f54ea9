#include "weir/rpc/server.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <thread>

#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"
#include "weir/rpc/client.h"

namespace weir::rpc {
namespace {

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = Server::Start({});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    EnableGrpcTargets();
  }

  absl::StatusOr<Session> Open(const Graph& g, bool isolated = true) {
    return Session::Create(g, {.target = server_->target(), .isolate_session_state = isolated});
  }
  static float Value(const absl::StatusOr<Tensors>& out) {
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0].scalar<float>() : 0;
  }

  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, TrainsLikeALocalSession) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
  const Variable slope = GetVariable(g, "slope", {}, Zeros());
  const Output loss = ReduceMean(SquaredDifference(slope * x, x * 3.f));
  const Operation train = GradientDescent(0.1).Minimize(loss);
  const Operation init = GlobalVariablesInitializer(g);
  auto session = Open(g);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run(init).ok());
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(session->Run({{x, Tensor::Vector<float>({1, 2})}}, {}, {train}).ok());
  EXPECT_NEAR(Value(session->Run({slope.value()})), 3, 1e-4);
}

TEST_F(ServerTest, GraphGrowsBetweenRuns) {
  Graph g;
  const Output a = Const(g, 2.f);
  auto session = Open(g);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(Value(session->Run({a})), 2);
  const Output b = a * 3.f;
  EXPECT_EQ(Value(session->Run({b})), 6);
  const Output c = b + a;
  EXPECT_EQ(Value(session->Run({c})), 8);
}

TEST_F(ServerTest, GraphGrowsWhileAStepIsBlocked) {
  Graph g;
  const Queue queue = Queue::Fifo(g, 1, {DT_FLOAT});
  const Output taken = queue.Dequeue()[0];
  auto session = Open(g);
  ASSERT_TRUE(session.ok());
  float got = 0;
  std::thread waiting([&] { got = Value(session->Run({taken})); });
  while (server_->num_calls() == 0) std::this_thread::yield();
  const Operation put = queue.Enqueue({Const(g, 5.f)});
  EXPECT_TRUE(session->Run(put).ok());
  waiting.join();
  EXPECT_EQ(got, 5);
}

TEST_F(ServerTest, StateIsSharedUnlessIsolated) {
  Graph g;
  const Variable v = GetVariable(g, "v", {}, Constant(7));
  const Operation init = GlobalVariablesInitializer(g);
  auto first = Open(g, false), second = Open(g, false), third = Open(g, true);
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  ASSERT_TRUE(first->Run(init).ok());
  EXPECT_EQ(Value(second->Run({v.value()})), 7);
  EXPECT_TRUE(absl::IsFailedPrecondition(third->Run({v.value()}).status()));
  second->Reset();
  EXPECT_TRUE(absl::IsAborted(first->Run({v.value()}).status()));
  auto fourth = Open(g, false);
  EXPECT_TRUE(absl::IsFailedPrecondition(fourth->Run({v.value()}).status()));
}

TEST_F(ServerTest, PartialRun) {
  Graph g;
  const Output a = Placeholder(g, DT_FLOAT, {}, "a"), b = Placeholder(g, DT_FLOAT, {}, "b");
  const Output sum = a + 1.f;
  const Output product = sum * b;
  const Variable v = GetVariable(g, "v", {}, Zeros());
  const Output assigned = v.Assign(product);
  auto session = Open(g);
  ASSERT_TRUE(session.ok());
  auto run = session->StartPartialRun({a, b}, {sum, product}, {assigned});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(absl::IsInvalidArgument(run->Run({}, {product}).status())) << "nothing is fed yet";
  EXPECT_EQ(Value(run->Run({{a, Tensor::Scalar(2.f)}}, {sum})), 3);
  EXPECT_FALSE(run->is_over());
  EXPECT_TRUE(absl::IsInvalidArgument(run->Run({{a, Tensor::Scalar(2.f)}}, {}).status()));
  EXPECT_EQ(Value(run->Run({{b, Tensor::Scalar(5.f)}}, {product})), 15);
  EXPECT_TRUE(run->is_over());
  EXPECT_EQ(Value(session->Run({v.value()})), 15) << "the target ran with the last part";
}

TEST_F(ServerTest, ErrorsNameTheNodeAndTheTask) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {}, "x");
  const Output y = x * 2.f;
  auto session = Open(g);
  ASSERT_TRUE(session.ok());
  const absl::Status status = session->Run({y}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const std::string message(status.message());
  EXPECT_NE(message.find("From /job:localhost/replica:0/task:0:"), std::string::npos) << message;
  EXPECT_NE(message.find("[[{{node x}}]]"), std::string::npos) << message;
}

TEST_F(ServerTest, TimeLimitAndCancellationEndABlockedStep) {
  Graph g;
  const Queue queue = Queue::Fifo(g, 1, {DT_FLOAT});
  const Output taken = queue.Dequeue()[0];
  auto session = Open(g);
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      session->Run({}, {taken}, {}, {.timeout = std::chrono::milliseconds(50)}).status()));
  Cancellation cancellation;
  std::thread canceller([&] {
    while (server_->num_calls() == 0) std::this_thread::yield();
    cancellation.Cancel(absl::CancelledError("enough"));
  });
  EXPECT_TRUE(
      absl::IsCancelled(session->Run({}, {taken}, {}, {.cancellation = &cancellation}).status()));
  canceller.join();
  while (server_->num_calls() > 0) std::this_thread::yield();  // the server has noticed
}

TEST_F(ServerTest, DrainWaitsForStepsAndEndsTheRest) {
  Graph g;
  const Queue queue = Queue::Fifo(g, 1, {DT_FLOAT});
  const Output taken = queue.Dequeue()[0];
  auto session = Open(g);
  ASSERT_TRUE(session.ok());
  absl::Status status;
  std::thread waiting([&] { status = session->Run({taken}).status(); });
  while (server_->num_calls() == 0) std::this_thread::yield();
  server_->Drain(std::chrono::milliseconds(100));
  waiting.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), testing::HasSubstr("shutting down"));
  EnableGrpcTargets({.connect_timeout = std::chrono::milliseconds(200)});
  EXPECT_TRUE(absl::IsUnavailable(Open(g).status()));
}

TEST_F(ServerTest, ConcurrentClientsAreIsolated) {
  constexpr int kClients = 16, kSessions = 5;
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      for (int s = 0; s < kSessions; ++s) {
        Graph g;
        const float mine = static_cast<float>(c * kSessions + s);
        const Variable v = GetVariable(g, "v", {}, Constant(mine));
        const Operation init = GlobalVariablesInitializer(g);
        auto session = Open(g);
        if (!session.ok() || !session->Run(init).ok() || Value(session->Run({v.value()})) != mine)
          ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server_->master().num_sessions(), 0);
}

TEST_F(ServerTest, LargeValues) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
  const Output twice = x * 2.f;
  auto session = Open(g);
  ASSERT_TRUE(session.ok());
  std::vector<float> numbers(5'000'000, 1.5f);
  const auto out = session->Run({{x, Tensor::Vector<float>(numbers)}}, {twice});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].num_elements(), 5'000'000);
  EXPECT_EQ((*out)[0].data<float>()[4'999'999], 3);
}

TEST_F(ServerTest, ReportsItsStatus) {
  const auto status = GetServerStatus(server_->target());
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_TRUE(status->serving);
  ASSERT_FALSE(status->devices.empty());
  EXPECT_EQ(status->devices[0], "/job:localhost/replica:0/task:0/device:CPU:0");
}

TEST(Server, PortInUseIsUnavailable) {
  auto first = Server::Start({});
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsUnavailable(Server::Start({.port = (*first)->port()}).status()));
}

TEST(Server, CertificateNeedsItsKey) {
  EXPECT_TRUE(absl::IsInvalidArgument(Server::Start({.certificate = "x"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Server::Start({.client_authority = "x"}).status()));
}

TEST(Client, NoServerIsUnavailable) {
  EnableGrpcTargets({.connect_timeout = std::chrono::milliseconds(200)});
  Graph g;
  const auto session = Session::Create(g, {.target = "grpc://127.0.0.1:1"});
  EXPECT_TRUE(absl::IsUnavailable(session.status())) << session.status();
  EXPECT_TRUE(absl::IsUnimplemented(Session::Create(g, {.target = "http://x"}).status()));
}

}  // namespace
}  // namespace weir::rpc
