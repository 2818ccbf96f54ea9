// The services of models over gRPC, called as TensorFlow Serving's clients call them.

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/serving/lib/watched_model.h"
#include "tests/serving/lib/written_models.h"
#include "weir/proto/classification.pb.h"
#include "weir/proto/get_model_metadata.pb.h"
#include "weir/proto/get_model_status.pb.h"
#include "weir/proto/inference.pb.h"
#include "weir/proto/model_management.pb.h"
#include "weir/proto/predict.pb.h"
#include "weir/proto/regression.pb.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/models/prediction_service.h"
#include "weir/rpc/server.h"
#include "weir/serving/model_manager.h"

namespace weir::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace api = proto::serving;

constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";
constexpr char kClassify[] = "/tensorflow.serving.PredictionService/Classify";
constexpr char kRegress[] = "/tensorflow.serving.PredictionService/Regress";
constexpr char kMultiInference[] = "/tensorflow.serving.PredictionService/MultiInference";
constexpr char kMetadata[] = "/tensorflow.serving.PredictionService/GetModelMetadata";
constexpr char kStatus[] = "/tensorflow.serving.ModelService/GetModelStatus";
constexpr char kReload[] = "/tensorflow.serving.ModelService/HandleReloadConfigRequest";

// What on_call reported of the last call.
struct Seen {
  std::string method, model, signature, request_id, traceparent;
  std::optional<int64_t> version;
  absl::Status status;
};

class PredictionTest : public ::testing::Test {
 protected:
  // Serves the versions 1 (times 2) and 3 (times 5) of the model "m".
  void SetUp() override {
    root_ = ::testing::TempDir() + "/" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ + "/m");
    weir::testing::WriteMultiplier(root_ + "/m/1", 2);
    weir::testing::WriteMultiplier(root_ + "/m/3", 5);
    serving::ModelConfig config = {.name = "m", .base_path = root_ + "/m"};
    config.versions.kind = serving::VersionPolicy::Kind::kAll;
    config.labels = {{"stable", 1}};
    auto models = serving::ModelManager::Create(
        {config}, {.poll = std::chrono::milliseconds(20), .max_load_retries = 0});
    ASSERT_TRUE(models.ok()) << models.status();
    models_ = *std::move(models);
    const absl::Status loaded = models_->WaitUntilLoaded(std::chrono::seconds(60));
    ASSERT_TRUE(loaded.ok()) << loaded;
    while (!models_->Find({.name = "m", .version = 1}).ok() ||
           !models_->Find({.name = "m", .version = 3}).ok())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ServerOptions options;
    options.sessions = false;
    options.models = models_.get();
    options.reload_models = [this](const std::vector<serving::ModelConfig>& configs) {
      return models_->Reload(configs);
    };
    options.on_call = [this](const CallRecord& record) {
      seen_ = {std::string(record.method),
               record.call.model,
               record.call.signature,
               record.call.request_id,
               record.call.traceparent,
               record.call.version,
               record.status};
    };
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->port()),
                                   grpc::InsecureChannelCredentials());
  }
  void TearDown() override {
    server_ = nullptr;
    models_ = nullptr;
    std::filesystem::remove_all(root_);
  }

  template <class Request, class Response>
  absl::Status Call(const char* path, const Request& request, Response* response,
                    grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    const grpc::internal::RpcMethod method(path, grpc::internal::RpcMethod::NORMAL_RPC);
    const google::protobuf::MessageLite& message = request;
    google::protobuf::MessageLite& answer = *response;
    return FromGrpc(grpc::internal::BlockingUnaryCall<google::protobuf::MessageLite,
                                                      google::protobuf::MessageLite>(
        channel_.get(), method, context == nullptr ? &own : context, message, &answer));
  }
  static api::PredictRequest Times(const std::vector<float>& x) {
    api::PredictRequest request;
    request.mutable_model_spec()->set_name("m");
    proto::TensorProto& value = (*request.mutable_inputs())["x"];
    value.set_dtype(proto::DT_FLOAT);
    value.mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(x.size()));
    for (const float v : x) value.add_float_val(v);
    return request;
  }
  absl::Status Predict(const api::PredictRequest& request, api::PredictResponse* response) {
    return Call(kPredict, request, response);
  }
  static void AddExamples(const std::vector<float>& x, api::Input* input) {
    for (const float v : x) {
      ASSERT_TRUE(input->mutable_example_list()->add_examples()->ParseFromString(
          weir::testing::ExampleOf(v)));
    }
  }

  std::string root_;
  std::unique_ptr<serving::ModelManager> models_;
  Seen seen_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(PredictionTest, PredictAnswersInTypedFieldsWithTheVersion) {
  api::PredictResponse response;
  const absl::Status status = Predict(Times({1, 2}), &response);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(response.outputs().at("y").float_val(), ElementsAre(5, 10));
  EXPECT_EQ(response.outputs().at("y").tensor_content(), "");
  EXPECT_EQ(response.model_spec().name(), "m");
  EXPECT_EQ(response.model_spec().version().value(), 3);
  EXPECT_EQ(response.model_spec().signature_name(), "serving_default");
}

