#include "weir/rpc/master.h"

#include <numeric>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variable_scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/master.pb.h"
#include "weir/rpc/lib/clients.h"

namespace weir::rpc {
namespace {

using ::testing::HasSubstr;

class MasterTest : public testing::Test {
 protected:
  void SetUp() override {
    auto master = Master::Create(options_);
    ASSERT_TRUE(master.ok()) << master.status();
    master_ = *std::move(master);
  }

  // Creates a session with x, and y = 2 x.
  std::string Open() {
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT, {}, "x");
    Multiply(x, Const(g, 2.f, "two"), "y");
    proto::CreateSessionRequest request;
    ExportGraphDef(g, request.mutable_graph_def());
    proto::CreateSessionResponse response;
    const absl::Status status = master_->CreateSession(request, none_, &response);
    EXPECT_TRUE(status.ok()) << status;
    return response.session_handle();
  }

  proto::RunStepRequest Step(const std::string& handle, float x) {
    proto::RunStepRequest request;
    request.set_session_handle(handle);
    proto::NamedTensorProto* feed = request.add_feed();
    feed->set_name("x:0");
    TensorToProto(Tensor::Scalar(x), feed->mutable_tensor());
    request.add_fetch("y:0");
    return request;
  }

  absl::Status Run(proto::RunStepRequest request) {
    response_.Clear();
    return master_->RunStep(request, none_, &response_);
  }
  float Result() const { return TensorFromProto(response_.tensor(0).tensor())->scalar<float>(); }

