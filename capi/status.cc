#include <cerrno>
#include <cstdio>
#include <cstring>

#include "weir/capi/objects.h"

namespace weir::capi {

void SetStatus(TF_Status* to, const absl::Status& status) {
  if (to == nullptr) {
    if (!status.ok()) LogMisuse("TF_Status", "a status is null; the error is lost");
    return;
  }
  to->status = status;
  to->message = std::string(status.message());
}

void LogMisuse(absl::string_view function, absl::string_view what) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(function.size()), function.data(),
               static_cast<int>(what.size()), what.data());
}

bool HaveAll(absl::string_view function, std::initializer_list<const void*> args) {
  for (const void* arg : args) {
    if (arg != nullptr) continue;
    LogMisuse(function, "an argument is null");
    return false;
  }
  return true;
}

bool HaveAll(absl::string_view function, std::initializer_list<const void*> args,
             TF_Status* status) {
  for (const void* arg : args) {
    if (arg != nullptr) continue;
    SetStatus(status, InvalidArgument(function, ": an argument is null"));
    return false;
  }
  if (status != nullptr) return true;
  LogMisuse(function, "the status is null");
  return false;
}

}  // namespace weir::capi

using weir::capi::SetStatus;

TF_Status* TF_NewStatus() { return new TF_Status; }

void TF_DeleteStatus(TF_Status* s) { delete s; }

void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg) {
  SetStatus(s, code == TF_OK
                   ? absl::OkStatus()
                   : absl::Status(static_cast<absl::StatusCode>(code), msg == nullptr ? "" : msg));
}

void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context) {
  SetStatus(s, absl::ErrnoToStatus(error_code, context == nullptr ? "" : context));
}

void TF_SetPayload(TF_Status* s, const char* key, const char* value) {
  if (weir::capi::HaveAll("TF_SetPayload", {s, key, value}))
    s->status.SetPayload(key, absl::Cord(value));
}

void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture) {
  if (!weir::capi::HaveAll("TF_ForEachPayload", {s, reinterpret_cast<const void*>(visitor)}))
    return;
  s->status.ForEachPayload([&](absl::string_view key, const absl::Cord& value) {
    visitor(std::string(key).c_str(), std::string(value).c_str(), capture);
  });
}

TF_Code TF_GetCode(const TF_Status* s) {
  return s == nullptr ? TF_INVALID_ARGUMENT : static_cast<TF_Code>(s->status.code());
}

const char* TF_Message(const TF_Status* s) { return s == nullptr ? "" : s->message.c_str(); }
