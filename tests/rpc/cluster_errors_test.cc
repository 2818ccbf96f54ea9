// What a master does when a task answers in another order than Weir's do, or not at all: the test
// plays the task.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_method.h>

#include <functional>
#include <map>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/tensor/mutex.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/master.pb.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/client.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/lib/listener.h"
#include "weir/rpc/lib/message_bytes.h"
#include "weir/rpc/server.h"
#include "weir/session/session.h"

namespace weir::rpc {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Its port is free again when this returns.
int FreePort() { return (*Listener::Bind("127.0.0.1", 0))->port(); }

// A task that answers what the test wants.
class PlayedTask final : public grpc::CallbackGenericService {
 public:
  // An answer: a message or an error, after some time; or none.
  struct Answer {
    grpc::ByteBuffer message = {};
    absl::Status status = absl::OkStatus();
    milliseconds after{0};
    bool never = false;
  };
  using Answers = std::function<Answer(const std::string& method)>;

  PlayedTask(int port, Answers answers) : answers_(std::move(answers)) {
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(this);
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
  }
  ~PlayedTask() override { server_->Shutdown(std::chrono::system_clock::now()); }

 private:
  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Call(Answer answer) : answer_(std::move(answer)) { StartRead(&request_); }

   private:
    void OnReadDone(bool) override {
      if (answer_.never) return;
      thread_ = std::thread([this] {
        std::this_thread::sleep_for(answer_.after);
        if (!answer_.status.ok()) return Finish(ToGrpc(answer_.status));
        StartWriteAndFinish(&answer_.message, grpc::WriteOptions(), grpc::Status::OK);
      });
    }
    void OnCancel() override {
      if (answer_.never) Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override {
      if (thread_.joinable()) thread_.detach();
      delete this;
    }

    Answer answer_;
    grpc::ByteBuffer request_;
    std::thread thread_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::string& path = context->method();
    return new Call(answers_(path.substr(path.rfind('/') + 1)));
  }

  const Answers answers_;
  std::unique_ptr<grpc::Server> server_;
};

// What a task answers that does all it is asked for.
PlayedTask::Answer Usual(const std::string& method) {
  if (method == "GetStatus") {
    proto::GetStatusResponse status;
    proto::DeviceAttributes* const device = status.add_device_attributes();
    device->set_name("/job:ps/replica:0/task:0/device:CPU:0");
    device->set_device_type("CPU");
    device->set_incarnation(7);
    return {.message = ToBytes(status)};
  }
  if (method == "RegisterGraph") {
    proto::RegisterGraphResponse registered;
    registered.set_graph_handle("1");
    return {.message = ToBytes(registered)};
  }
  return {.message = ToBytes(proto::RunGraphResponse())};
}

class ClusterErrorsTest : public testing::Test {
 protected:
  void SetUp() override {
    EnableGrpcTargets();
    const int ps = FreePort(), worker = FreePort();
    ps_ = std::make_unique<PlayedTask>(ps, [this](const std::string& method) {
      const MutexLock lock(mutex_);
      const auto found = answers_.find(method);
      return found == answers_.end() ? Usual(method) : found->second;
    });
    ServerOptions options;
    options.port = worker;
    options.cluster = ClusterOptions{
        *ClusterSpec::Parse(absl::StrCat("ps|127.0.0.1:", ps, ",worker|127.0.0.1:", worker)),
        {"worker", 0}};
    options.cluster->peer_timeout = milliseconds(4000);
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    worker_ = *std::move(server);
    const DeviceScope on(g_, "/job:ps/task:0");
    x_ = Identity(Placeholder(g_, DT_FLOAT, Shape(), "fed"), "x");
  }

  // A call of the worker's master service that ends after a while.
  template <class Request, class Response>
  absl::Status Ask(const std::string& method, const Request& request, Response* response) {
    const auto channel =
        grpc::CreateChannel(worker_->target().substr(7), grpc::InsecureChannelCredentials());
    const std::string path = "/tensorflow.MasterService/" + method;
    const grpc::internal::RpcMethod rpc(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + milliseconds(2000));
    return FromGrpc(
        grpc::internal::BlockingUnaryCall(channel.get(), rpc, &context, request, response));
  }

  void SetAnswer(const std::string& method, PlayedTask::Answer answer) {
    const MutexLock lock(mutex_);
    answers_[method] = std::move(answer);
  }

