// What calls over REST have in common with those over gRPC: who makes them, with which quotas, in
// which lane of batches; logs of requests; and the end of a step whose client has gone.

#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/core/io/record.h"
#include "weir/proto/prediction_log.pb.h"
#include "weir/rpc/models/rest_api.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/rpc/http_client.h"
#include "weir/tests/rpc/tls_client.h"
#include "weir/tests/serving/lib/watched_model.h"
#include "weir/tests/serving/lib/written_models.h"

namespace weir::rpc {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weir::testing::Certificate;

// The tokens are "sesame" and "mellon".
constexpr char kClients[] =
    "alice token-sha256=d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272 "
    "calls=1 request-mb=1\n"
    "bob token-sha256=83006a438f94daf3a7dd9c7b27f70c15e443c0ca55d58fcdfa76899ae466b455\n"
    "carol certificate=carol.example.com\n";
constexpr char kPredict[] = "/v1/models/w:predict";

std::string Authorization(const std::string& token) {
  return token.empty() ? "" : absl::StrCat("Authorization: Bearer ", token, "\r\n");
}

std::string PostRequest(const std::string& path, const std::string& headers,
                        const std::string& body) {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nContent-Length: ", body.size(), "\r\n", headers,
                      "\r\n", body);
}

// A call of the model "w" with one row that begins with `x`.
std::string CallOf(float x, const std::string& headers) {
  return PostRequest(kPredict, headers, absl::StrCat("{\"instances\": [[", x, ", 0]]}"));
}

// A server of the model "w", whose steps a test can hold, that runs one batch of one row at a time.
class RestCallsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { watched_ = new serving::WatchedModel; }
  static void TearDownTestSuite() { delete watched_; }

  void SetUp() override {
    watched_->Release();
    serving::ModelConfig config = {.name = "w", .base_path = DirectoryOf(watched_->directory())};
    config.batching = serving::BatchingOptions{.max_batch_size = 1, .num_batch_threads = 1};
    auto models = serving::ModelManager::Create(
        {config},
        {.servable = {.session = {.kernels = &watched_->kernels()}}, .poll = milliseconds(20)});
    ASSERT_TRUE(models.ok()) << models.status();
    models_ = *std::move(models);
    const absl::Status loaded = models_->WaitUntilLoaded(std::chrono::seconds(60));
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  void Serve(RestOptions options, HttpServerOptions http = {}) {
    options.on_call = [this](const CallRecord& record) {
      const MutexLock lock(mutex_);
      calls_.push_back(
          absl::StrCat(record.method, " ", absl::StatusCodeToString(record.status.code())));
    };
    api_ = std::make_unique<RestApi>(*models_, std::move(options));
    http.admit = [this](const HttpRequest& request) { return api_->Admit(request); };
    auto server = HttpServer::Start(http, [this](const HttpRequest& r) { return api_->Handle(r); });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void ServeClients(const HttpServerOptions& http = {}) {
    auto clients = Clients::Parse("clients", kClients);
    ASSERT_TRUE(clients.ok()) << clients.status();
    Serve({.clients = *std::move(clients), .metrics = [] { return "numbers"; }}, http);
  }
  std::string Send(const std::string& request) const { return Exchange(server_->port(), request); }
  std::string GetAs(const std::string& path, const std::string& token) const {
    return Send(absl::StrCat("GET ", path, " HTTP/1.1\r\n", Authorization(token), "\r\n"));
  }
  // Waits until the server has answered a call with this record.
  void WaitForCall(const std::string& call) {
    for (;;) {
      const MutexLock lock(mutex_);
      if (!calls_.empty() && calls_.back() == call) return;
      mutex_.unlock();
      std::this_thread::sleep_for(milliseconds(2));
      mutex_.lock();
    }
  }

  static serving::WatchedModel* watched_;
  std::unique_ptr<serving::ModelManager> models_;
  Mutex mutex_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);  // "Predict OK"
  std::unique_ptr<RestApi> api_;
  std::unique_ptr<HttpServer> server_;
};
serving::WatchedModel* RestCallsTest::watched_ = nullptr;

