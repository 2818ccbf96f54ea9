#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/runtime/kernel.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/linalg/linalg.h"
#include "weir/ops/train/optimizers.h"
#include "weir/rpc/client.h"
#include "weir/rpc/lib/clients.h"
#include "weir/rpc/server.h"
#include "weir/rpc/worker.h"

// Sessions in processes of their own. This program is also their worker, in which three ops do what
// a kernel that an attacker controls could do.
namespace weir::rpc {
namespace {

using ::testing::HasSubstr;

absl::Status Crash(KernelContext&) {
  std::raise(SIGSEGV);
  return absl::OkStatus();
}

absl::Status Spin(KernelContext&) {
  static std::atomic<int64_t> count{0};
  for (;;) ++count;
}

// Fails with the names of what succeeds and should not.
absl::Status Escape(KernelContext& c) {
  std::string done;
  const auto expect_refused = [&](const char* what, bool is_refused) {
    if (!is_refused) absl::StrAppend(&done, what, " ");
  };
  expect_refused("open", open("/etc/passwd", O_RDONLY) < 0);
  expect_refused("create", open("/tmp/weir-escape", O_CREAT | O_WRONLY, 0600) < 0);
  expect_refused("unlink", unlink("/tmp/weir-escape") < 0 && errno == EPERM);
  expect_refused("stat", access("/etc/passwd", R_OK) < 0);
  expect_refused("list", opendir("/") == nullptr);
  expect_refused("socket", socket(AF_INET, SOCK_STREAM, 0) < 0);
  expect_refused("signal", kill(getppid(), 0) < 0);
  expect_refused("fork", fork() < 0);
  pid_t child = 0;
  char* const none[] = {nullptr};
  expect_refused("exec", posix_spawn(&child, "/bin/true", nullptr, nullptr, none, none) != 0);
  if (!done.empty()) return Internal("possible: ", done);
  c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

int RunAsWorker(int argc, char** argv) {
  auto options = WorkerOptions::FromArguments({argv + 2, argv + argc});
  if (!options.ok()) return 1;
  static KernelRegistry kernels(&BuiltinKernels());
  kernels.Add("MatrixInverse", kCpu, Crash);
  kernels.Add("Cholesky", kCpu, Escape);
  kernels.Add("MatrixDeterminant", kCpu, Spin);
  options->master.session.kernels = &kernels;
  std::fprintf(stderr, "%s\n", RunWorker(*std::move(options)).ToString().c_str());
  return 1;
}

int NumDescriptors() {
  int count = 0;
  DIR* const directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

class IsolationTest : public ::testing::Test {
 protected:
  void SetUp() override { Serve({}); }
  void Serve(const WorkerOptions& worker, std::shared_ptr<Clients> clients = nullptr) {
    ServerOptions options;
    options.clients = std::move(clients);
    options.isolation.program = "/proc/self/exe";
    options.isolation.arguments = worker.ToArguments();
    options.isolation.arguments.insert(options.isolation.arguments.begin(), kWorkerCommand);
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    EnableGrpcTargets();
  }
  absl::StatusOr<Session> Open(const Graph& g) {
    return Session::Create(g, {.target = server_->target()});
  }
  static float Value(const absl::StatusOr<Tensors>& out) {
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0].data<float>()[0] : 0;
  }
  // A matrix that is fed: constants are folded.
  static Feeds Fed(const Output& x) { return {{x, Tensor::Zeros(DT_FLOAT, Shape({2, 2}))}}; }

  std::unique_ptr<Server> server_;
};

TEST_F(IsolationTest, TrainsLikeALocalSession) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
  const Variable slope = GetVariable(g, "slope", {}, Zeros());
  const Output loss = ReduceMean(SquaredDifference(slope * x, x * 3.f));
  const Operation train = GradientDescent(0.1).Minimize(loss);
  const Operation init = GlobalVariablesInitializer(g);
  auto session = Open(g), other = Open(g);
  ASSERT_TRUE(session.ok() && other.ok()) << session.status();
  ASSERT_TRUE(session->Run(init).ok());
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(session->Run({{x, Tensor::Vector<float>({1, 2})}}, {}, {train}).ok());
  EXPECT_NEAR(Value(session->Run({slope.value()})), 3, 1e-4);
  const Output more = slope.value() + 1.f;  // extends the graph
  EXPECT_NEAR(Value(session->Run({more})), 4, 1e-4);
  EXPECT_TRUE(absl::IsFailedPrecondition(other->Run({slope.value()}).status()))
      << "state is its own";
  session->Reset();
  EXPECT_TRUE(absl::IsAborted(other->Run({slope.value()}).status()));
  EXPECT_EQ(server_->num_sessions(), 0);
}

TEST_F(IsolationTest, CrashEndsOnlyItsSession) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2, 2}, "x");
  const Output crash = MatrixInverse(x), sum = ReduceSum(x);
  auto session = Open(g), other = Open(g);
  ASSERT_TRUE(session.ok() && other.ok());
  EXPECT_TRUE(session->Run(Fed(x), {sum}).ok());
  for (const Output& fetch : {crash, sum}) {
    const absl::Status status = session->Run(Fed(x), {fetch}).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("signal 11 (Segmentation fault)"));
  }
  EXPECT_EQ(Value(other->Run(Fed(x), {sum})), 0);
  EXPECT_EQ(Value(Open(g)->Run(Fed(x), {sum})), 0);
}

