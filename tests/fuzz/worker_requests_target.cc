#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "weir/core/io/graph_io.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/cluster_task.h"
#include "weir/rpc/lib/timer.h"
#include "weir/rpc/master.h"
#include "weir/tests/fuzz/targets.h"

// Requests of masters and other tasks to a task of a cluster: several per input, in one session.
// Each produces a response or an error, none leaves a step behind, and a plain step succeeds
// afterward.
namespace weir::fuzz {

namespace {

class Master {
 public:
  Master() {
    rpc::MasterOptions options;
    auto devices = rpc::Master::Create(options);
    Require(devices.ok(), "the task has devices");
    options.session.resources = (*devices)->resources();
    // Nobody listens at the addresses.
    const auto cluster = rpc::ClusterSpec::Parse("ps|127.0.0.1:1,worker|127.0.0.1:2");
    auto task = rpc::ClusterTask::Create(*cluster, {"ps", 0}, (*devices)->devices(), options);
    Require(task.ok(), "a task is created");
    task_ = *std::move(task);
    proto::GetStatusResponse status;
    rpc::Call call;
    Require(task_->GetStatus({}, call, &status).ok(), "a task has a status");
    incarnation_ = status.device_attributes(0).incarnation();
  }

  void SendRequests(Input in) {
    Open();
    graph_ = RegisterPlainGraph();
    for (int requests = 0; !in.empty() && requests < 20; ++requests) {
      const uint8_t method = in.Byte();
      patience_ = std::chrono::milliseconds(50);
      Send(method % 8, in.NextBytes());
    }
    patience_ = std::chrono::minutes(1);
    Open();  // a request may have ended it
    graph_ = RegisterPlainGraph();
    Require(PlainStepSucceeds(), "a plain step succeeds afterward");
    proto::DeleteWorkerSessionRequest close;
    close.set_session_handle(kSession);
    Require(Ask(close, &rpc::ClusterTask::DeleteWorkerSession).ok(), "a session is closed");
  }

 private:
  static constexpr char kSession[] = "s";

  template <class Request, class RequestArg, class Response>
  absl::StatusOr<Response> Ask(Request& request,
                               absl::Status (rpc::ClusterTask::*method)(RequestArg&, rpc::Call&,
                                                                        Response*)) {
    rpc::Call call;
    // A client does not wait forever; and no machine takes a minute for a plain step.
    const rpc::ScopedAlarm leaves(timer_, rpc::Timer::Clock::now() + patience_, [&call] {
      call.cancellation.Cancel(absl::CancelledError("the client has gone"));
    });
    Response response;
    const absl::Status status = (task_.get()->*method)(request, call, &response);
    Require(status.ok() || !status.message().empty(), "an error has a message");
    if (!status.ok()) return status;
    return response;
  }

  void Open() {
    proto::CreateWorkerSessionRequest request;
    request.set_session_handle(kSession);
    request.set_isolate_session_state(true);
    Require(Ask(request, &rpc::ClusterTask::CreateWorkerSession).ok(), "a session is opened");
  }

  std::string RegisterPlainGraph() {
    proto::RegisterGraphRequest request;
    request.set_session_handle(kSession);
    Graph g;
    const Output doubled = Const(g, 2.f, "x") * 2.f;
    NodeBuilder send(g, "_Send");
    send.Input(doubled)
        .Attr("tensor_name", "y")
        .Attr("send_device", kDevice)
        .Attr("send_device_incarnation", static_cast<int64_t>(incarnation_))
        .Attr("recv_device", kDevice)
        .Build();
    ExportGraphDef(g, request.mutable_graph_def());
    const auto registered = Ask(request, &rpc::ClusterTask::RegisterGraph);
    Require(registered.ok(), "a plain graph is registered");
    return registered->graph_handle();
  }

  bool PlainStepSucceeds() {
    proto::RunGraphRequest request;
    request.set_session_handle(kSession);
    request.set_graph_handle(graph_);
    request.set_step_id(next_step_++);
    request.add_recv_key(absl::StrCat(kDevice, ";", absl::Hex(incarnation_, absl::kZeroPad16), ";",
                                      kDevice, ";y;0:0"));
    const auto ran = Ask(request, &rpc::ClusterTask::RunGraph);
    return ran.ok() && ran->recv_size() == 1;
  }

  void Send(int method, absl::string_view bytes) {
    switch (method) {
      case 0:
        return Mutated(bytes, &rpc::ClusterTask::RegisterGraph);
      case 1:
        return Mutated(bytes, &rpc::ClusterTask::RunGraph);
      case 2:
        return Receive(bytes);
      case 3:
        return Mutated(bytes, &rpc::ClusterTask::CreateWorkerSession);
      case 4:
        return Mutated(bytes, &rpc::ClusterTask::CleanupGraph);
      case 5:
        return Mutated(bytes, &rpc::ClusterTask::DeregisterGraph);
      case 6:
        return Mutated(bytes, &rpc::ClusterTask::DeleteWorkerSession);
      default:
        return Mutated(bytes, &rpc::ClusterTask::CleanupAll);
    }
  }

  template <class RequestArg, class Response>
  void Mutated(absl::string_view bytes,
               absl::Status (rpc::ClusterTask::*method)(RequestArg&, rpc::Call&, Response*)) {
    using Request = std::remove_const_t<RequestArg>;
    Request request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    // The session and the graph that there are, unless the input names others.
    if constexpr (requires { request.session_handle(); }) {
      if (request.session_handle().empty()) request.set_session_handle(kSession);
    }
    if constexpr (requires { request.graph_handle(); }) {
      if (request.graph_handle().empty()) request.set_graph_handle(graph_);
    }
    const absl::StatusOr<Response> response = Ask(request, method);
    if constexpr (std::is_same_v<Request, proto::RegisterGraphRequest>) {
      if (response.ok()) graph_ = response->graph_handle();
    }
    if constexpr (std::is_same_v<Request, proto::RunGraphRequest>) {
      proto::CleanupGraphRequest cleanup;
      cleanup.set_step_id(request.step_id());
      Require(Ask(cleanup, &rpc::ClusterTask::CleanupGraph).ok(), "a step is cleaned up");
    }
  }

  void Receive(absl::string_view bytes) {
    proto::RecvTensorRequest request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    Cancellation cancellation;
    bool is_answered = false;
    task_->Receive(request.step_id(), request.rendezvous_key(), request.request_id(), &cancellation,
                   [&](const absl::StatusOr<SentValue>&) { is_answered = true; });
    cancellation.Cancel(absl::CancelledError("the receiver has gone"));
    Require(is_answered, "every receiver gets an answer");
  }

  static constexpr char kDevice[] = "/job:ps/replica:0/task:0/device:CPU:0";

  rpc::Timer timer_;
  std::chrono::milliseconds patience_ = std::chrono::minutes(1);
  std::unique_ptr<rpc::ClusterTask> task_;
  uint64_t incarnation_ = 0;
  std::string graph_;  // the one that was registered last
  int64_t next_step_ = int64_t{1} << 60;
};

}  // namespace

void WorkerRequests(absl::string_view bytes) {
  static Master* const master = new Master;
  master->SendRequests(Input(bytes));
}

std::vector<Row> Rows() { return {{"worker_requests", WorkerRequests, 1000}}; }

}  // namespace weir::fuzz
