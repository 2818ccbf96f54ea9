#include <algorithm>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/mutex.h"
#include "weir/ops/data/parsing.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/rpc/models/rest_api.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/rpc/http_client.h"

namespace weir::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kHostileName[] = "<img>&'\"";

Signature WithMethod(const char* method, Signature signature) {
  signature.method_name = absl::StrCat("tensorflow/serving/", method);
  return signature;
}

// Writes the model of TensorFlow Serving's documents, x / 2 + 2, with more signatures:
//
//   serving_default   x -> y
//   classify_x_to_y   examples with "x" -> label "half" or a label of two bytes, scores
//   regress_x_to_y    examples with "x" -> y
//   add               a, b (int64) -> sum, text and text_bytes (strings)
//   mean              x -> one value for all rows
void WriteHalfPlusTwo(const std::string& directory) {
  Graph g;
  const Variable half = MakeVariable(g, Tensor::Scalar(0.5f), {.name = "a"});
  const Output two = Const(g, 2.f);
  const Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
  const Output y = Add(Multiply(x, half), two, "y");
  const Output mean = ReduceMean(y, {0}, {}, "mean");

  const Output examples = Placeholder(g, DT_STRING, {-1}, "examples");
  const Output parsed = ParseExample(examples, {{"x", DT_FLOAT, {}, {}}}, {}).dense[0];
  const Output value = Add(Multiply(parsed, half), two, "value");
  const Output classes = Stack({Fill(ShapeTensor(value), Const(g, Tensor::Scalar("half")))}, 1);
  const Output scores = Stack({value}, 1);

  const Output a = Placeholder(g, DT_INT64, {-1}, "a"), b = Placeholder(g, DT_INT64, {-1}, "b");
  const Output text = Fill(ShapeTensor(a), Const(g, Tensor::Scalar(std::string("\xc3\xa9"))));

  const std::map<std::string, Signature> signatures = {
      {"serving_default", PredictSignature({{"x", x}}, {{"y", y}})},
      {"mean", PredictSignature({{"x", x}}, {{"y", mean}})},
      {"classify_x_to_y",
       WithMethod("classify", PredictSignature({{"inputs", examples}},
                                               {{"classes", classes}, {"scores", scores}}))},
      {"regress_x_to_y",
       WithMethod("regress", PredictSignature({{"inputs", examples}}, {{"outputs", value}}))},
      {"add", PredictSignature({{"a", a}, {"b", b}},
                               {{"sum", Add(a, b)}, {"text", text}, {"text_bytes", text}})}};
  Session session = *Session::Create(g);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
  const absl::Status written =
      WriteSavedModel(session, g, directory, signatures, {.durability = Durability::kUnsynced});
  ASSERT_TRUE(written.ok()) << written;
}

// A server of "half_plus_two", version 123 with the label "stable", and of a model with a hostile
// name, the versions of which cannot be loaded.
class RestTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string base = testing::MakeTempDirectory("rest");
    WriteHalfPlusTwo(base + "/123");
    const std::string empty = testing::MakeTempDirectory("empty");
    models_ =
        serving::ModelManager::Create(
            {{.name = "half_plus_two", .base_path = base, .labels = {{"stable", 123}}},
             {.name = kHostileName, .base_path = empty}},
            {.poll = std::chrono::milliseconds(20), .allow_labels_of_unavailable_versions = true})
            ->release();
    while (!models_->Find({.name = "half_plus_two"}).ok())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  static void TearDownTestSuite() { delete models_; }

  RestTest()
      : api_(*models_, {.on_call =
                            [this](const CallRecord& call) {
                              const MutexLock lock(mutex_);
                              last_call_ = absl::StrCat(
                                  call.method, " ", call.entrypoint, " ", call.call.connection, " ",
                                  call.call.model, " ", call.call.signature, " ",
                                  call.call.version.value_or(-1), " ", call.call.request_id, " ",
                                  call.call.traceparent, " ",
                                  absl::StatusCodeToString(call.status.code()));
                            },
                        .metrics = [] { return "numbers"; }}) {
    server_ = *HttpServer::Start({}, [this](const HttpRequest& r) { return api_.Handle(r); });
  }

  std::string PostTo(const std::string& path, const std::string& body) {
    return Post(server_->port(), "/v1/models/half_plus_two" + path, body);
  }
  // The body of a response without the white space, and the status before it unless that is 200.
  static std::string Short(const std::string& response) {
    std::string text = StatusOf(response) == "200" ? "" : StatusOf(response) + " ";
    for (const char c : BodyOf(response)) {
      if (c != '\n' && c != ' ') text.push_back(c);
    }
    return text;
  }

  static serving::ModelManager* models_;
  // What the server has noted of the last call.
  std::string LastCall() {
    const MutexLock lock(mutex_);
    return last_call_;
  }

  Mutex mutex_;
  std::string last_call_ ABSL_GUARDED_BY(mutex_);
  RestApi api_;
  std::unique_ptr<HttpServer> server_;
};
serving::ModelManager* RestTest::models_ = nullptr;

