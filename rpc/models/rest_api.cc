#include "weir/rpc/models/rest_api.h"

#include <re2/re2.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "weir/rpc/models/json_request.h"
#include "weir/rpc/models/json_response.h"
#include "weir/rpc/models/status_page.h"

namespace weir::rpc {

namespace {

using nlohmann::ordered_json;

// Serving's HTTP statuses of errors.
int HttpStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

// Decodes %41 to A. As in Serving, a % that no two digits follow stays.
std::string DecodePercent(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code = text[i] == '%' && i + 2 < text.size() &&
                         absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                         absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (is_code) {
      decoded.push_back(static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

absl::Status Malformed(const HttpRequest& request) {
  return InvalidArgument("Malformed request: ", request.method, " ", request.Path());
}

HttpResponse NotAllowed(const HttpRequest& request, const char* allowed) {
  HttpResponse refused = HttpError(405, Malformed(request).message());
  refused.headers = {{"Allow", allowed}};
  return refused;
}

serving::ModelSpec WithSignature(serving::ModelSpec spec, const std::string& signature) {
  spec.signature = signature;
  return spec;
}

void SetAnswered(const serving::Answered& by, Call* call) {
  call->version = by.version;
  call->signature = by.signature;
}

// Returns the model of a request from the parts of its path.
absl::StatusOr<serving::ModelSpec> ParseSpec(const std::string& name, const std::string& version,
                                             const std::string& label) {
  serving::ModelSpec spec = {.name = DecodePercent(name), .label = DecodePercent(label)};
  if (version.empty()) return spec;
  int64_t number = 0;
  if (!absl::SimpleAtoi(version, &number))
    return InvalidArgument("Failed to convert version: ", version, " to numeric.");
  spec.version = number;
  return spec;
}

std::string Dump(const ordered_json& value) {
  return value.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json JsonOf(const std::map<std::string, serving::TensorInfo>& infos) {
  ordered_json all = ordered_json::object();
  for (const auto& [name, info] : infos) {
    ordered_json dims = ordered_json::array();
    for (const int64_t extent : info.shape.dims())
      dims.push_back({{"size", absl::StrCat(extent)}, {"name", ""}});
    all[name] = {{"dtype", absl::StrCat("DT_", absl::AsciiStrToUpper(DataTypeName(info.dtype)))},
                 {"tensor_shape", {{"dim", dims}, {"unknown_rank", !info.shape.has_rank()}}},
                 {"name", info.tensor}};
  }
  return all;
}

}  // namespace

// What a path below /v1/ means.
struct RestApi::Route {
  enum class Action { kPredict, kClassify, kRegress, kMetadata, kStates };
  Action action;
  serving::ModelSpec spec;
};

HttpResponse RestApi::Handle(const HttpRequest& request) {
  const absl::string_view path = request.Path();
  if (absl::StartsWithIgnoreCase(path, "/v1/")) return HandleV1(request);
  const bool is_metrics = options_.metrics != nullptr && path == options_.metrics_path;
  if (path != "/" && path != "/healthz" && path != "/readyz" && !is_metrics)
    return HttpError(404, Malformed(request).message());
  if (request.method != "GET") return NotAllowed(request, "GET, HEAD");
  if (is_metrics) return {200, "text/plain; version=0.0.4; charset=utf-8", options_.metrics()};
  if (path == "/healthz") return {200, "text/plain; charset=utf-8", "alive\n"};
  if (path == "/readyz") return Readiness();
  const auto uptime =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_);
  return {200,
          "text/html; charset=utf-8",
          StatusPage(models_, statistics_, uptime),
          {{"Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"},
           {"X-Content-Type-Options", "nosniff"},
           {"Cache-Control", "no-store"}}};
}

HttpResponse RestApi::Readiness() const {
  std::vector<std::string> missing;
  for (const std::string& name : models_.models()) {
    if (!models_.Find({.name = name}).ok()) missing.push_back(name);
  }
  if (missing.empty()) return {200, "text/plain; charset=utf-8", "ready\n"};
  return {503,
          "text/plain; charset=utf-8",
          absl::StrCat("No version is available of: ", absl::StrJoin(missing, ", "), "\n"),
          {{"X-Content-Type-Options", "nosniff"}}};
}

HttpResponse RestApi::HandleV1(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "POST")
    return NotAllowed(request, "GET, HEAD, POST");
  const auto begin = std::chrono::steady_clock::now();
  Call call;
  call.connection = request.client;
  call.request_id = RequestId(request.Header("x-request-id"));
  call.traceparent = Traceparent(request.Header("traceparent"));
  std::string method = "Malformed";
  const absl::StatusOr<Route> route = FindRoute(request, &method);
  absl::StatusOr<std::string> body = std::string();
  if (!route.ok()) {
    body = route.status();
  } else {
    // A name that no model has would be a label of metrics that the client has chosen.
    const std::vector<std::string> known = models_.models();
    if (absl::c_linear_search(known, route->spec.name)) call.model = route->spec.name;
    const LinkedCancellation linked(&cancellation_, call.cancellation);
    body = Answer(*route, request.body, &call);
  }
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  const absl::Status status = body.status();
  statistics_.Record(call.model, method, status, took);
  if (options_.on_call) options_.on_call({method, "REST", call, status, took});
  HttpResponse response;
  if (body.ok()) {
    response.body = *std::move(body);
  } else {
    response = HttpError(HttpStatus(status.code()), status.message());
  }
  response.headers = {{"X-Request-Id", call.request_id}};
  return response;
}

absl::StatusOr<RestApi::Route> RestApi::FindRoute(const HttpRequest& request,
                                                  std::string* method) const {
  static const RE2* const kPost = new RE2(
      R"((?i)/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?:(classify|regress|predict))",
      RE2::Latin1);
  static const RE2* const kGet = new RE2(
      R"((?i)/v1/models(?:/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?(?:/(metadata))?)?)",
      RE2::Latin1);
  const std::string path(request.Path());
  std::string name, version, label, verb;
  const RE2& pattern = request.method == "POST" ? *kPost : *kGet;
  if (!RE2::FullMatch(path, pattern, &name, &version, &label, &verb)) return Malformed(request);
  if (name.empty()) return InvalidArgument("Missing model name in request.");
  using Action = Route::Action;
  static const auto* const kActions = new std::map<std::string, std::pair<Action, const char*>>{
      {"predict", {Action::kPredict, "Predict"}},
      {"classify", {Action::kClassify, "Classify"}},
      {"regress", {Action::kRegress, "Regress"}},
      {"metadata", {Action::kMetadata, "GetModelMetadata"}},
      {"", {Action::kStates, "GetModelStatus"}}};
  Route route;
  std::tie(route.action, *method) = kActions->at(absl::AsciiStrToLower(verb));
  WEIR_ASSIGN_OR_RETURN(route.spec, ParseSpec(name, version, label));
  return route;
}

absl::StatusOr<std::string> RestApi::Answer(const Route& route, const std::string& body,
                                            Call* call) {
  switch (route.action) {
    case Route::Action::kPredict:
      return Predict(route.spec, body, call);
    case Route::Action::kClassify:
      return Classify(route.spec, body, call);
    case Route::Action::kRegress:
      return Regress(route.spec, body, call);
    case Route::Action::kMetadata:
      return Metadata(route.spec, call);
    default:
      return VersionStates(route.spec);
  }
}

absl::StatusOr<std::string> RestApi::Predict(const serving::ModelSpec& spec,
                                             const std::string& body, Call* call) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const serving::Servable> servable,
                        models_.Find(spec));
  call->version = servable->version();
  const auto find_signature =
      [&](const std::string& name) -> absl::StatusOr<const serving::SignatureInfo*> {
    call->signature = name.empty() ? "serving_default" : name;
    const auto found = servable->signatures().find(call->signature);
    if (found != servable->signatures().end()) return &found->second;
    return InvalidArgument("Serving signature name: \"", call->signature,
                           "\" not found in signature def");
  };
  WEIR_ASSIGN_OR_RETURN(JsonPredictRequest request, ParsePredictRequest(body, find_signature));
  WEIR_ASSIGN_OR_RETURN(
      const serving::NamedTensors outputs,
      models_.Run(*servable, request.signature, request.inputs, {}, StepOptions(call)));
  return PredictResponse(outputs, request.by_rows, options_.max_response_bytes);
}

absl::StatusOr<std::string> RestApi::Classify(const serving::ModelSpec& spec,
                                              const std::string& body, Call* call) {
  WEIR_ASSIGN_OR_RETURN(const JsonExamplesRequest request, ParseExamples(spec, body));
  WEIR_ASSIGN_OR_RETURN(const serving::Classification result,
                        serving::Classify(models_, WithSignature(spec, request.signature),
                                          request.examples, StepOptions(call)));
  SetAnswered(result.by, call);
  return ClassifyResponse(result);
}

absl::StatusOr<std::string> RestApi::Regress(const serving::ModelSpec& spec,
                                             const std::string& body, Call* call) {
  WEIR_ASSIGN_OR_RETURN(const JsonExamplesRequest request, ParseExamples(spec, body));
  WEIR_ASSIGN_OR_RETURN(const serving::Regression result,
                        serving::Regress(models_, WithSignature(spec, request.signature),
                                         request.examples, StepOptions(call)));
  SetAnswered(result.by, call);
  return RegressResponse(result);
}

absl::StatusOr<JsonExamplesRequest> RestApi::ParseExamples(const serving::ModelSpec& spec,
                                                           const std::string& body) const {
  // An unknown model is reported before what is wrong with the body.
  WEIR_RETURN_IF_ERROR(models_.Find(spec).status());
  return ParseExamplesRequest(body);
}

absl::StatusOr<std::string> RestApi::Metadata(const serving::ModelSpec& spec, Call* call) const {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const serving::Servable> servable,
                        models_.Find(spec));
  call->version = servable->version();
  ordered_json signatures = ordered_json::object();
  for (const auto& [name, signature] : servable->signatures()) {
    signatures[name] = {{"inputs", JsonOf(signature.inputs)},
                        {"outputs", JsonOf(signature.outputs)},
                        {"method_name", signature.method_name}};
  }
  return Dump({{"model_spec",
                {{"name", servable->name()},
                 {"signature_name", ""},
                 {"version", absl::StrCat(servable->version())}}},
               {"metadata", {{"signature_def", {{"signature_def", signatures}}}}}});
}

absl::StatusOr<std::string> RestApi::VersionStates(const serving::ModelSpec& spec) const {
  WEIR_ASSIGN_OR_RETURN(const std::vector<serving::VersionStatus> versions, models_.Status(spec));
  ordered_json states = ordered_json::array();
  for (const serving::VersionStatus& version : versions) {
    states.push_back({{"version", absl::StrCat(version.version)},
                      {"state", NameOf(version.state)},
                      {"status",
                       {{"error_code", absl::StatusCodeToString(version.error.code())},
                        {"error_message", std::string(version.error.message())}}}});
  }
  return Dump({{"model_version_status", states}});
}

RunOptions RestApi::StepOptions(Call* call) const {
  return {.timeout = options_.timeout, .cancellation = &call->cancellation};
}

}  // namespace weir::rpc
