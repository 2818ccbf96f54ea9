// Tasks of a cluster over gRPC: the test is their master.

#include "weir/rpc/cluster/cluster_task.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_method.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/tensor/variant.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/sent_value.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/lib/listener.h"
#include "weir/rpc/server.h"

namespace weir::rpc {
namespace {

using testing::HasSubstr;

// Its port is free again when this returns.
int FreePort() { return (*Listener::Bind("127.0.0.1", 0))->port(); }

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string ps = absl::StrCat("127.0.0.1:", FreePort()),
                      worker = absl::StrCat("127.0.0.1:", FreePort());
    cluster_ = *ClusterSpec::Parse(absl::StrCat("ps|", ps, ",worker|", worker));
    ps_ = Start({"ps", 0});
    worker_ = Start({"worker", 0});
  }

  struct Task {
    std::unique_ptr<Server> server;
    std::shared_ptr<grpc::Channel> channel;
    std::string device;
    uint64_t incarnation = 0;
  };

  Task Start(const TaskName& name, ServerOptions options = {}) {
    Task task;
    const std::string address = cluster_.AddressOf(name);
    options.port = std::stoi(address.substr(address.rfind(':') + 1));
    options.cluster = ClusterOptions{cluster_, name};
    auto server = Server::Start(options);
    EXPECT_TRUE(server.ok()) << server.status();
    task.server = *std::move(server);
    task.channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    proto::GetStatusResponse status;
    EXPECT_TRUE(Ask(task, "GetStatus", proto::GetStatusRequest(), &status).ok());
    task.device = status.device_attributes(0).name();
    task.incarnation = status.device_attributes(0).incarnation();
    return task;
  }