TEST_F(RestTest, Predict) {
  const std::string response = PostTo(":predict", R"({"instances": [1.0, 2.0, 5.0]})");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(response, Not(HasSubstr("Access-Control")));
  EXPECT_EQ(Short(response), R"({"predictions":[2.5,3.0,4.5]})");
  EXPECT_EQ(Short(PostTo("/versions/123:predict", R"({"instances": [{"x": 1}]})")),
            R"({"predictions":[2.5]})");
  EXPECT_EQ(Short(PostTo("/labels/stable:PREDICT", R"({"inputs": [1, 2]})")),
            R"({"outputs":[2.5,3.0]})");
  EXPECT_EQ(Short(Post(server_->port(), "/V1/models/half%5Fplus_two:predict?x=y",
                       R"({"inputs": {"x": [NaN, -Infinity]}})")),
            R"({"outputs":[NaN,-Infinity]})");
}

TEST_F(RestTest, SeveralInputsAndOutputs) {
  EXPECT_EQ(Short(PostTo(":predict", R"({"signature_name": "add", "instances": [
                         {"a": 9223372036854775806, "b": 1}, {"a": 1, "b": -3}]})")),
            "{\"predictions\":[{\"sum\":9223372036854775807,\"text\":\"\xc3\xa9\",\"text_bytes\":{"
            "\"b64\":\"w6k=\"}},{\"sum\":-2,\"text\":\"\xc3\xa9\",\"text_bytes\":{\"b64\":\"w6k="
            "\"}}]}");
  EXPECT_EQ(
      Short(PostTo(":predict", R"({"inputs": {"a": [1], "b": [2]}, "signature_name": "add"})")),
      "{\"outputs\":{\"sum\":[3],\"text\":[\"\xc3\xa9\"],\"text_bytes\":[{\"b64\":\"w6k=\"}]}}");
}

TEST_F(RestTest, ClassifyAndRegress) {
  EXPECT_EQ(Short(PostTo(":classify", R"({"signature_name": "classify_x_to_y",
                                          "examples": [{"x": 1.0}, {"x": [2.0]}]})")),
            R"({"results":[[["half",2.5]],[["half",3.0]]]})");
  EXPECT_EQ(Short(PostTo(":regress", R"({"signature_name": "regress_x_to_y",
                                         "context": {"x": 4.0}, "examples": [{}, {"x": 2.0}]})")),
            R"({"results":[4.0,3.0]})");
}