TEST_F(RestCallsTest, StrangersAreRefused) {
  ServeClients();
  EXPECT_EQ(StatusOf(Get(server_->port(), "/healthz")), "200");
  EXPECT_EQ(StatusOf(Get(server_->port(), "/readyz")), "200");
  for (const char* path : {"/", "/metrics", "/v1/models/w", "/v1/models/w/metadata", "/other"}) {
    EXPECT_EQ(StatusOf(Get(server_->port(), path)), "401") << path;
    EXPECT_EQ(StatusOf(GetAs(path, "Sesame")), "401") << path;
    EXPECT_NE(StatusOf(GetAs(path, "mellon")), "401") << path;
  }
  EXPECT_EQ(StatusOf(Post(server_->port(), "/healthz", "")), "401") << "only GET is public";
  const std::string refused = Send(CallOf(1, ""));
  EXPECT_EQ(StatusOf(refused), "401");
  EXPECT_THAT(refused, HasSubstr("WWW-Authenticate: Bearer\r\n"));
  EXPECT_THAT(refused, HasSubstr("authorization: Bearer TOKEN"));
  EXPECT_EQ(StatusOf(Send(CallOf(1, "Authorization: Basic sesame\r\n"))), "401");
  // Nobody reads the body of a stranger.
  EXPECT_EQ(
      StatusOf(Send("POST /v1/models/w:predict HTTP/1.1\r\nContent-Length: 60000000\r\n\r\n")),
      "401");
  const MutexLock lock(mutex_);
  EXPECT_EQ(calls_.back(), "Predict UNAUTHENTICATED");
}

TEST_F(RestCallsTest, TokensIdentifyClientsWithQuotas) {
  ServeClients();
  EXPECT_THAT(BodyOf(Send(CallOf(1, Authorization("sesame")))), HasSubstr("[2.0, 0.0]"));
  EXPECT_EQ(StatusOf(Send(CallOf(1, "authorization: bearer mellon\r\n"))), "200");
  const std::string large(size_t{3} << 19, ' ');
  const std::string over = Send(PostRequest(kPredict, Authorization("sesame"), large));
  EXPECT_EQ(StatusOf(over), "429");
  EXPECT_THAT(over, HasSubstr("Client alice has reached its quota of 1 MB of requests"));
  EXPECT_EQ(StatusOf(Send(PostRequest(kPredict, Authorization("mellon"), large))), "400");

  const size_t steps = watched_->steps().size();
  watched_->Hold();
  const RawConnection first(server_->port());
  first.Send(CallOf(1, Authorization("sesame")));
  watched_->WaitForSteps(steps + 1);
  const std::string second = Send(CallOf(1, Authorization("sesame")));
  EXPECT_EQ(StatusOf(second), "429");
  EXPECT_THAT(second, HasSubstr("quota of 1 concurrent calls"));
  EXPECT_EQ(StatusOf(GetAs("/v1/models/w", "sesame")), "200") << "the status is free";
  EXPECT_EQ(StatusOf(GetAs("/v1/models/w/metadata", "mellon")), "200") << "another client";
  watched_->Release();
  EXPECT_EQ(StatusOf(first.ReadResponse()), "200");
  WaitForCall("Predict OK");
  EXPECT_EQ(StatusOf(Send(CallOf(1, Authorization("sesame")))), "200");
}

TEST_F(RestCallsTest, CertificatesIdentifyClients) {
  const Certificate authority = weir::testing::MakeAuthority();
  const Certificate own = weir::testing::MakeCertificate(authority);
  const Certificate carol = weir::testing::MakeCertificate(authority, "carol.example.com");
  const Certificate eve = weir::testing::MakeCertificate(authority, "eve.example.com");
  ServeClients(
      {.certificate = own.certificate, .key = own.key, .client_authority = authority.certificate});
  const auto status = [&](const Certificate& client, const std::string& headers) {
    TlsConnection connection(server_->port(), authority, &client);
    connection.Send(CallOf(1, "Connection: close\r\n" + headers));
    return StatusOf(connection.ReadAll());
  };
  EXPECT_EQ(status(carol, ""), "200");
  EXPECT_EQ(status(eve, ""), "401");
  EXPECT_EQ(status(eve, Authorization("mellon")), "200") << "a token suffices";
  EXPECT_EQ(status(carol, Authorization("wrong")), "401");
}

TEST_F(RestCallsTest, CallsOfClientsThatHaveGoneEnd) {
  Serve({});
  const size_t steps = watched_->steps().size();
  const int cancelled = watched_->num_cancelled();
  watched_->Hold();
  {
    const RawConnection connection(server_->port());
    connection.Send(CallOf(1, ""));
    watched_->WaitForSteps(steps + 1);
  }
  WaitForCall("Predict CANCELLED");
  EXPECT_EQ(watched_->num_cancelled(), cancelled + 1);
  watched_->Release();
  EXPECT_EQ(StatusOf(Send(CallOf(1, ""))), "200");
}

