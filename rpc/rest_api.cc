#include "weir/rpc/rest_api.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "weir/rpc/json_request.h"
#include "weir/rpc/json_response.h"
#include "weir/rpc/status_page.h"

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

// Sets the model of a request from the parts of its path.
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

HttpResponse RestApi::Handle(const HttpRequest& request) {
  const absl::string_view path = request.Path();
  if (absl::StartsWithIgnoreCase(path, "/v1/")) return HandleV1(request);
  if (path != "/" && path != "/healthz" && path != "/readyz")
    return HttpError(404, Malformed(request).message());
  if (request.method != "GET") {
    HttpResponse refused = HttpError(405, Malformed(request).message());
    refused.headers = {{"Allow", "GET, HEAD"}};
    return refused;
  }
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
  if (request.method != "GET" && request.method != "POST") {
    HttpResponse refused = HttpError(405, Malformed(request).message());
    refused.headers = {{"Allow", "GET, HEAD, POST"}};
    return refused;
  }
  const auto begin = std::chrono::steady_clock::now();
  RestCall call;
  call.client = request.client;
  call.traceparent = request.Header("traceparent");
  call.request_bytes = request.body.size();
  absl::StatusOr<std::string> body = Answer(request, &call);
  call.status = body.status();
  HttpResponse response;
  if (body.ok()) {
    response.body = *std::move(body);
  } else {
    response = HttpError(HttpStatus(body.status().code()), body.status().message());
  }
  call.http_status = response.status;
  call.response_bytes = response.body.size();
  call.took = std::chrono::steady_clock::now() - begin;
  if (!call.method.empty()) {
    const std::vector<std::string> known = models_.models();
    const bool is_known = std::find(known.begin(), known.end(), call.model) != known.end();
    statistics_.Record(is_known ? call.model : "", call.method, call.status, call.took);
  }
  if (options_.on_call) options_.on_call(call);
  return response;
}

absl::StatusOr<std::string> RestApi::Answer(const HttpRequest& request, RestCall* call) {
  static const RE2* const kPost = new RE2(
      R"((?i)/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?:(classify|regress|predict))",
      RE2::Latin1);
  static const RE2* const kGet = new RE2(
      R"((?i)/v1/models(?:/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?(?:/(metadata))?)?)",
      RE2::Latin1);
  const std::string path(request.Path());
  std::string name, version, label, verb;
  const bool is_post = request.method == "POST";
  if (!RE2::FullMatch(path, is_post ? *kPost : *kGet, &name, &version, &label, &verb))
    return Malformed(request);
  if (name.empty()) return InvalidArgument("Missing model name in request.");
  verb = absl::AsciiStrToLower(verb);
  call->method = verb == "predict"    ? "Predict"
                 : verb == "classify" ? "Classify"
                 : verb == "regress"  ? "Regress"
                 : verb == "metadata" ? "GetModelMetadata"
                                      : "GetModelStatus";
  WEIR_ASSIGN_OR_RETURN(serving::ModelSpec spec, ParseSpec(name, version, label));
  call->model = spec.name;
  if (is_post) return AnswerPost(std::move(spec), request.body, call);
  return verb == "metadata" ? Metadata(spec, call) : VersionStates(spec);
}

absl::StatusOr<std::string> RestApi::AnswerPost(serving::ModelSpec spec, const std::string& body,
                                                RestCall* call) {
  if (call->method == "Predict") return Predict(spec, body, call);
  // An unknown model is reported before what is wrong with the body.
  WEIR_RETURN_IF_ERROR(models_.Find(spec).status());
  WEIR_ASSIGN_OR_RETURN(JsonExamplesRequest request, ParseExamplesRequest(body));
  spec.signature = request.signature;
  if (call->method == "Classify") {
    WEIR_ASSIGN_OR_RETURN(const serving::Classification result,
                          serving::Classify(models_, spec, request.examples, StepOptions()));
    call->version = result.by.version;
    return ClassifyResponse(result);
  }
  WEIR_ASSIGN_OR_RETURN(const serving::Regression result,
                        serving::Regress(models_, spec, request.examples, StepOptions()));
  call->version = result.by.version;
  return RegressResponse(result);
}

absl::StatusOr<std::string> RestApi::Predict(const serving::ModelSpec& spec,
                                             const std::string& body, RestCall* call) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const serving::Servable> servable,
                        models_.Find(spec));
  call->version = servable->version();
  const auto find_signature =
      [&](const std::string& name) -> absl::StatusOr<const serving::SignatureInfo*> {
    const std::string key = name.empty() ? "serving_default" : name;
    const auto found = servable->signatures().find(key);
    if (found != servable->signatures().end()) return &found->second;
    return InvalidArgument("Serving signature name: \"", key, "\" not found in signature def");
  };
  WEIR_ASSIGN_OR_RETURN(JsonPredictRequest request, ParsePredictRequest(body, find_signature));
  WEIR_ASSIGN_OR_RETURN(
      const serving::NamedTensors outputs,
      models_.Run(*servable, request.signature, request.inputs, {}, StepOptions()));
  return PredictResponse(outputs, request.by_rows, options_.max_response_bytes);
}

absl::StatusOr<std::string> RestApi::Metadata(const serving::ModelSpec& spec,
                                              RestCall* call) const {
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

RunOptions RestApi::StepOptions() {
  RunOptions options;
  options.timeout = options_.timeout;
  options.cancellation = &cancellation_;
  return options;
}

}  // namespace weir::rpc
