#include "weir/rpc/models/rest_api.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "weir/rpc/models/json_model.h"
#include "weir/rpc/models/json_request.h"
#include "weir/rpc/models/json_response.h"
#include "weir/rpc/models/logged_calls.h"
#include "weir/rpc/models/model_messages.h"
#include "weir/rpc/models/status_page.h"

namespace weir::rpc {

namespace {

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

// Sets what logs show of a request.
void Describe(const HttpRequest& request, Call* call) {
  call->connection = request.client;
  call->request_id = RequestId(request.Header("x-request-id"));
  call->traceparent = Traceparent(request.Header("traceparent"));
}

// What anyone may read, as a load balancer does.
bool IsProbe(absl::string_view path) { return path == "/healthz" || path == "/readyz"; }
bool IsPublic(const HttpRequest& request) {
  return request.method == "GET" && IsProbe(request.Path());
}

double CharactersAsJson(const std::string& text) {
  constexpr double kPerCharacter = 6;  // \u001f
  return kPerCharacter * static_cast<double>(text.size());
}

// The upper limit of what a tensor takes as JSON text. A shape with a zero may have more lists than
// an integer counts.
double BytesAsJson(const Tensor& value) {
  constexpr double kPerNumber = 26;  // -1.2345678901234567e-308 and a comma
  constexpr double kPerString = 16;  // {"b64": ""} and a comma
  constexpr double kPerList = 4;     // [] and a comma
  double bytes = 0, lists = 1;
  for (int i = 0; i < value.rank(); ++i) {
    bytes += kPerList * lists;
    lists *= static_cast<double>(value.dim(i));
  }
  const auto count = static_cast<double>(value.num_elements());
  if (value.dtype() != DT_STRING) return bytes + count * kPerNumber;
  bytes += count * kPerString;
  for (const std::string& text : value.flat<std::string>()) bytes += CharactersAsJson(text);
  return bytes;
}

// The same of all outputs, each with its name if there are several, in each of the rows.
double BytesAsJson(const serving::NamedTensors& outputs, bool by_rows) {
  constexpr double kPerName = 8;  // {"": } and a comma
  double bytes = 0;
  for (const auto& [name, value] : outputs) {
    bytes += BytesAsJson(value);
    if (outputs.size() == 1) continue;
    const double rows = by_rows && value.rank() > 0 ? static_cast<double>(value.dim(0)) : 1;
    bytes += rows * (kPerName + CharactersAsJson(name));
  }
  return bytes;
}

}  // namespace

// What a path below /v1/ means.
struct RestApi::Route {
  enum class Action { kPredict, kClassify, kRegress, kMetadata, kStates };
  Action action;
  serving::ModelSpec spec;
};

absl::StatusOr<std::shared_ptr<Client>> RestApi::CallerOf(const HttpRequest& request) const {
  if (options_.clients == nullptr || IsPublic(request)) return nullptr;
  ClientCredentials credentials;
  credentials.certificate_names = request.certificate_names;
  WEIR_ASSIGN_OR_RETURN(credentials.token, BearerToken(request.Header("authorization")));
  return options_.clients->Identify(credentials);
}

std::optional<HttpResponse> RestApi::Admit(const HttpRequest& request) {
  const absl::Status caller = CallerOf(request).status();
  if (caller.ok()) return std::nullopt;
  return Refuse(request, caller);
}

HttpResponse RestApi::Refuse(const HttpRequest& request, const absl::Status& why) {
  std::string method = "Malformed";
  FindRoute(request, &method).status().IgnoreError();
  Call call;
  Describe(request, &call);
  HttpResponse refused = Finish(method, call, why, std::chrono::nanoseconds(0));
  refused.headers.emplace_back("WWW-Authenticate", "Bearer");
  return refused;
}

HttpResponse RestApi::Handle(const HttpRequest& request) {
  absl::StatusOr<std::shared_ptr<Client>> client = CallerOf(request);
  if (!client.ok()) return Refuse(request, client.status());
  const absl::string_view path = request.Path();
  if (absl::StartsWithIgnoreCase(path, "/v1/")) return HandleV1(request, *std::move(client));
  const bool is_metrics = options_.metrics != nullptr && path == options_.metrics_path;
  if (path != "/" && !IsProbe(path) && !is_metrics)
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
  // Strangers do not learn which models there are.
  const std::string names = options_.clients != nullptr ? "a model" : absl::StrJoin(missing, ", ");
  return {503,
          "text/plain; charset=utf-8",
          absl::StrCat("No version is available of: ", names, "\n"),
          {{"X-Content-Type-Options", "nosniff"}}};
}

HttpResponse RestApi::HandleV1(const HttpRequest& request, std::shared_ptr<Client> client) {
  if (request.method != "GET" && request.method != "POST")
    return NotAllowed(request, "GET, HEAD, POST");
  const auto begin = std::chrono::steady_clock::now();
  const auto call = std::make_shared<Call>();
  Describe(request, call.get());
  call->client = std::move(client);
  const LinkedCancellation shutdown(&cancellation_, call->cancellation);
  const LinkedCancellation disconnected(request.cancellation.get(), call->cancellation);
  std::string method = "Malformed";
  const absl::StatusOr<Route> route = FindRoute(request, &method);
  absl::StatusOr<std::string> body =
      route.ok() ? Answer(request, *route, call.get()) : route.status();
  HttpResponse response =
      Finish(method, *call, std::move(body), std::chrono::steady_clock::now() - begin);
  response.memory = {call, &call->response_memory};
  return response;
}

HttpResponse RestApi::Finish(const std::string& method, const Call& call,
                             absl::StatusOr<std::string> body, std::chrono::nanoseconds took) {
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

absl::StatusOr<std::string> RestApi::Answer(const HttpRequest& request, const Route& route,
                                            Call* call) {
  // A name that no model has would be a label of metrics that the client has chosen.
  const std::vector<std::string> known = models_.models();
  if (absl::c_linear_search(known, route.spec.name)) call->model = route.spec.name;
  WEIR_ASSIGN_OR_RETURN(call->is_low_priority, IsLowPriority(request.Header(kPriorityName)));
  if (route.action == Route::Action::kStates) {  // administration, which no quota stops
    WEIR_ASSIGN_OR_RETURN(const std::vector<serving::VersionStatus> versions,
                          models_.Status(route.spec));
    return StatesResponse(versions);
  }
  Client::Use use(call->client);
  WEIR_RETURN_IF_ERROR(use.Start(static_cast<int64_t>(request.body.size())));
  const ScopedMemoryQuota of_client(call->client == nullptr ? nullptr
                                                            : call->client->memory().get());
  // The body, and its strings or examples.
  MemoryReservation memory;
  WEIR_RETURN_IF_ERROR(memory.Take(2 * request.body.size(), "the body of the request"));
  // The client may have gone, or the server may shut down, while the request waited for a thread.
  if (call->cancellation.cancelled()) return call->cancellation.status();
  switch (route.action) {
    case Route::Action::kPredict:
      return Predict(route.spec, request.body, call);
    case Route::Action::kClassify:
      return Classify(route.spec, request.body, call);
    case Route::Action::kRegress:
      return Regress(route.spec, request.body, call);
    default:
      return Metadata(route.spec, call);
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
  WEIR_ASSIGN_OR_RETURN(const JsonPredictRequest request,
                        ParsePredictRequest(body, find_signature));
  serving::Prediction prediction{{servable->name(), servable->version(), call->signature}, {}};
  WEIR_ASSIGN_OR_RETURN(prediction.outputs,
                        models_.Run(*servable, request.signature, request.inputs, {},
                                    StepOptions(call), PriorityOf(*call)));
  const double bytes = std::min(BytesAsJson(prediction.outputs, request.by_rows),
                                static_cast<double>(options_.max_response.bytes()));
  // A text that grows is copied.
  WEIR_RETURN_IF_ERROR(call->response_memory.Take(static_cast<uint64_t>(2 * bytes),
                                                  "the response with the outputs"));
  WEIR_ASSIGN_OR_RETURN(std::string response, PredictResponse(prediction.outputs, request.by_rows,
                                                              options_.max_response.bytes()));
  if (Samples(spec))
    LogPredict(WithSignature(spec, request.signature), request.inputs, prediction, options_.log);
  return response;
}

// An unknown model is reported before what is wrong with the body.
absl::StatusOr<std::string> RestApi::Classify(const serving::ModelSpec& spec,
                                              const std::string& body, Call* call) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const serving::Servable> servable,
                        models_.Find(spec));
  WEIR_ASSIGN_OR_RETURN(const JsonExamplesRequest request, ParseExamplesRequest(body));
  WEIR_ASSIGN_OR_RETURN(const serving::Classification result,
                        serving::Classify(models_, servable, request.signature, request.examples,
                                          StepOptions(call), PriorityOf(*call)));
  SetAnswered(result.by, call);
  WEIR_ASSIGN_OR_RETURN(std::string response, ClassifyResponse(result));
  if (Samples(spec))
    LogClassify(WithSignature(spec, request.signature), request.examples, result, options_.log);
  return response;
}

absl::StatusOr<std::string> RestApi::Regress(const serving::ModelSpec& spec,
                                             const std::string& body, Call* call) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const serving::Servable> servable,
                        models_.Find(spec));
  WEIR_ASSIGN_OR_RETURN(const JsonExamplesRequest request, ParseExamplesRequest(body));
  WEIR_ASSIGN_OR_RETURN(const serving::Regression result,
                        serving::Regress(models_, servable, request.signature, request.examples,
                                         StepOptions(call), PriorityOf(*call)));
  SetAnswered(result.by, call);
  if (Samples(spec))
    LogRegress(WithSignature(spec, request.signature), request.examples, result, options_.log);
  return RegressResponse(result);
}

absl::StatusOr<std::string> RestApi::Metadata(const serving::ModelSpec& spec, Call* call) const {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const serving::Servable> servable,
                        models_.Find(spec));
  call->version = servable->version();
  return MetadataResponse(*servable);
}

RunOptions RestApi::StepOptions(Call* call) const {
  return {.timeout = options_.timeout, .cancellation = &call->cancellation};
}

bool RestApi::Samples(const serving::ModelSpec& spec) const {
  return options_.log != nullptr && options_.log->Samples(spec.name);
}

}  // namespace weir::rpc