  Mutex mutex_;
  std::map<std::string, PlayedTask::Answer> answers_ ABSL_GUARDED_BY(mutex_);  // others are usual
  std::unique_ptr<PlayedTask> ps_;
  std::unique_ptr<Server> worker_;
  Graph g_;
  Output x_;
};

// The receiver hears of the failure before the master does.
TEST_F(ClusterErrorsTest, TheErrorOfTheTaskWhereItBeganIsReported) {
  const absl::Status error = absl::InvalidArgumentError("not a number\n\t [[{{node x}}]]");
  proto::RunGraphResponse ran;
  ran.set_status_code(proto::error::INVALID_ARGUMENT);
  ran.set_status_error_message(std::string(error.message()));
  SetAnswer("RecvTensor", {.status = error});
  SetAnswer("RunGraph", {.message = ToBytes(ran), .after = milliseconds(200)});
  const Output y = x_ + 1.f;
  auto session = Session::Create(g_, {.target = worker_->target()});
  ASSERT_TRUE(session.ok()) << session.status();
  const Output fed = g_.FindOutput("fed:0").value();
  const absl::Status status = session->Run({{fed, Tensor::Scalar(1.f)}}, {y}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              StartsWith("From /job:ps/replica:0/task:0:\nnot a number"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("remote target")));
}

// The task does not say what it passed on.
TEST_F(ClusterErrorsTest, AnErrorThatOnlyTheReceiverSeesIsReportedToo) {
  SetAnswer("RecvTensor", {.status = absl::InvalidArgumentError("not a number")});
  SetAnswer("RunGraph", {.never = true});
  const Output y = x_ + 1.f;
  auto session = Session::Create(g_, {.target = worker_->target()});
  ASSERT_TRUE(session.ok()) << session.status();
  const Output fed = g_.FindOutput("fed:0").value();
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = session->Run({{fed, Tensor::Scalar(1.f)}}, {y}).status();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10000));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("not a number"));
  EXPECT_THAT(status.message(), HasSubstr("remote target /job:ps/replica:0/task:0"));
}

// A call that prepares a step ends with its client, although no task answers.
TEST_F(ClusterErrorsTest, CallsEndWhenTheClientLeaves) {
  SetAnswer("RegisterGraph", {.never = true});
  proto::CreateSessionRequest create;
  ExportGraphDef(g_, create.mutable_graph_def());
  proto::CreateSessionResponse created;
  const absl::Status opened = Ask("CreateSession", create, &created);
  ASSERT_TRUE(opened.ok()) << opened;
  const auto expect_end = [&](const absl::Status& status) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    const auto until = std::chrono::steady_clock::now() + milliseconds(1500);
    while (worker_->num_calls() > 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(milliseconds(10));
    EXPECT_EQ(worker_->num_calls(), 0);
  };
  proto::MakeCallableRequest make;
  make.set_session_handle(created.session_handle());
  make.mutable_options()->add_feed("fed:0");
  make.mutable_options()->add_fetch("x:0");
  proto::MakeCallableResponse made;
  expect_end(Ask("MakeCallable", make, &made));
  proto::PartialRunSetupRequest set_up;
  set_up.set_session_handle(created.session_handle());
  set_up.add_feed("fed:0");
  set_up.add_fetch("x:0");
  proto::PartialRunSetupResponse was_set_up;
  expect_end(Ask("PartialRunSetup", set_up, &was_set_up));
}

// A task that answers what it is asked for, but not the step, is alive.
TEST_F(ClusterErrorsTest, AnotherIncarnationEndsTheStep) {
  SetAnswer("RecvTensor", {.never = true});
  SetAnswer("RunGraph", {.never = true});
  const Output y = x_ + 1.f;
  auto session = Session::Create(g_, {.target = worker_->target()});
  ASSERT_TRUE(session.ok()) << session.status();
  const Output fed = g_.FindOutput("fed:0").value();
  absl::Status status;
  std::thread waiter([&] { status = session->Run({{fed, Tensor::Scalar(1.f)}}, {y}).status(); });
  std::this_thread::sleep_for(milliseconds(2500));
  EXPECT_TRUE(status.ok()) << status;  // it waits
  proto::GetStatusResponse restarted;
  proto::DeviceAttributes* const device = restarted.add_device_attributes();
  device->set_name("/job:ps/replica:0/task:0/device:CPU:0");
  device->set_incarnation(8);
  SetAnswer("GetStatus", {.message = ToBytes(restarted)});
  waiter.join();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("was restarted"));
}

}  // namespace
}  // namespace weir::rpc