TEST_F(RestCallsTest, HighPriorityGoesFirst) {
  Serve({});
  const std::string low = "X-Weir-Priority: low\r\n";
  const std::string other = Send(CallOf(1, "X-Weir-Priority: urgent\r\n"));
  EXPECT_EQ(StatusOf(other), "400");
  EXPECT_THAT(other, HasSubstr("expected high or low"));
  const size_t steps = watched_->steps().size();
  watched_->Hold();
  std::vector<std::unique_ptr<RawConnection>> connections;
  const auto call = [&](float x, const std::string& headers) {
    connections.push_back(std::make_unique<RawConnection>(server_->port()));
    connections.back()->Send(CallOf(x, headers));
    const int requests = static_cast<int>(connections.size());
    while (server_->num_requests() < requests) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(200));  // until it waits for its batch
  };
  call(1, "");
  watched_->WaitForSteps(steps + 1);
  call(2, low);
  call(3, "X-Weir-Priority: high\r\n");
  watched_->Release();
  for (const auto& connection : connections) EXPECT_EQ(StatusOf(connection->ReadResponse()), "200");
  std::vector<float> order;
  for (size_t i = steps; i < watched_->steps().size(); ++i)
    order.push_back(watched_->steps()[i].at(0));
  EXPECT_THAT(order, ElementsAre(1, 3, 2));
}

// The records of all files of a log with this prefix.
std::vector<proto::serving::PredictionLog> Logged(const std::string& directory) {
  std::vector<proto::serving::PredictionLog> entries;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    const auto reader = RecordReader::Open(file.path().string());
    EXPECT_TRUE(reader.ok()) << reader.status();
    for (;;) {
      const auto record = (*reader)->Next();
      EXPECT_TRUE(record.ok()) << record.status();
      if (!record.ok() || !record->has_value()) break;
      EXPECT_TRUE(entries.emplace_back().ParseFromString(**record));
    }
  }
  return entries;
}

TEST(RestLog, HasTheMessagesOfTheCalls) {
  const std::string base = weir::testing::MakeTempDirectory("logged");
  const std::string logs = weir::testing::MakeTempDirectory("logs");
  weir::testing::WriteMultiplier(base + "/4", 2);
  serving::ModelConfig config = {.name = "m", .base_path = base, .labels = {{"stable", 4}}};
  config.logging = serving::RequestLogging{logs + "/m", 1};
  const auto models = serving::ModelManager::Create({config}, {.poll = milliseconds(20)});
  ASSERT_TRUE(models.ok() && (*models)->WaitUntilLoaded(std::chrono::seconds(60)).ok());
  auto log = std::make_unique<RequestLog>();
  log->Configure({config});
  RestApi api(**models, {.log = log.get()});
  const auto post = [&](const std::string& path, const std::string& body) {
    const HttpResponse response =
        api.Handle({.method = "POST", .target = "/v1/models/m" + path, .body = body});
    return response.status;
  };
  EXPECT_EQ(post("/labels/stable:predict", R"({"instances": [1, 2]})"), 200);
  EXPECT_EQ(post(":classify", R"({"signature_name": "classify", "examples": [{"x": 3.0}]})"), 200);
  EXPECT_EQ(post("/versions/4:regress", R"({"signature_name": "regress", "context": {"x": 5.0},
                                            "examples": [{}, {"x": 6.0}]})"),
            200);
  EXPECT_EQ(post(":predict", R"({"instances": ["no number"]})"), 400);
  log = nullptr;  // completes the file

  const std::vector<proto::serving::PredictionLog> entries = Logged(logs);
  ASSERT_EQ(entries.size(), 3u);
  for (const auto& entry : entries)
    EXPECT_EQ(entry.log_metadata().model_spec().version().value(), 4);
  const auto& predict = entries[0].predict_log();
  EXPECT_EQ(predict.request().model_spec().version_label(), "stable");
  EXPECT_THAT(predict.request().inputs().at("x").float_val(), ElementsAre(1, 2));
  EXPECT_THAT(predict.response().outputs().at("y").float_val(), ElementsAre(2, 4));
  const auto& classify = entries[1].classify_log();
  EXPECT_EQ(classify.request().model_spec().signature_name(), "classify");
  EXPECT_EQ(classify.request().input().example_list().examples_size(), 1);
  EXPECT_EQ(classify.response().result().classifications(0).classes(0).score(), 6);
  const auto& regress = entries[2].regress_log();
  EXPECT_EQ(regress.request().model_spec().version().value(), 4);
  const auto& context = regress.request().input().example_list_with_context();
  EXPECT_EQ(context.examples_size(), 2);
  EXPECT_EQ(context.context().features().feature().at("x").float_list().value(0), 5);
  EXPECT_EQ(regress.response().result().regressions(1).value(), 12);
}

}  // namespace
}  // namespace weir::rpc