  MasterOptions options_;
  std::unique_ptr<Master> master_;
  Call none_;
  proto::RunStepResponse response_;
};

TEST_F(MasterTest, MovesLargeFeedsOutOfTheRequest) {
  Graph g;
  Identity(Placeholder(g, DT_FLOAT, {1 << 15}, "x"), "y");
  proto::CreateSessionRequest create;
  ExportGraphDef(g, create.mutable_graph_def());
  proto::CreateSessionResponse created;
  ASSERT_TRUE(master_->CreateSession(create, none_, &created).ok());
  proto::RunStepRequest request;
  request.set_session_handle(created.session_handle());
  proto::NamedTensorProto* feed = request.add_feed();
  feed->set_name("x:0");
  Tensor value(DT_FLOAT, Shape({1 << 15}));
  std::iota(value.flat<float>().begin(), value.flat<float>().end(), 0.f);
  TensorToProto(value, feed->mutable_tensor());
  request.add_fetch("y:0");
  ASSERT_TRUE(master_->RunStep(request, none_, &response_).ok());
  EXPECT_EQ(request.feed(0).tensor().tensor_content(), "");
  EXPECT_TRUE(IdenticalTensors(*TensorFromProto(response_.tensor(0).tensor()), value));
}

TEST_F(MasterTest, RunsAStep) {
  const std::string handle = Open();
  EXPECT_EQ(handle.size(), 32u);
  ASSERT_TRUE(Run(Step(handle, 3)).ok());
  EXPECT_EQ(response_.tensor(0).name(), "y:0");
  EXPECT_EQ(Result(), 6);
}

TEST_F(MasterTest, StepErrorsAreReportedWhereRequested) {
  proto::RunStepRequest request = Step(Open(), 3);
  request.clear_feed();
  EXPECT_TRUE(absl::IsInvalidArgument(Run(request)));
  request.set_store_errors_in_response_body(true);
  EXPECT_TRUE(Run(request).ok());
  EXPECT_EQ(response_.status_code(), proto::error::INVALID_ARGUMENT);
  EXPECT_NE(response_.status_error_message().find("[[{{node x}}]]"), std::string::npos);
}

TEST_F(MasterTest, ClosedSessionIsNotFound) {
  const std::string handle = Open();
  proto::CloseSessionRequest close;
  proto::CloseSessionResponse closed;
  close.set_session_handle(handle);
  EXPECT_TRUE(master_->CloseSession(close, none_, &closed).ok());
  EXPECT_EQ(Run(Step(handle, 1)), absl::AbortedError("Session " + handle + " is not found."));
  EXPECT_TRUE(absl::IsAborted(master_->CloseSession(close, none_, &closed)));
}

TEST_F(MasterTest, SessionsOfOtherClientsDoNotExist) {
  none_.client = std::make_shared<Client>("alice");
  const std::string handle = Open();
  EXPECT_TRUE(Run(Step(handle, 3)).ok());
  for (const auto& other : {std::make_shared<Client>("alice"), std::shared_ptr<Client>()}) {
    none_.client = other;
    EXPECT_EQ(Run(Step(handle, 3)), absl::AbortedError("Session " + handle + " is not found."));
    proto::CloseSessionRequest close;
    proto::CloseSessionResponse closed;
    close.set_session_handle(handle);
    EXPECT_TRUE(absl::IsAborted(master_->CloseSession(close, none_, &closed)));
  }
  EXPECT_EQ(master_->num_sessions(), 1);
}

TEST_F(MasterTest, ExtendChecksTheGraphVersion) {
  const std::string handle = Open();
  proto::ExtendSessionRequest request;
  request.set_session_handle(handle);
  proto::NodeDef* node = request.mutable_graph_def()->add_node();
  node->set_name("z");
  node->set_op("Neg");
  node->add_input("y");
  node->add_input("^two");
  (*node->mutable_attr())["T"].set_type(proto::DT_FLOAT);
  (*node->mutable_attr())["_class"].mutable_list()->add_s("loc:@y");
  proto::ExtendSessionResponse response;
  request.set_current_graph_version(1);
  EXPECT_TRUE(absl::IsAborted(master_->ExtendSession(request, none_, &response)));
  request.set_current_graph_version(0);
  ASSERT_TRUE(master_->ExtendSession(request, none_, &response).ok());
  EXPECT_EQ(response.new_graph_version(), 1);
  proto::RunStepRequest step = Step(handle, 5);
  step.set_fetch(0, "z:0");
  ASSERT_TRUE(Run(step).ok());
  EXPECT_EQ(Result(), -10);
  request.set_current_graph_version(1);
  const absl::Status again = master_->ExtendSession(request, none_, &response);
  EXPECT_TRUE(absl::IsInvalidArgument(again)) << again;
  node->set_name("w");
  node->set_input(0, "y:3");
  EXPECT_TRUE(absl::IsInvalidArgument(master_->ExtendSession(request, none_, &response)));
}

TEST_F(MasterTest, DuplicateRequestRunsOnce) {
  proto::RunStepRequest request = Step(Open(), 1);
  request.set_request_id(42);
  EXPECT_TRUE(Run(request).ok());
  EXPECT_TRUE(absl::IsAborted(Run(request)));
  request.set_request_id(43);
  EXPECT_TRUE(Run(request).ok());
}

TEST_F(MasterTest, CallableKeepsFeedsAndFetchesInOrder) {
  const std::string handle = Open();
  proto::MakeCallableRequest make;
  make.set_session_handle(handle);
  make.mutable_options()->add_feed("x:0");
  make.mutable_options()->add_fetch("y:0");
  proto::MakeCallableResponse made;
  ASSERT_TRUE(master_->MakeCallable(make, none_, &made).ok());
  proto::RunCallableRequest run;
  run.set_session_handle(handle);
  run.set_handle(made.handle());
  TensorToProto(Tensor::Scalar(4.f), run.add_feed());
  proto::RunCallableResponse response;
  ASSERT_TRUE(master_->RunCallable(run, none_, &response).ok());
  EXPECT_EQ(TensorFromProto(response.fetch(0))->scalar<float>(), 8);
  run.add_feed();
  EXPECT_TRUE(absl::IsInvalidArgument(master_->RunCallable(run, none_, &response)));
  proto::ReleaseCallableRequest release;
  release.set_session_handle(handle);
  release.set_handle(made.handle());
  proto::ReleaseCallableResponse released;
  EXPECT_TRUE(master_->ReleaseCallable(release, none_, &released).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(master_->ReleaseCallable(release, none_, &released)));
}

TEST_F(MasterTest, CallableConnectsTensors) {
  const std::string handle = Open();
  proto::MakeCallableRequest make;
  make.set_session_handle(handle);
  make.mutable_options()->add_fetch("y:0");
  proto::TensorConnection* connection = make.mutable_options()->add_tensor_connection();
  connection->set_from_tensor("two:0");
  connection->set_to_tensor("x:0");
  proto::MakeCallableResponse made;
  ASSERT_TRUE(master_->MakeCallable(make, none_, &made).ok());
  proto::RunCallableRequest run;
  run.set_session_handle(handle);
  run.set_handle(made.handle());
  proto::RunCallableResponse response;
  ASSERT_TRUE(master_->RunCallable(run, none_, &response).ok());
  EXPECT_EQ(TensorFromProto(response.fetch(0))->scalar<float>(), 4);
  connection->set_from_tensor("three:0");
  EXPECT_TRUE(absl::IsNotFound(master_->MakeCallable(make, none_, &made)));
}

TEST_F(MasterTest, PartialRunByHandle) {
  const std::string handle = Open();
  proto::PartialRunSetupRequest setup;
  setup.set_session_handle(handle);
  setup.add_feed("x:0");
  setup.add_fetch("y:0");
  proto::PartialRunSetupResponse set_up;
  ASSERT_TRUE(master_->PartialRunSetup(setup, none_, &set_up).ok());
  proto::RunStepRequest step = Step(handle, 7);
  step.set_partial_run_handle(set_up.partial_run_handle());
  ASSERT_TRUE(Run(step).ok());
  EXPECT_EQ(Result(), 14);
  EXPECT_TRUE(absl::IsInvalidArgument(Run(step)));  // it has ended
}

TEST_F(MasterTest, ReportsTimesAndTheExecutedGraph) {
  proto::RunStepRequest request = Step(Open(), 1);
  request.mutable_options()->set_trace_level(proto::RunOptions::FULL_TRACE);
  request.mutable_options()->set_output_partition_graphs(true);
  ASSERT_TRUE(Run(request).ok());
  const proto::RunMetadata& metadata = response_.metadata();
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  EXPECT_EQ(metadata.step_stats().dev_stats(0).node_stats(0).node_name(), "y");
  ASSERT_EQ(metadata.partition_graphs_size(), 1);
  EXPECT_EQ(metadata.partition_graphs(0).node_size(), 2);  // x is fed
}

TEST_F(MasterTest, MalformedRequestsReturnErrors) {
  const std::string handle = Open();
  proto::RunStepRequest request = Step(handle, 1);
  request.mutable_feed(0)->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1 << 30);
  EXPECT_FALSE(Run(request).ok());
  request = Step(handle, 1);
  request.add_feed()->CopyFrom(request.feed(0));
  EXPECT_TRUE(absl::IsInvalidArgument(Run(request)));
  request = Step(handle, 1);
  request.mutable_feed(0)->mutable_tensor()->set_dtype(proto::DT_INT32);
  EXPECT_FALSE(Run(request).ok());
  request = Step(handle, 1);
  request.set_fetch(0, "nothing:0");
  EXPECT_TRUE(absl::IsNotFound(Run(request)));
  request = Step(handle, 1);
  request.add_target("nothing");
  EXPECT_TRUE(absl::IsNotFound(Run(request)));
  request = Step(handle, 1);
  request.mutable_options()->set_timeout_in_ms(INT64_MAX);
  EXPECT_TRUE(Run(request).ok());
  request.mutable_options()->set_timeout_in_ms(-1);
  EXPECT_TRUE(Run(request).ok());
  EXPECT_TRUE(Run(Step(handle, 1)).ok());  // it has had no effect
}