TEST_F(PredictionTest, VersionsAndLabelsSelect) {
  api::PredictRequest request = Times({1});
  api::PredictResponse response;
  request.mutable_model_spec()->mutable_version()->set_value(1);
  ASSERT_TRUE(Predict(request, &response).ok());
  EXPECT_THAT(response.outputs().at("y").float_val(), ElementsAre(2));
  request.mutable_model_spec()->set_version_label("stable");
  ASSERT_TRUE(Predict(request, &response).ok());
  EXPECT_THAT(response.outputs().at("y").float_val(), ElementsAre(2));
  EXPECT_EQ(response.model_spec().version().value(), 1);
  request.mutable_model_spec()->set_version_label("canary");
  EXPECT_TRUE(absl::IsInvalidArgument(Predict(request, &response)));
  request.mutable_model_spec()->mutable_version()->set_value(2);
  EXPECT_TRUE(absl::IsNotFound(Predict(request, &response)));
}

TEST_F(PredictionTest, RawContentIsReadAndRepeatedValuesExpand) {
  api::PredictRequest request = Times({});
  proto::TensorProto& x = (*request.mutable_inputs())["x"];
  x.mutable_tensor_shape()->mutable_dim(0)->set_size(3);
  x.add_float_val(2);
  api::PredictResponse response;
  ASSERT_TRUE(Predict(request, &response).ok());
  EXPECT_THAT(response.outputs().at("y").float_val(), ElementsAre(10, 10, 10));
  const float raw[] = {1, 2, 3};
  x.clear_float_val();
  x.set_tensor_content(raw, sizeof(raw));
  ASSERT_TRUE(Predict(request, &response).ok());
  EXPECT_THAT(response.outputs().at("y").float_val(), ElementsAre(5, 10, 15));
  x.clear_tensor_content();
  x.mutable_tensor_shape()->mutable_dim(0)->set_size(int64_t{1} << 30);
  EXPECT_TRUE(absl::IsResourceExhausted(Predict(request, &response)));
}

TEST_F(PredictionTest, MistakesAreNamed) {
  api::PredictResponse response;
  absl::Status status = Predict(api::PredictRequest(), &response);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "Missing ModelSpec");

  api::PredictRequest request = Times({1});
  request.mutable_model_spec()->set_name("other");
  status = Predict(request, &response);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("Servable not found for request: Latest(other)"));
  EXPECT_EQ(seen_.model, "") << "a client's text is no label of metrics";

  request = Times({1});
  (*request.mutable_inputs())["z"] = request.inputs().at("x");
  status = Predict(request, &response);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("z"));

  request = Times({1});
  request.add_output_filter("y");
  EXPECT_TRUE(Predict(request, &response).ok());
  request.add_output_filter("y");
  status = Predict(request, &response);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("duplicate output tensor alias: y"));
  request.set_output_filter(1, "w");
  EXPECT_TRUE(absl::IsInvalidArgument(Predict(request, &response)));
}

TEST_F(PredictionTest, ClassifiesAndRegresses) {
  api::ClassificationRequest classify;
  classify.mutable_model_spec()->set_name("m");
  classify.mutable_model_spec()->set_signature_name("classify");
  AddExamples({1, 2}, classify.mutable_input());
  api::ClassificationResponse classes;
  absl::Status status = Call(kClassify, classify, &classes);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(classes.result().classifications_size(), 2);
  EXPECT_EQ(classes.result().classifications(1).classes(0).label(), "small");
  EXPECT_EQ(classes.result().classifications(1).classes(0).score(), 10);
  EXPECT_EQ(classes.model_spec().version().value(), 3);

  api::RegressionRequest regress;
  *regress.mutable_model_spec() = classify.model_spec();
  api::RegressionResponse numbers;
  status = Call(kRegress, regress, &numbers);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("Input is empty"));
  *regress.mutable_input() = classify.input();
  status = Call(kRegress, regress, &numbers);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << "a signature of another method: " << status;
  regress.mutable_model_spec()->set_signature_name("regress");
  status = Call(kRegress, regress, &numbers);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(numbers.result().regressions_size(), 2);
  EXPECT_EQ(numbers.result().regressions(0).value(), 5);
}