  template <class Request, class Response>
  static absl::Status Ask(const Task& task, const std::string& method, const Request& request,
                          Response* response) {
    const std::string path = "/tensorflow.WorkerService/" + method;
    const grpc::internal::RpcMethod rpc(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    return FromGrpc(
        grpc::internal::BlockingUnaryCall(task.channel.get(), rpc, &context, request, response));
  }

  static void OpenSession(const Task& task, const std::string& handle, bool isolated = false) {
    proto::CreateWorkerSessionRequest request;
    request.set_session_handle(handle);
    request.set_isolate_session_state(isolated);
    proto::CreateWorkerSessionResponse response;
    ASSERT_TRUE(Ask(task, "CreateWorkerSession", request, &response).ok());
  }

  // Returns the handle of the part.
  static absl::StatusOr<std::string> Register(const Task& task, const std::string& session,
                                              const Graph& graph) {
    EXPECT_TRUE(graph.status().ok()) << graph.status();
    proto::RegisterGraphRequest request;
    request.set_session_handle(session);
    ExportGraphDef(graph, request.mutable_graph_def());
    proto::RegisterGraphResponse response;
    WEIR_RETURN_IF_ERROR(Ask(task, "RegisterGraph", request, &response));
    return response.graph_handle();
  }

  static proto::RunGraphRequest Step(const std::string& session, const std::string& graph,
                                     int64_t step_id) {
    proto::RunGraphRequest request;
    request.set_session_handle(session);
    request.set_graph_handle(graph);
    request.set_step_id(step_id);
    return request;
  }
  static absl::Status Run(const Task& task, const proto::RunGraphRequest& request) {
    proto::RunGraphResponse response;
    return Ask(task, "RunGraph", request, &response);
  }

  // The two ends of an edge.
  static NodeBuilder& Between(NodeBuilder& node, const std::string& edge, const Task& from,
                              const Task& to) {
    return node.Attr("tensor_name", edge)
        .Attr("send_device", from.device)
        .Attr("send_device_incarnation", static_cast<int64_t>(from.incarnation))
        .Attr("recv_device", to.device);
  }
  static void Send(const std::string& edge, const Task& from, const Task& to, const Output& value) {
    NodeBuilder node(value.graph(), "_Send");
    node.Input(value);
    Between(node, edge, from, to).Build();
  }
  static Output Receive(Graph& g, const std::string& edge, const Task& from, const Task& to,
                        DataType type = DT_FLOAT) {
    NodeBuilder node(g, "_Recv");
    node.Attr("tensor_type", type);
    return Between(node, edge, from, to).Build()->output(0);
  }
  // The handle of the variable "v", a float[2].
  static Output VariableIn(Graph& g) {
    return Output(AddNode(g, "VarHandleOp", {},
                          {{"dtype", DT_FLOAT}, {"shape", Shape({2})}, {"shared_name", "v"}}),
                  0);
  }
  static std::string Key(const std::string& edge, const Task& from, const Task& to) {
    return absl::StrCat(from.device, ";", absl::Hex(from.incarnation, absl::kZeroPad16), ";",
                        to.device, ";", edge, ";0:0");
  }

  // Asks a task for a value, as another task does.
  static absl::StatusOr<SentValue> Fetch(const Task& from, int64_t step_id,
                                         const std::string& key) {
    proto::RecvTensorRequest request;
    request.set_step_id(step_id);
    request.set_rendezvous_key(key);
    proto::RecvTensorResponse response;
    WEIR_RETURN_IF_ERROR(Ask(from, "RecvTensor", request, &response));
    if (response.is_dead()) return SentValue{{}, true};
    WEIR_ASSIGN_OR_RETURN(Tensor value, TensorFromProto(response.tensor()));
    return SentValue{std::move(value), false};
  }

  ClusterSpec cluster_;
  Task ps_, worker_;
};

TEST_F(ClusterTest, TasksTellTheirDevices) {
  EXPECT_EQ(ps_.device, "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(worker_.device, "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_NE(ps_.incarnation, worker_.incarnation);
  proto::GetStatusResponse status;
  ASSERT_TRUE(Ask(ps_, "GetStatus", proto::GetStatusRequest(), &status).ok());
  EXPECT_EQ(status.device_attributes(0).device_type(), "CPU");
  EXPECT_EQ(status.device_attributes(0).incarnation(), ps_.incarnation);
  EXPECT_EQ(status.device_attributes(0).xla_global_id(), -1);
}

// The worker adds to a variable of the ps, whose new value comes back.
TEST_F(ClusterTest, PartsOfAStepExchangeValues) {
  OpenSession(ps_, "s");
  OpenSession(worker_, "s");
  Graph init, on_ps, on_worker;
  AddNode("AssignVariableOp", {VariableIn(init), Const(init, std::vector<float>{1.f, 2.f})});
  const auto initialize = Register(ps_, "s", init);
  ASSERT_TRUE(initialize.ok()) << initialize.status();
  ASSERT_TRUE(Run(ps_, Step("s", *initialize, 1)).ok());
  const Output v = VariableIn(on_ps);
  Node* const add = AddNode("AssignAddVariableOp", {v, Receive(on_ps, "delta", worker_, ps_)});
  {
    const ControlDependencies after(on_ps, {Operation(add)});
    Send("sum", ps_, worker_, AddOp("ReadVariableOp", {v}, {{"dtype", DT_FLOAT}}));
  }
  Send("delta", worker_, ps_, Const(on_worker, std::vector<float>{10.f, 20.f}));
  Send("result", worker_, worker_, Receive(on_worker, "sum", ps_, worker_) * 2.f);
  const auto ps_part = Register(ps_, "s", on_ps), worker_part = Register(worker_, "s", on_worker);
  ASSERT_TRUE(ps_part.ok() && worker_part.ok()) << ps_part.status() << worker_part.status();
  for (int64_t step = 2; step < 5; ++step) {
    std::thread other([&] {
      const absl::Status status = Run(ps_, Step("s", *ps_part, step));
      EXPECT_TRUE(status.ok()) << status;
    });
    proto::RunGraphRequest request = Step("s", *worker_part, step);
    request.add_recv_key(Key("result", worker_, worker_));
    proto::RunGraphResponse response;
    const absl::Status status = Ask(worker_, "RunGraph", request, &response);
    other.join();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(response.recv_size(), 1);
    const float sum = 2.f + 20.f * static_cast<float>(step - 1);
    EXPECT_EQ(TensorFromProto(response.recv(0).tensor())->data<float>()[1], 2 * sum);
  }
}

TEST_F(ClusterTest, AnErrorReachesTheOtherParts) {
  OpenSession(ps_, "s");
  OpenSession(worker_, "s");
  Graph on_ps, on_worker;
  Send("y", ps_, worker_, CheckNumerics(Receive(on_ps, "x", worker_, ps_), "not a number", "chk"));
  Send("x", worker_, ps_, Log(Const(on_worker, -1.f)));
  Send("z", worker_, worker_, Receive(on_worker, "y", ps_, worker_));
  const auto ps_part = Register(ps_, "s", on_ps), worker_part = Register(worker_, "s", on_worker);
  ASSERT_TRUE(ps_part.ok() && worker_part.ok());
  proto::RunGraphResponse from_ps;
  std::thread other([&] {
    proto::RunGraphRequest request = Step("s", *ps_part, 7);
    request.set_store_errors_in_response_body(true);
    EXPECT_TRUE(Ask(ps_, "RunGraph", request, &from_ps).ok());
  });
  const absl::Status status = Run(worker_, Step("s", *worker_part, 7));
  other.join();
  EXPECT_EQ(from_ps.status_code(), proto::error::INVALID_ARGUMENT);
  EXPECT_THAT(from_ps.status_error_message(), HasSubstr("not a number"));
  EXPECT_THAT(from_ps.status_error_message(), HasSubstr("\n\t [[{{node chk}}]]"));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("not a number"));
  EXPECT_THAT(status.message(), HasSubstr("from remote target /job:ps/replica:0/task:0"));
}

TEST_F(ClusterTest, WhatIsNotThereIsAborted) {
  const absl::Status session = Run(ps_, Step("s", "0", 1));
  EXPECT_EQ(session, absl::AbortedError("Session handle is not found: s. Possibly this worker "
                                        "(\"/job:ps/replica:0/task:0\") just restarted."));
  EXPECT_EQ(Register(ps_, "s", Graph()).status(), session);
  OpenSession(ps_, "s");
  EXPECT_EQ(Run(ps_, Step("s", "0", 1)),
            absl::AbortedError("Graph handle is not found: 0. Possibly, this worker just "
                               "restarted."));
  Task before = {.device = ps_.device, .incarnation = ps_.incarnation + 1};
  const auto value = Fetch(ps_, 1, Key("x", before, worker_));
  EXPECT_TRUE(absl::IsAborted(value.status()));
  EXPECT_THAT(value.status().message(), HasSubstr("different device incarnation"));
  EXPECT_TRUE(absl::IsInvalidArgument(Fetch(ps_, 1, "x").status()));
}

TEST_F(ClusterTest, ARequestThatComesTwiceRunsOnce) {
  OpenSession(ps_, "s");
  Graph g;
  Const(g, 1.f);
  const auto part = Register(ps_, "s", g);
  ASSERT_TRUE(part.ok());
  proto::RunGraphRequest request = Step("s", *part, 1);
  request.set_request_id(99);
  EXPECT_TRUE(Run(ps_, request).ok());
  EXPECT_EQ(Run(ps_, request),
            absl::AbortedError("The same RunGraph (Worker) request was received twice."));
}

TEST_F(ClusterTest, CleanupEndsWaits) {
  absl::Status waited;
  std::thread waiter([&] { waited = Fetch(ps_, 5, Key("x", ps_, worker_)).status(); });
  proto::CleanupGraphRequest request;
  request.set_step_id(5);
  while (waited.ok()) {
    proto::CleanupGraphResponse response;
    ASSERT_TRUE(Ask(ps_, "CleanupGraph", request, &response).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (waiter.joinable() && !waited.ok()) break;
  }
  waiter.join();
  EXPECT_EQ(waited, absl::AbortedError("Cleanup 5"));
}

// Many waits at a time hold no threads: the server has fewer.
TEST_F(ClusterTest, WaitsHoldNoThreads) {
  constexpr int kWaits = 2000;
  OpenSession(ps_, "s");
  Graph g;
  for (int i = 0; i < kWaits; ++i) Send(absl::StrCat("x", i), ps_, worker_, Const(g, float(i)));
  const auto part = Register(ps_, "s", g);
  ASSERT_TRUE(part.ok()) << part.status();
  Timer timer;
  Peers peers(timer);
  std::atomic<int> right{0}, ended{0};
  for (int i = 0; i < kWaits; ++i) {
    const RendezvousKey key = *RendezvousKey::Parse(Key(absl::StrCat("x", i), ps_, worker_));
    peers.Receive({"/job:ps/replica:0/task:0", cluster_.AddressOf({"ps", 0})}, 3, key, nullptr,
                  [&right, &ended, i](absl::StatusOr<SentValue> value) {
                    if (value.ok() && value->value.scalar<float>() == float(i)) ++right;
                    ++ended;
                  });
  }
  ASSERT_TRUE(Run(ps_, Step("s", *part, 3)).ok());
  while (ended < kWaits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(right, kWaits);
}

// A message that comes after the end of its step neither runs nor waits.
TEST_F(ClusterTest, AStepThatHasBeenCleanedUpDoesNotBeginAgain) {
  OpenSession(ps_, "s");
  Graph g;
  Send("x", ps_, worker_, Const(g, 1.f));
  const auto part = Register(ps_, "s", g);
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_TRUE(Run(ps_, Step("s", *part, 4)).ok());
  proto::CleanupGraphRequest request;
  request.set_step_id(4);
  proto::CleanupGraphResponse response;
  ASSERT_TRUE(Ask(ps_, "CleanupGraph", request, &response).ok());
  EXPECT_EQ(Run(ps_, Step("s", *part, 4)), absl::AbortedError("Cleanup 4"));
  EXPECT_EQ(Fetch(ps_, 4, Key("x", ps_, worker_)).status(), absl::AbortedError("Cleanup 4"));
}

// ---- limits of the server

TEST_F(ClusterTest, TheNumberOfWorkerSessionsIsLimited) {
  ps_.server = nullptr;
  ServerOptions options;
  options.master.max_sessions = 2;
  ps_ = Start({"ps", 0}, options);
  proto::CreateWorkerSessionRequest request;
  proto::CreateWorkerSessionResponse response;
  const auto open = [&](const std::string& handle) {
    request.set_session_handle(handle);
    return Ask(ps_, "CreateWorkerSession", request, &response);
  };
  EXPECT_TRUE(open("a").ok());
  EXPECT_TRUE(open("b").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(open("c")));
  EXPECT_TRUE(open("b").ok());  // in the place of the one before
  proto::DeleteWorkerSessionRequest end;
  end.set_session_handle("a");
  proto::DeleteWorkerSessionResponse ended;
  EXPECT_TRUE(Ask(ps_, "DeleteWorkerSession", end, &ended).ok());
  EXPECT_TRUE(open("c").ok());
}

TEST_F(ClusterTest, IdleWorkerSessionsEnd) {
  ps_.server = nullptr;
  ServerOptions options;
  options.master.idle_limit = std::chrono::milliseconds(100);
  ps_ = Start({"ps", 0}, options);
  OpenSession(ps_, "s");
  EXPECT_TRUE(Register(ps_, "s", Graph()).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // looked for once per second
  EXPECT_TRUE(absl::IsAborted(Register(ps_, "s", Graph()).status()));
}

TEST_F(ClusterTest, MemoryOfStepsAndSessionsIsLimited) {
  ps_.server = nullptr;
  ServerOptions options;
  options.master.step_memory_bytes = 1 << 20;
  options.master.session_memory_bytes = 3 << 20;
  ps_ = Start({"ps", 0}, options);
  OpenSession(ps_, "s");
  const auto assign = [&](const char* name, int64_t elements) {
    Graph g;
    const Output v =
        Output(AddNode(g, "VarHandleOp", {},
                       {{"dtype", DT_FLOAT}, {"shape", Shape({elements})}, {"shared_name", name}}),
               0);
    AddNode("AssignVariableOp", {v, Receive(g, "value", worker_, ps_)});
    Graph on_worker;
    Send("value", worker_, ps_, Fill({elements}, Const(on_worker, 1.f)));
    const auto part = Register(ps_, "s", g), other = Register(worker_, "s", on_worker);
    EXPECT_TRUE(part.ok() && other.ok()) << part.status() << other.status();
    static int64_t step = 100;
    ++step;
    std::thread sender([&] { Run(worker_, Step("s", *other, step)).IgnoreError(); });
    const absl::Status status = Run(ps_, Step("s", *part, step));
    sender.join();
    return status;
  };
  OpenSession(worker_, "s");
  const absl::Status large = assign("large", 1 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(large)) << large;
  EXPECT_THAT(large.message(), HasSubstr("--step-memory-mb"));
  absl::Status status;
  int assigned = 0;
  for (; status.ok() && assigned < 10; ++assigned)
    status = assign(absl::StrCat("v", assigned).c_str(), 200'000);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("--session-memory-mb"));
  EXPECT_GT(assigned, 2);
}

TEST_F(ClusterTest, TheTimeOfAPartIsLimited) {
  ps_.server = nullptr;
  ServerOptions options;
  options.master.max_step_limit = std::chrono::milliseconds(200);
  ps_ = Start({"ps", 0}, options);
  OpenSession(ps_, "s");
  Graph g;
  Send("y", ps_, worker_, Receive(g, "x", ps_, ps_));  // never comes
  const auto part = Register(ps_, "s", g);
  ASSERT_TRUE(part.ok()) << part.status();
  const absl::Status status = Run(ps_, Step("s", *part, 1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(ClusterTest, TheNumberOfCallsAndBytesIsLimited) {
  ps_.server = nullptr;
  ServerOptions options;
  options.max_calls = 1;
  options.max_message_bytes = 1 << 20;
  ps_ = Start({"ps", 0}, options);
  OpenSession(ps_, "s");
  Graph g;
  Send("y", ps_, worker_, Receive(g, "x", ps_, ps_));
  const auto part = Register(ps_, "s", g);
  ASSERT_TRUE(part.ok()) << part.status();
  std::thread waiter([&] { Run(ps_, Step("s", *part, 1)).IgnoreError(); });
  absl::Status refused;
  while (refused.ok()) {
    proto::CreateWorkerSessionRequest request;
    request.set_session_handle("other");
    proto::CreateWorkerSessionResponse response;
    refused = Ask(ps_, "CreateWorkerSession", request, &response);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("--max-calls"));
  proto::CleanupGraphRequest cleanup;
  cleanup.set_step_id(1);
  proto::CleanupGraphResponse cleaned;
  EXPECT_TRUE(Ask(ps_, "CleanupGraph", cleanup, &cleaned).ok());  // administration
  waiter.join();
  EXPECT_TRUE(absl::IsResourceExhausted(
      Fetch(ps_, 2, Key(std::string(2 << 20, 'x'), ps_, worker_)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Fetch(ps_, 2, Key(std::string(1 << 18, 'x'), ps_, worker_)).status()));
}

TEST_F(ClusterTest, StepsInPieces) {
  OpenSession(ps_, "s");
  Graph g;
  const Output x = Receive(g, "x", ps_, ps_), y = Receive(g, "y", ps_, ps_);
  Send("2x", ps_, ps_, x * 2.f);
  Send("xy", ps_, ps_, x * y);
  const auto part = Register(ps_, "s", g);
  ASSERT_TRUE(part.ok()) << part.status();
  const auto feed = [&](const char* edge, float value, proto::RunGraphRequest* request) {
    proto::NamedTensorProto* sent = request->add_send();
    sent->set_name(Key(edge, ps_, ps_));
    TensorToProto(Tensor::Scalar(value), sent->mutable_tensor());
  };
  proto::RunGraphRequest first = Step("s", *part, 8), last = first;
  first.set_is_partial(true);
  feed("x", 3.f, &first);
  first.add_recv_key(Key("2x", ps_, ps_));
  proto::RunGraphResponse response;
  ASSERT_TRUE(Ask(ps_, "RunGraph", first, &response).ok());
  EXPECT_EQ(TensorFromProto(response.recv(0).tensor())->scalar<float>(), 6.f);
  last.set_is_partial(true);
  last.set_is_last_partial_run(true);
  feed("y", 5.f, &last);
  last.add_recv_key(Key("xy", ps_, ps_));
  response.Clear();
  ASSERT_TRUE(Ask(ps_, "RunGraph", last, &response).ok());
  EXPECT_EQ(TensorFromProto(response.recv(0).tensor())->scalar<float>(), 15.f);
}

TEST_F(ClusterTest, NamesOfMastersOwnNodes) {
  OpenSession(ps_, "s");
  proto::RegisterGraphRequest request;
  request.set_session_handle("s");
  Graph g;
  Identity(Const(g, 1.f, "a"), "b");
  ExportGraphDef(g, request.mutable_graph_def());
  request.mutable_graph_def()->mutable_node(0)->set_name("_a");
  request.mutable_graph_def()->mutable_node(1)->set_input(0, "_a:0");
  proto::RegisterGraphResponse response;
  ASSERT_TRUE(Ask(ps_, "RegisterGraph", request, &response).ok());
  proto::RunGraphRequest step = Step("s", response.graph_handle(), 1);
  step.mutable_exec_opts()->set_record_partition_graphs(true);
  proto::RunGraphResponse ran;
  ASSERT_TRUE(Ask(ps_, "RunGraph", step, &ran).ok());
  ASSERT_EQ(ran.partition_graph_size(), 1);
  EXPECT_EQ(ran.partition_graph(0).node_size(), 2);
}

TEST_F(ClusterTest, NamesThatMastersMayNotChoose) {
  OpenSession(ps_, "s");
  const auto add = [&](const std::vector<std::pair<const char*, const char*>>& nodes) {
    proto::RegisterGraphRequest request;
    request.set_session_handle("s");
    for (const auto& [name, op] : nodes) {
      proto::NodeDef* const node = request.mutable_graph_def()->add_node();
      node->set_name(name);
      node->set_op(op);
    }
    proto::RegisterGraphResponse response;
    return Ask(ps_, "RegisterGraph", request, &response);
  };
  EXPECT_TRUE(add({{"_a", "NoOp"}, {"b", "NoOp"}}).ok());
  for (const auto& nodes : std::vector<std::vector<std::pair<const char*, const char*>>>{
           {{"_a", "NoOp"}, {"_a", "NoOp"}},
           {{"_a", "NoOp"}, {"._a", "NoOp"}},
           {{"_a b", "NoOp"}},
           {{"_a;b", "NoOp"}},
           {{"_q", "FIFOQueueV2"}},
           {{"_v", "VarHandleOp"}}}) {
    const absl::Status status = add(nodes);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << nodes[0].first << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(nodes.back().first));
  }
}

// A queue without a shared_name is one for all steps of a session, and no other session's.
TEST_F(ClusterTest, PartsOfASessionShareItsOwnState) {
  OpenSession(ps_, "s");
  OpenSession(ps_, "other");
  const auto queue = [](Graph& g) {
    return Output(AddNode(g, "FIFOQueueV2", {}, {{"component_types", DataTypes{DT_FLOAT}}}, "q"),
                  0);
  };
  Graph put, take, size;
  AddNode("QueueEnqueueV2", {queue(put), std::vector<Output>{Const(put, 7.f)}});
  Send("taken", ps_, ps_,
       Output(AddNode("QueueDequeueV2", {queue(take)}, {{"component_types", DataTypes{DT_FLOAT}}}),
              0));
  Send("size", ps_, ps_, AddOp("QueueSizeV2", {queue(size)}));
  const auto run = [&](const char* session, const Graph& g, const char* edge, int64_t step) {
    const auto part = Register(ps_, session, g);
    EXPECT_TRUE(part.ok()) << part.status();
    proto::RunGraphRequest request = Step(session, *part, step);
    if (edge != nullptr) request.add_recv_key(Key(edge, ps_, ps_));
    proto::RunGraphResponse response;
    const absl::Status status = Ask(ps_, "RunGraph", request, &response);
    EXPECT_TRUE(status.ok()) << status;
    return edge == nullptr ? Tensor() : *TensorFromProto(response.recv(0).tensor());
  };
  run("s", put, nullptr, 1);
  EXPECT_EQ(run("other", size, "size", 2).scalar<int32_t>(), 0);
  EXPECT_EQ(run("s", take, "taken", 3).scalar<float>(), 7.f);
}

TEST_F(ClusterTest, IsolatedSessionsHaveVariablesOfTheirOwn) {
  OpenSession(ps_, "writer");
  OpenSession(ps_, "reader");
  OpenSession(ps_, "isolated", /*isolated=*/true);
  Graph write, read;
  AddNode("AssignVariableOp", {VariableIn(write), Const(write, std::vector<float>{4.f, 4.f})});
  AddOp("ReadVariableOp", {VariableIn(read)}, {{"dtype", DT_FLOAT}});
  const auto run = [&](const char* session, const Graph& g) {
    const auto part = Register(ps_, session, g);
    return part.ok() ? Run(ps_, Step(session, *part, 1)) : part.status();
  };
  EXPECT_TRUE(run("writer", write).ok());
  EXPECT_TRUE(run("reader", read).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(run("isolated", read)));
}

TEST_F(ClusterTest, ARestartedMasterLeavesNothing) {
  proto::CreateWorkerSessionRequest request;
  proto::CreateWorkerSessionResponse response;
  request.set_session_handle("old");
  request.set_master_task("/job:worker/replica:0/task:0");
  request.set_master_incarnation(1);
  ASSERT_TRUE(Ask(ps_, "CreateWorkerSession", request, &response).ok());
  request.set_session_handle("new");
  request.set_master_incarnation(2);
  ASSERT_TRUE(Ask(ps_, "CreateWorkerSession", request, &response).ok());
  EXPECT_TRUE(absl::IsAborted(Run(ps_, Step("old", "0", 1))));
  EXPECT_THAT(Run(ps_, Step("new", "0", 1)).message(), HasSubstr("Graph handle"));
}

TEST(ClusterSpec, ParsesTensorFlowsForm) {
  const auto spec = ClusterSpec::Parse("ps|h1:1;h2:2,worker|[::1]:3;7=h4:4;h5:5");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->AddressOf({"ps", 1}), "h2:2");
  EXPECT_EQ(spec->AddressOf({"worker", 0}), "[::1]:3");
  EXPECT_EQ(spec->AddressOf({"worker", 7}), "h4:4");
  EXPECT_EQ(spec->AddressOf({"worker", 8}), "h5:5");
  EXPECT_EQ(spec->AddressOf({"worker", 1}), "");
  EXPECT_EQ(spec->AddressOf({"chief", 0}), "");
  for (const char* text : {"", "ps", "ps|", "|h:1", "ps|h", "ps|h:x", "ps|h:70000", "ps|x=h:1",
                           "ps|h:1,ps|h:2", "ps|h:1;0=h:2", "ps|-1=h:1", "ps|h:1,"}) {
    const absl::Status status = ClusterSpec::Parse(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.message(), HasSubstr("Example: ")) << text;
  }
}

TEST(SentValue, ComesBack) {
  Tensor big(DT_FLOAT, Shape({300, 10}));
  for (int i = 0; i < 3000; ++i) big.data<float>()[i] = static_cast<float>(i);
  for (const Tensor& value :
       {Tensor::Scalar(1.5), Tensor::Vector<float>({}), Tensor::Vector<int64_t>({1, -2}), big,
        Tensor::Vector<std::string>({"xy", "", "zzz"}), Tensor(DT_BOOL, Shape({0, 3}))}) {
    auto bytes = EncodeSentValue({value, false});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    bool require_ack = true;
    const auto back = DecodeSentValue(&*bytes, &require_ack);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(IdenticalTensors(back->value, value)) << value.Description();
    EXPECT_FALSE(require_ack);
  }
  Variant unknown{.type_name = "x", .metadata = "m", .value = Tensors{Tensor::Scalar(2.f)}};
  auto variant = EncodeSentValue({Tensor::Scalar(unknown), false});
  ASSERT_TRUE(variant.ok()) << variant.status();
  bool ack = true;
  const auto read = DecodeSentValue(&*variant, &ack);
  ASSERT_TRUE(read.ok()) << read.status();
  const Variant& same = *read->value.data<Variant>();
  EXPECT_EQ(same.type_name, "x");
  EXPECT_EQ(same.metadata, "m");
  EXPECT_EQ(std::any_cast<const Tensors&>(same.value)[0].scalar<float>(), 2);
  unknown.value = 1;
  EXPECT_TRUE(absl::IsUnimplemented(EncodeSentValue({Tensor::Scalar(unknown), false}).status()));
  auto dead = EncodeSentValue({Tensor(), true});
  bool require_ack = false;
  EXPECT_TRUE(DecodeSentValue(&*dead, &require_ack)->is_dead);
  const grpc::Slice garbage("\x0a\xff\xff");
  grpc::ByteBuffer bytes(&garbage, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeSentValue(&bytes, &require_ack).status()));
}

// What TensorFlow's tasks write for a float[3], but for the time of sending.
TEST(SentValue, HasTensorFlowsBytes) {
  const auto bytes = EncodeSentValue({Tensor::Vector<float>({1.f, 2.f, 3.f}), false});
  ASSERT_TRUE(bytes.ok());
  grpc::Slice whole;
  ASSERT_TRUE(bytes->DumpToSingleSlice(&whole).ok());
  const std::string text(reinterpret_cast<const char*>(whole.begin()), whole.size());
  EXPECT_EQ(text[0], '\x18');
  EXPECT_THAT(text, HasSubstr(std::string("\x0a\x16\x08\x01\x12\x04\x12\x02\x08\x03\x22\x0c"
                                          "\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40",
                                          24)));
}

}  // namespace
}  // namespace weir::rpc