// Sessions without isolated state find each other's iterators, whose functions belong to the first
// one.
TEST_F(MasterTest, IteratorOutlivesItsSession) {
  Graph g;
  Graph body;
  const Output x = Placeholder(body, DT_INT64, {}, "x");
  ASSERT_TRUE(DefineFunction(g, "Twice", body, {x}, {x + x}).ok());
  const Attrs elements = {{"output_types", DataTypes{DT_INT64}},
                          {"output_shapes", std::vector<Shape>{Shape()}}};
  const auto number = [&g](int64_t n) { return Const(g, Tensor::Scalar(n)); };
  const Output range = AddOp("RangeDataset", {number(0), number(9), number(1)}, elements);
  Attrs map = elements;
  map.emplace_back("f", FunctionRef{"Twice", nullptr});
  const Output twice = AddOp("MapDataset", {range, Outputs{}}, map);
  Attrs shared = elements;
  shared.emplace_back("shared_name", "it");
  shared.emplace_back("container", "");
  const Output iterator = AddNode(g, "IteratorV2", {}, shared)->output(0);
  AddNode("MakeIterator", {twice, iterator}, {}, "start");
  AddOp("IteratorGetNext", {iterator}, elements, "next");
  ASSERT_TRUE(g.status().ok()) << g.status();

  const auto open = [&] {
    proto::CreateSessionRequest request;
    ExportGraphDef(g, request.mutable_graph_def());
    proto::CreateSessionResponse response;
    EXPECT_TRUE(master_->CreateSession(request, none_, &response).ok());
    return response.session_handle();
  };
  const auto next = [&](const std::string& handle, bool start) {
    proto::RunStepRequest request;
    request.set_session_handle(handle);
    if (start) {
      request.add_target("start");
    } else {
      request.add_fetch("next:0");
    }
    return Run(request);
  };
  const std::string first = open(), second = open();
  ASSERT_TRUE(next(first, true).ok());
  ASSERT_TRUE(next(first, false).ok());
  ASSERT_TRUE(next(second, false).ok());
  EXPECT_EQ(TensorFromProto(response_.tensor(0).tensor())->scalar<int64_t>(), 2);
  proto::CloseSessionRequest close;
  close.set_session_handle(first);
  proto::CloseSessionResponse closed;
  ASSERT_TRUE(master_->CloseSession(close, none_, &closed).ok());
  ASSERT_TRUE(next(second, false).ok());
  EXPECT_EQ(TensorFromProto(response_.tensor(0).tensor())->scalar<int64_t>(), 4);
  proto::ResetResponse reset;
  EXPECT_TRUE(master_->Reset({}, none_, &reset).ok());
  EXPECT_FALSE(next(open(), false).ok());
}