TEST_F(PredictionTest, ExamplesShareTheContext) {
  api::RegressionRequest request;
  request.mutable_model_spec()->set_name("m");
  request.mutable_model_spec()->set_signature_name("regress");
  api::ExampleListWithContext* list = request.mutable_input()->mutable_example_list_with_context();
  ASSERT_TRUE(list->mutable_context()->ParseFromString(weir::testing::ExampleOf(4)));
  list->add_examples();
  list->add_examples();
  api::RegressionResponse response;
  const absl::Status status = Call(kRegress, request, &response);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(response.result().regressions_size(), 2);
  EXPECT_EQ(response.result().regressions(1).value(), 20);
}

TEST_F(PredictionTest, MultiInferenceRunsTasksOfOneModel) {
  api::MultiInferenceRequest request;
  AddExamples({1}, request.mutable_input());
  api::MultiInferenceResponse response;
  EXPECT_TRUE(absl::IsInvalidArgument(Call(kMultiInference, request, &response)));
  for (const char* kind : {"classify", "regress"}) {
    api::InferenceTask* task = request.add_tasks();
    task->mutable_model_spec()->set_name("m");
    task->mutable_model_spec()->set_signature_name(kind);
    task->set_method_name(std::string("tensorflow/serving/") + kind);
  }
  absl::Status status = Call(kMultiInference, request, &response);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(0).classification_result().classifications(0).classes(0).score(), 5);
  EXPECT_EQ(response.results(1).regression_result().regressions(0).value(), 5);
  EXPECT_EQ(response.results(1).model_spec().version().value(), 3);

  request.mutable_tasks(1)->set_method_name("tensorflow/serving/predict");
  EXPECT_TRUE(absl::IsUnimplemented(Call(kMultiInference, request, &response)));
  request.mutable_tasks(1)->mutable_model_spec()->set_signature_name("classify");
  status = Call(kMultiInference, request, &response);
  EXPECT_THAT(status.message(), HasSubstr("Duplicate evaluation of signature: classify"));
  request.mutable_tasks(1)->mutable_model_spec()->set_name("n");
  status = Call(kMultiInference, request, &response);
  EXPECT_THAT(status.message(), HasSubstr("must access the same model name"));
}

TEST_F(PredictionTest, MetadataIsASignatureDefMap) {
  api::GetModelMetadataRequest request;
  request.mutable_model_spec()->set_name("m");
  api::GetModelMetadataResponse response;
  EXPECT_TRUE(absl::IsInvalidArgument(Call(kMetadata, request, &response)));
  request.add_metadata_field("signature_def");
  const absl::Status status = Call(kMetadata, request, &response);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(response.model_spec().version().value(), 3);
  const google::protobuf::Any& packed = response.metadata().at("signature_def");
  EXPECT_EQ(packed.type_url(), "type.googleapis.com/tensorflow.serving.SignatureDefMap");
  api::SignatureDefMap signatures;
  ASSERT_TRUE(signatures.ParseFromString(packed.value()));
  const proto::SignatureDef& main = signatures.signature_def().at("serving_default");
  EXPECT_EQ(main.method_name(), "tensorflow/serving/predict");
  EXPECT_EQ(main.inputs().at("x").dtype(), proto::DT_FLOAT);
  EXPECT_EQ(main.inputs().at("x").tensor_shape().dim(0).size(), -1);
  request.add_metadata_field("assets");
  EXPECT_TRUE(absl::IsInvalidArgument(Call(kMetadata, request, &response)));
}

TEST_F(PredictionTest, StatusAndReload) {
  api::GetModelStatusRequest ask;
  ask.mutable_model_spec()->set_name("m");
  api::GetModelStatusResponse status;
  ASSERT_TRUE(Call(kStatus, ask, &status).ok());
  ASSERT_EQ(status.model_version_status_size(), 2);
  EXPECT_EQ(status.model_version_status(0).version(), 3);
  EXPECT_EQ(status.model_version_status(0).state(), api::ModelVersionStatus::AVAILABLE);
  EXPECT_EQ(status.model_version_status(0).status().error_code(), proto::error::OK);

  api::ReloadConfigRequest reload;
  api::ReloadConfigResponse reloaded;
  EXPECT_TRUE(absl::IsInvalidArgument(Call(kReload, reload, &reloaded)));
  api::ModelConfig* config = reload.mutable_config()->mutable_model_config_list()->add_config();
  config->set_name("n");
  config->set_base_path(root_ + "/m");
  config->set_model_platform("tensorflow");
  const absl::Status done = Call(kReload, reload, &reloaded);
  ASSERT_TRUE(done.ok()) << done;
  ask.mutable_model_spec()->set_name("n");
  ASSERT_TRUE(Call(kStatus, ask, &status).ok());
  EXPECT_EQ(status.model_version_status(0).version(), 3);
  api::PredictRequest request = Times({1});
  request.mutable_model_spec()->set_name("n");
  api::PredictResponse response;
  EXPECT_TRUE(Predict(request, &response).ok());
  EXPECT_TRUE(absl::IsNotFound(Predict(Times({1}), &response))) << "m is no longer served";
}