TEST_F(RestTest, Errors) {
  const std::string predict = ":predict", one = R"({"instances": [1]})";
  const auto post = [&](const std::string& path, const std::string& body) {
    const std::string response = PostTo(path, body);
    EXPECT_THAT(BodyOf(response), StartsWith("{\n    \"error\": \""));
    return absl::StrCat(StatusOf(response), " ", BodyOf(response));
  };
  EXPECT_THAT(post(predict, "{"), AllOf(StartsWith("400"), HasSubstr("JSON Parse error")));
  EXPECT_THAT(post(predict, R"({"instances": ["a"]})"),
              AllOf(StartsWith("400"), HasSubstr("is not of expected type: float")));
  EXPECT_THAT(post(predict, R"({"instances": [[1]]})"), StartsWith("400")) << "wrong rank";
  EXPECT_THAT(post(predict, R"({"signature_name": "no", "instances": [1]})"),
              AllOf(StartsWith("400"),
                    HasSubstr(R"(Serving signature name: \"no\" not found in signature def)")));
  EXPECT_THAT(post(predict, R"({"signature_name": "mean", "instances": [1]})"),
              AllOf(StartsWith("400"), HasSubstr("Tensor name: y has no shape information")));
  EXPECT_THAT(post("/versions/9:predict", one),
              AllOf(StartsWith("404"), HasSubstr("Servable not found for request")));
  EXPECT_THAT(post("/labels/none:predict", one), StartsWith("400"));
  EXPECT_THAT(post("/versions/99999999999999999999:predict", one),
              AllOf(StartsWith("400"), HasSubstr("Failed to convert version")));
  EXPECT_THAT(post("s/x:predict", one),
              AllOf(StartsWith("400"), HasSubstr("Malformed request: POST")));
  EXPECT_THAT(post(":train", one), AllOf(StartsWith("400"), HasSubstr("Malformed request: POST")));
  EXPECT_THAT(post(":classify", R"({"signature_name": "classify_x_to_y"})"), StartsWith("400"));
  EXPECT_THAT(post(":regress", R"({"signature_name": "classify_x_to_y", "examples": [{}]})"),
              StartsWith("400"));
  EXPECT_THAT(post(":regress", R"({"signature_name": "regress_x_to_y", "examples": [{"x": "a"}]})"),
              StartsWith("400"));
  const auto get = [&](const std::string& path) {
    const std::string response = Get(server_->port(), path);
    return absl::StrCat(StatusOf(response), " ", BodyOf(response));
  };
  EXPECT_THAT(get("/v1/models/none"), StartsWith("404"));
  EXPECT_THAT(get("/v1/models/none/metadata"), StartsWith("404"));
  EXPECT_THAT(get("/v1/models"), AllOf(StartsWith("400"), HasSubstr("Missing model name")));
  EXPECT_THAT(get("/v1/models/half_plus_two:predict"), StartsWith("400"));
  EXPECT_THAT(get("/other"), AllOf(StartsWith("404"), HasSubstr("Malformed request: GET /other")));
  EXPECT_EQ(StatusOf(Exchange(server_->port(), "PUT /v1/models/half_plus_two HTTP/1.1\r\n\r\n")),
            "405");
  EXPECT_EQ(StatusOf(Post(server_->port(), "/healthz", "")), "405");
}

TEST_F(RestTest, StatusAndMetadata) {
  const auto get = [&](const std::string& path) { return Short(Get(server_->port(), path)); };
  const std::string state =
      R"({"model_version_status":[{"version":"123","state":"AVAILABLE","status":{"error_code":"OK",)"
      R"("error_message":""}}]})";
  EXPECT_EQ(get("/v1/models/half_plus_two"), state);
  EXPECT_EQ(get("/v1/models/half_plus_two/versions/123"), state);
  const std::string metadata = get("/v1/models/half_plus_two/metadata");
  EXPECT_THAT(metadata,
              StartsWith(R"({"model_spec":{"name":"half_plus_two","signature_name":"",)"
                         R"("version":"123"},"metadata":{"signature_def":)"
                         R"({"signature_def":{"add":{"inputs":{"a":{"dtype":"DT_INT64")"));
  EXPECT_THAT(
      metadata,
      HasSubstr(R"("serving_default":{"inputs":{"x":{"dtype":"DT_FLOAT","tensor_shape":)"
                R"({"dim":[{"size":"-1","name":""}],"unknown_rank":false},"name":"x:0"}},)"));
  EXPECT_THAT(metadata, HasSubstr(R"("method_name":"tensorflow/serving/predict")"));
}