// Runs steps of sessions whose variable has a megabyte of floats.
class MemoryTest : public ::testing::Test {
 protected:
  void Start(const MasterOptions& options) { master_ = *Master::Create(options); }

  // Creates a session of a client, and returns its handle.
  std::string Open(const std::string& variable, const std::shared_ptr<Client>& client = nullptr) {
    Graph g;
    GetVariable(g, variable, {kCount}, Zeros());
    init_ = GlobalVariablesInitializer(g).node->name();
    Identity(Placeholder(g, DT_FLOAT, {-1}, "x"), "y");
    proto::CreateSessionRequest create;
    ExportGraphDef(g, create.mutable_graph_def());
    proto::CreateSessionResponse created;
    Call call;
    call.client = client;
    EXPECT_TRUE(master_->CreateSession(create, call, &created).ok());
    return created.session_handle();
  }

  // Initializes the variable, or fetches y for so many floats.
  absl::Status Run(const std::string& session, int64_t floats = 0,
                   const std::shared_ptr<Client>& client = nullptr) {
    proto::RunStepRequest request;
    request.set_session_handle(session);
    if (floats == 0) {
      request.add_target(init_);
    } else {
      proto::NamedTensorProto* const feed = request.add_feed();
      feed->set_name("x:0");
      TensorToProto(Tensor::Zeros(DT_FLOAT, Shape({floats})), feed->mutable_tensor());
      request.add_fetch("y:0");
    }
    Call call;
    call.client = client;
    proto::RunStepResponse response;
    return master_->RunStep(request, call, &response);
  }

  static constexpr int64_t kCount = 1 << 18, kBytes = kCount * 4;
  std::unique_ptr<Master> master_;
  std::string init_;  // the target that initializes the variable
};