TEST_F(PredictionTest, CallsAreReportedWithIdsAndModels) {
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "abc-1");
  const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  context.AddMetadata("traceparent", parent);
  api::PredictResponse response;
  ASSERT_TRUE(Call(kPredict, Times({1}), &response, &context).ok());
  EXPECT_EQ(seen_.method, "Predict");
  EXPECT_EQ(seen_.model, "m");
  EXPECT_EQ(seen_.version, 3);
  EXPECT_EQ(seen_.signature, "serving_default");
  EXPECT_EQ(seen_.request_id, "abc-1");
  EXPECT_EQ(seen_.traceparent, parent);
}

TEST_F(PredictionTest, SessionsAreOffAndReadinessIsApartFromLiveness) {
  // grpc.health.v1: field 1 of the request is the service, of the response the status (1: SERVING).
  const auto health = [&](const std::string& service) {
    api::Class request;  // any message whose field 1 is a string
    request.set_label(service);
    proto::TensorProto response;  // and one whose field 1 is an enum
    const absl::Status status = Call("/grpc.health.v1.Health/Check", request, &response);
    return status.ok() ? static_cast<int>(response.dtype()) : -1;
  };
  EXPECT_EQ(health(""), 1);
  EXPECT_EQ(health("tensorflow.serving.PredictionService"), 2);
  server_->SetModelsReady(true);
  EXPECT_EQ(health("tensorflow.serving.PredictionService"), 1);
  api::Class nothing, answer;
  EXPECT_TRUE(
      absl::IsUnimplemented(Call("/tensorflow.MasterService/ListDevices", nothing, &answer)));
}

TEST_F(PredictionTest, GarbageIsRefused) {
  for (const char* path : {kPredict, kClassify, kRegress, kMultiInference, kMetadata, kReload}) {
    api::Class garbage, answer;  // a float where the messages have none
    garbage.set_score(1);
    garbage.set_label(std::string(100, '\xff'));
    EXPECT_TRUE(absl::IsInvalidArgument(Call(path, garbage, &answer))) << path;
  }
}

TEST_F(PredictionTest, PriorityIsHighOrLow) {
  for (const char* priority : {"high", "low", "none"}) {
    grpc::ClientContext context;
    context.AddMetadata("x-weir-priority", priority);
    api::PredictResponse response;
    const absl::Status status = Call(kPredict, Times({1}), &response, &context);
    if (priority != std::string("none")) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("expected high or low"));
  }
}

// A call that runs one row of a model, which begins with `x`.
struct Calling {
  Calling(PredictionService& predictions, float x, bool is_low_priority)
      : thread([&predictions, x, is_low_priority] {
          rpc::Call call;
          call.is_low_priority = is_low_priority;
          api::PredictRequest request;
          request.mutable_model_spec()->set_name("w");
          proto::TensorProto& value = (*request.mutable_inputs())["x"];
          value.set_dtype(proto::DT_FLOAT);
          for (int i = 0; i < 2; ++i) value.mutable_tensor_shape()->add_dim()->set_size(i + 1);
          value.add_float_val(x);
          value.add_float_val(0);
          api::PredictResponse response;
          const absl::Status status = predictions.Predict(request, call, &response);
          EXPECT_TRUE(status.ok()) << status;
        }) {}
  ~Calling() { thread.join(); }

  std::thread thread;
};

TEST(PredictionService, HighPriorityGoesFirst) {
  serving::WatchedModel watched;
  const std::string directory = watched.directory();
  serving::ModelConfig config = {.name = "w",
                                 .base_path = directory.substr(0, directory.rfind('/'))};
  config.batching = serving::BatchingOptions{.max_batch_size = 1, .num_batch_threads = 1};
  const auto models = serving::ModelManager::Create(
      {config}, {.servable = {.session = {.kernels = &watched.kernels()}},
                 .poll = std::chrono::milliseconds(20)});
  ASSERT_TRUE(models.ok() && (*models)->WaitUntilLoaded(std::chrono::seconds(60)).ok());
  PredictionService predictions(**models);
  watched.Hold();
  {
    const Calling first(predictions, 1, false);
    watched.WaitForSteps(1);
    const Calling low(predictions, 2, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until it waits for its batch
    const Calling high(predictions, 3, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    watched.Release();
  }
  std::vector<float> order;
  for (const std::vector<float>& step : watched.steps()) order.push_back(step.at(0));
  EXPECT_THAT(order, ElementsAre(1, 3, 2));
}

}  // namespace
}  // namespace weir::rpc