TEST_F(RestTest, CallsAreReported) {
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const std::string response = Exchange(
      server_->port(),
      absl::StrCat("POST /v1/models/half_plus_two:predict HTTP/1.1\r\nContent-Length: 18\r\n"
                   "X-Request-Id: id-7\r\ntraceparent: ",
                   trace, "\r\n\r\n{\"instances\": [1]}"));
  EXPECT_THAT(response, HasSubstr("X-Request-Id: id-7\r\n"));
  EXPECT_EQ(
      LastCall(),
      absl::StrCat("Predict REST 127.0.0.1 half_plus_two serving_default 123 id-7 ", trace, " OK"));
  Get(server_->port(), "/v1/models/none/metadata");
  EXPECT_THAT(LastCall(), StartsWith("GetModelMetadata REST 127.0.0.1   -1 "));
  EXPECT_THAT(LastCall(), ::testing::EndsWith("NOT_FOUND"));
  PostTo(":train", "");
  EXPECT_THAT(LastCall(), StartsWith("Malformed REST"));
}

TEST_F(RestTest, MetricsPage) {
  EXPECT_EQ(BodyOf(Get(server_->port(), "/metrics")), "numbers");
  EXPECT_EQ(StatusOf(Post(server_->port(), "/metrics", "")), "405");
}

TEST_F(RestTest, HealthIsNotReadiness) {
  EXPECT_EQ(BodyOf(Get(server_->port(), "/healthz")), "alive\n");
  const std::string ready = Get(server_->port(), "/readyz");
  EXPECT_EQ(StatusOf(ready), "503");
  EXPECT_THAT(ready, HasSubstr(kHostileName));
  EXPECT_THAT(ready, HasSubstr("Content-Type: text/plain"));
}

TEST_F(RestTest, StatusPageEscapesNames) {
  PostTo(":predict", R"({"instances": [1]})");
  PostTo(":predict", R"({"instances": ["<script>alert(1)</script>"]})");
  Get(server_->port(), "/v1/models/<script>");
  const std::string page = Get(server_->port(), "/");
  EXPECT_THAT(page, HasSubstr("Content-Type: text/html"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("&lt;img&gt;&amp;&#39;&quot;"));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(page, HasSubstr("<td class=\"AVAILABLE\">AVAILABLE</td>"));
  EXPECT_THAT(page, HasSubstr("half_plus_two</td><td class=\"\">Predict</td><td class=\"n\">2</td>"
                              "<td class=\"n\">1</td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"long\">(no model)</td>"));
}

TEST_F(RestTest, CancelEndsCalls) {
  api_.Cancel();
  EXPECT_EQ(StatusOf(PostTo(":predict", R"({"instances": [1]})")), "499");
}

TEST_F(RestTest, ManyClients) {
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 16; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 20; ++i) {
        const int x = 100 * c + i;
        const std::string response =
            PostTo(":predict", absl::StrCat(R"({"instances": [)", 2 * x, "]}"));
        if (Short(response) == absl::StrCat(R"({"predictions":[)", x + 2, ".0]}")) ++good;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 320);
}

TEST(CallStatistics, RatesAndTimes) {
  CallStatistics calls;
  const auto start = CallStatistics::Clock::now();
  for (int i = 1; i <= 120; ++i)
    calls.Record("m", "Predict", absl::OkStatus(), std::chrono::milliseconds(i),
                 start + std::chrono::seconds(i));
  calls.Record("m", "Predict", absl::InternalError(std::string(1000, 'x')),
               std::chrono::milliseconds(1), start + std::chrono::seconds(120));
  const auto rows = calls.Rows(start + std::chrono::seconds(120));
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].calls, 121);
  EXPECT_EQ(rows[0].errors, 1);
  EXPECT_DOUBLE_EQ(rows[0].per_second, 61. / 60);
  EXPECT_EQ(rows[0].median, std::chrono::milliseconds(60));
  EXPECT_EQ(rows[0].percentile_99, std::chrono::milliseconds(118));
  EXPECT_EQ(calls.Rows(start + std::chrono::seconds(200))[0].per_second, 0);
  for (int i = 0; i < 100; ++i)
    calls.Record("", "Predict", absl::NotFoundError(absl::StrCat(i)), std::chrono::seconds(1));
  ASSERT_EQ(calls.Failures().size(), 50);
  EXPECT_EQ(calls.Failures()[0].status.message(), "99");
}

}  // namespace
}  // namespace weir::rpc