TEST_F(MemoryTest, OfASessionIsLimited) {
  MasterOptions options;
  options.session_memory_bytes = 3 * kBytes;
  Start(options);
  const std::string first = Open("v"), second = Open("w");
  EXPECT_TRUE(Run(first).ok());
  const absl::Status status = Run(first, 2 * kCount);  // with its response
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("this session (weir serve --session-memory-mb) holds"));
  EXPECT_TRUE(Run(first, kCount / 8).ok());
  EXPECT_TRUE(Run(second).ok());
}

TEST_F(MemoryTest, OfAStepIsLimited) {
  MasterOptions options;
  options.step_memory_bytes = kBytes / 2;
  Start(options);
  const std::string session = Open("v");
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = Run(session);
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("this step (weir serve --step-memory-mb)"));
    EXPECT_TRUE(Run(session, kCount / 32).ok());
  }
}

TEST_F(MemoryTest, OfAClientIsLimitedOverItsSessions) {
  Start({});
  const auto alice = std::make_shared<Client>("alice"), bob = std::make_shared<Client>("bob");
  alice->set_quotas({.memory_mb = 2});
  EXPECT_TRUE(Run(Open("v", alice), 0, alice).ok());
  const std::string session = Open("w", alice);
  EXPECT_GE(alice->memory()->held(), kBytes);
  EXPECT_TRUE(absl::IsResourceExhausted(Run(session, kCount, alice)));
  EXPECT_TRUE(Run(Open("w", bob), 0, bob).ok());
  Call call;
  call.client = alice;
  proto::ResetResponse reset;
  EXPECT_TRUE(master_->Reset({}, call, &reset).ok());
  while (alice->memory()->held() > 0) std::this_thread::yield();  // the reaper destroys sessions
}

TEST(Master, TooLargeResponsesAreRefused) {
  MasterOptions options;
  options.max_response = ResponseLimit(1000);
  const auto master = Master::Create(options);
  ASSERT_TRUE(master.ok()) << master.status();
  Graph g;
  Identity(Placeholder(g, DT_FLOAT, {-1}, "numbers"), "same_numbers");
  Identity(Placeholder(g, DT_STRING, {-1}, "texts"), "same_texts");
  proto::CreateSessionRequest create;
  ExportGraphDef(g, create.mutable_graph_def());
  proto::CreateSessionResponse created;
  Call call;
  ASSERT_TRUE((*master)->CreateSession(create, call, &created).ok());
  const auto fetch = [&](const std::string& name, const Tensor& value, int times) {
    proto::RunStepRequest request;
    request.set_session_handle(created.session_handle());
    proto::NamedTensorProto* const feed = request.add_feed();
    feed->set_name(name + ":0");
    TensorToProto(value, feed->mutable_tensor());
    for (int i = 0; i < times; ++i) request.add_fetch("same_" + name + ":0");
    proto::RunStepResponse response;
    return (*master)->RunStep(request, call, &response);
  };
  const Tensor numbers = Tensor::Vector<float>(std::vector<float>(100, 1.5f));
  EXPECT_TRUE(fetch("numbers", numbers, 2).ok());
  const absl::Status status = fetch("numbers", numbers, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      std::string(status.message()),
      "The response, with the fetched values and the trace of the step, takes 1200 bytes, but a "
      "response is limited to 1000 bytes (weir serve --max-response-mb)");
  const Tensor texts =
      Tensor::Vector<std::string>(std::vector<std::string>(5, std::string(100, 'x')));
  EXPECT_TRUE(fetch("texts", texts, 1).ok());
  EXPECT_EQ(fetch("texts", texts, 2).code(), absl::StatusCode::kResourceExhausted);
}

