#ifndef WEIR_RPC_MODELS_REST_API_H_
#define WEIR_RPC_MODELS_REST_API_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weir/core/tensor/cancellation.h"
#include "weir/rpc/http/http_server.h"
#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/clients.h"
#include "weir/rpc/lib/response_limit.h"
#include "weir/rpc/models/call_statistics.h"
#include "weir/rpc/models/json_request.h"
#include "weir/rpc/models/request_log.h"
#include "weir/serving/inference.h"

namespace weir::rpc {

struct RestOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  // of a call; zero: none
  ResponseLimit max_response{};
  // The clients that it serves: others get no more than /healthz and /readyz. Null: everyone.
  std::shared_ptr<const Clients> clients = nullptr;
  RequestLog* log = nullptr;  // which requests to log, and where; null: none
  // If set, called after each request below /v1/, on its thread: with the method of the gRPC API
  // that does the same ("Predict"), or "Malformed", and the entry point "REST".
  OnCall on_call = {};
  // If set, the page of Prometheus's metrics, and its path.
  std::function<std::string()> metrics = {};
  std::string metrics_path = "/metrics";
};

// TensorFlow Serving's REST API, and pages for operators:
//
// clang-format off
//   POST /v1/models/NAME[/versions/V|/labels/L]:predict, :classify, :regress
//   GET  /v1/models/NAME[/versions/V|/labels/L]           states of the versions
//   GET  /v1/models/NAME[/versions/V|/labels/L]/metadata  signatures
//   GET  /healthz                                         200: the process is alive
//   GET  /readyz                                          200: every model has a version that is
//                                                         available; 503: names those that have not
//   GET  /                                                the status page
// clang-format on
//
// Errors have Serving's codes and texts: {"error": "..."} with 400 for INVALID_ARGUMENT,
// FAILED_PRECONDITION and OUT_OF_RANGE, 401 UNAUTHENTICATED, 403 PERMISSION_DENIED, 404 NOT_FOUND,
// 409 ABORTED and ALREADY_EXISTS, 429 RESOURCE_EXHAUSTED, 499 CANCELLED, 501 UNIMPLEMENTED, 503
// UNAVAILABLE, 504 DEADLINE_EXCEEDED, and 500 for others. Other paths are 404, other methods 405.
//
// Headers: "Authorization: Bearer TOKEN" or a certificate says which client calls, X-Weir-Priority
// in which lane a call waits for a batch (call.h), X-Request-Id and traceparent are for logs.
//
// Thread-safe.
class RestApi {
 public:
  // `models`, and the log in the options, outlive the object.
  explicit RestApi(serving::ModelManager& models, RestOptions options = {})
      : models_(models), options_(std::move(options)) {}

  HttpResponse Handle(const HttpRequest& request);
  // Refuses the requests that Handle would answer with 401, so that a stranger's body is not read.
  std::optional<HttpResponse> Admit(const HttpRequest& request);
  // Ends the calls in progress, and those that follow, with CANCELLED.
  void Cancel() { cancellation_.Cancel(absl::CancelledError("The server is shutting down")); }
  // What the status page shows. Other services record their calls here, too.
  CallStatistics& statistics() { return statistics_; }

 private:
  struct Route;
  absl::StatusOr<std::shared_ptr<Client>> CallerOf(const HttpRequest& request) const;
  HttpResponse Refuse(const HttpRequest& request, const absl::Status& why);
  HttpResponse HandleV1(const HttpRequest& request, std::shared_ptr<Client> client);
  // Reports a call, and returns its response.
  HttpResponse Finish(const std::string& method, const Call& call, absl::StatusOr<std::string> body,
                      std::chrono::nanoseconds took);
  absl::StatusOr<Route> FindRoute(const HttpRequest& request, std::string* method) const;
  absl::StatusOr<std::string> Answer(const HttpRequest& request, const Route& route, Call* call);
  absl::StatusOr<std::string> Predict(const serving::ModelSpec& spec, const std::string& body,
                                      Call* call);
  absl::StatusOr<std::string> Classify(const serving::ModelSpec& spec, const std::string& body,
                                       Call* call);
  absl::StatusOr<std::string> Regress(const serving::ModelSpec& spec, const std::string& body,
                                      Call* call);
  absl::StatusOr<std::string> Metadata(const serving::ModelSpec& spec, Call* call) const;
  HttpResponse Readiness() const;
  RunOptions StepOptions(Call* call) const;
  bool Samples(const serving::ModelSpec& spec) const;

  serving::ModelManager& models_;
  const RestOptions options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  CallStatistics statistics_;
  Cancellation cancellation_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_REST_API_H_