TEST_F(IsolationTest, KernelsReachNothingElse) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2, 2}, "x");
  auto session = Open(g);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(Value(session->Run(Fed(x), {Cholesky(x)})), 0);
}

TEST_F(IsolationTest, CancellationAndTimeLimitsReachTheProcess) {
  Graph g;
  const Output taken = Queue::Fifo(g, 1, {DT_FLOAT}).Dequeue()[0];
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
  while (server_->num_calls() > 0) std::this_thread::yield();
  EXPECT_EQ(Value(session->Run({Const(g, 1.f)})), 1) << "the session goes on";
}

TEST_F(IsolationTest, ClosingEndsCallsEvenInAKernel) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2, 2}, "x");
  const Output spin = MatrixDeterminant(x);
  absl::Status status;
  // ABORTED: the session has been closed before the server looked for it.
  for (int ms = 10; ms < 2000 && (status.ok() || absl::IsAborted(status)); ms *= 2) {
    auto session = Open(g);
    ASSERT_TRUE(session.ok());
    std::thread running([&] { status = session->Run(Fed(x), {spin}).status(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    session->Reset();
    running.join();
  }
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(IsolationTest, LimitsMemoryAndProcessorTimeOfASession) {
  Serve({.memory_bytes = 64 << 20, .cpu_seconds = 1});
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2, 2}, "x");
  const Output spin = MatrixDeterminant(x), sum = ReduceSum(x);
  auto session = Open(g), other = Open(g);
  ASSERT_TRUE(session.ok() && other.ok()) << session.status();
  const Output n = Placeholder(g, DT_INT32, {1}, "n");
  const Output filled = Fill(n, Const(g, 1.f));
  const absl::Status status =
      session->Run({{n, Tensor::Vector<int32_t>({50 << 20})}}, {filled}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(session->Run(Fed(x), {sum}).ok());
  const absl::Status late = session->Run(Fed(x), {spin}).status();
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("it used its CPU time"));
  EXPECT_TRUE(other->Run(Fed(x), {sum}).ok());
}

TEST_F(IsolationTest, ProcessorTimeIsChargedToTheClient) {
  // The SHA-256 of "sesame".
  auto clients = Clients::Parse(
      "clients",
      "alice cpu-seconds=1 "
      "token-sha256=d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272");
  ASSERT_TRUE(clients.ok()) << clients.status();
  Serve({}, *std::move(clients));
  EnableGrpcTargets({.token = "sesame"});
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2, 2}, "x");
  const Output spin = MatrixDeterminant(x), sum = ReduceSum(x);
  auto session = Open(g);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run(Fed(x), {sum}).ok());
  EXPECT_FALSE(session->Run(Fed(x), {spin}, {}, {.timeout = std::chrono::seconds(1)}).ok());
  // The kernel goes on. On a busy machine it takes a while to use a second.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  absl::Status status;
  while (status.ok() && std::chrono::steady_clock::now() < until)
    status = session->Run(Fed(x), {sum}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Client alice has reached its quota of 1 CPU seconds per minute"));
  session->Reset();
}

TEST_F(IsolationTest, LeavesNoProcessesAndNoDescriptors) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2, 2}, "x");
  const Output crash = MatrixInverse(x), sum = ReduceSum(x);
  const auto use = [&] {
    auto session = Open(g), crashing = Open(g);
    EXPECT_TRUE(session->Run(Fed(x), {sum}).ok());
    EXPECT_FALSE(crashing->Run(Fed(x), {crash}).ok());
  };
  use();
  const int before = NumDescriptors();
  for (int i = 0; i < 5; ++i) use();
  // gRPC closes connections in the background.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (NumDescriptors() > before && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(NumDescriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Isolation, ProgramThatCannotStartIsUnavailable) {
  ServerOptions options;
  options.isolation.program = "/does/not/exist";
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok());
  EnableGrpcTargets();
  Graph g;
  const absl::Status status = Session::Create(g, {.target = (*server)->target()}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Cannot start a process"));
}

}  // namespace
}  // namespace weir::rpc

int main(int argc, char** argv) {
  if (argc > 1 && absl::string_view(argv[1]) == weir::rpc::kWorkerCommand)
    return weir::rpc::RunAsWorker(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