TEST(Master, SessionsWithIteratorsAndNoFunctionsDoNotCountWhenClosed) {
  Graph g;
  const Attrs elements = {{"output_types", DataTypes{DT_INT64}},
                          {"output_shapes", std::vector<Shape>{Shape()}}};
  const auto number = [&g](int64_t n) { return Const(g, Tensor::Scalar(n)); };
  const Output range = AddOp("RangeDataset", {number(0), number(9), number(1)}, elements);
  Attrs shared = elements;
  shared.emplace_back("shared_name", "it");
  shared.emplace_back("container", "");
  const Output iterator = AddNode(g, "IteratorV2", {}, shared)->output(0);
  AddNode("MakeIterator", {range, iterator}, {}, "start");
  AddOp("IteratorGetNext", {iterator}, elements, "next");
  MasterOptions options;
  options.max_sessions = 1;
  auto master = Master::Create(options);
  ASSERT_TRUE(master.ok());
  Call none;
  for (int64_t i = 0; i < 3; ++i) {
    proto::CreateSessionRequest create;
    ExportGraphDef(g, create.mutable_graph_def());
    proto::CreateSessionResponse created;
    const absl::Status status = (*master)->CreateSession(create, none, &created);
    ASSERT_TRUE(status.ok()) << status;
    proto::RunStepRequest start, next;
    proto::RunStepResponse started, element;
    start.set_session_handle(created.session_handle());
    start.add_target("start");
    if (i == 0) {
      ASSERT_TRUE((*master)->RunStep(start, none, &started).ok());
    }
    next.set_session_handle(created.session_handle());
    next.add_fetch("next:0");
    ASSERT_TRUE((*master)->RunStep(next, none, &element).ok());
    EXPECT_EQ(TensorFromProto(element.tensor(0).tensor())->scalar<int64_t>(), i);
    proto::CloseSessionRequest close;
    close.set_session_handle(created.session_handle());
    proto::CloseSessionResponse closed;
    ASSERT_TRUE((*master)->CloseSession(close, none, &closed).ok());
  }
}

TEST(Master, ClosesTheSessionOfADisconnectedClient) {
  MasterOptions options;
  options.orphan_limit = std::chrono::seconds(1);
  auto master = Master::Create(options);
  ASSERT_TRUE(master.ok());
  Call none, first, second;
  first.connection = "first";
  second.connection = "second";
  proto::CreateSessionResponse local, kept, left;
  ASSERT_TRUE((*master)->CreateSession({}, none, &local).ok());
  ASSERT_TRUE((*master)->CreateSession({}, first, &kept).ok());
  ASSERT_TRUE((*master)->CreateSession({}, first, &left).ok());
  proto::RunStepRequest request;
  proto::RunStepResponse response;
  request.set_session_handle(kept.session_handle());  // the client has reconnected
  (*master)->RunStep(request, second, &response).IgnoreError();
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  while ((*master)->num_sessions() > 2 && seconds() < 10)
    (*master)->CloseIdleSessions([](const std::string& name) { return name == "second"; });
  EXPECT_EQ((*master)->num_sessions(), 2);
  EXPECT_GE(seconds(), 1);
  EXPECT_FALSE(absl::IsAborted((*master)->RunStep(request, second, &response)));
  request.set_session_handle(left.session_handle());
  EXPECT_TRUE(absl::IsAborted((*master)->RunStep(request, second, &response)));
}

TEST(Master, LimitsSessionsAndClosesIdleOnes) {
  MasterOptions options;
  options.max_sessions = 2;
  options.idle_limit = std::chrono::seconds(1);
  auto master = Master::Create(options);
  ASSERT_TRUE(master.ok());
  Call none;
  proto::CreateSessionResponse response;
  EXPECT_TRUE((*master)->CreateSession({}, none, &response).ok());
  EXPECT_TRUE((*master)->CreateSession({}, none, &response).ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*master)->CreateSession({}, none, &response)));
  EXPECT_EQ((*master)->num_sessions(), 2);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while ((*master)->num_sessions() > 0 && std::chrono::steady_clock::now() < until)
    (*master)->CloseIdleSessions([](const std::string&) { return true; });
  EXPECT_EQ((*master)->num_sessions(), 0);
}

TEST(Master, LimitsSessionsThatAreCreatedAtTheSameTime) {
  MasterOptions options;
  options.max_sessions = 3;
  auto master = Master::Create(options);
  ASSERT_TRUE(master.ok());
  std::atomic<int> created{0}, ready{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      Call none;
      proto::CreateSessionResponse response;
      ++ready;
      while (ready < 8) std::this_thread::yield();
      if ((*master)->CreateSession({}, none, &response).ok()) ++created;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(created, 3);
  EXPECT_EQ((*master)->num_sessions(), 3);
}

}  // namespace
}  // namespace weir::rpc
