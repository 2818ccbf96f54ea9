#include <dlfcn.h>

#include "weir/capi/objects.h"

// Libraries of plug-ins, and what a program asks of a server, which is not part of this library.

struct TF_Library {
  void* handle;
};

using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  if (!HaveAll("TF_LoadLibrary", {library_filename}, status)) return nullptr;
  void* const handle = dlopen(library_filename, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    SetStatus(status, absl::NotFoundError(why == nullptr ? "unknown error of dlopen" : why));
    return nullptr;
  }
  SetStatus(status, absl::OkStatus());
  return new TF_Library{handle};
}

TF_Buffer TF_GetOpList(TF_Library* lib_handle) {
  if (lib_handle == nullptr) weir::capi::LogMisuse("TF_GetOpList", "an argument is null");
  return {nullptr, 0, nullptr};
}

// Keeps the library loaded: its code may be in use.
void TF_DeleteLibraryHandle(TF_Library* lib_handle) { delete lib_handle; }

TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status) {
  static_cast<void>(proto);
  static_cast<void>(proto_len);
  SetStatus(status, weir::Unimplemented("TF_NewServer: this library has no server; run ",
                                        "`weir serve --cluster`"));
  return nullptr;
}

void TF_ServerStart(TF_Server* server, TF_Status* status) {
  HaveAll("TF_ServerStart", {server}, status);
}

void TF_ServerStop(TF_Server* server, TF_Status* status) {
  HaveAll("TF_ServerStop", {server}, status);
}

void TF_ServerJoin(TF_Server* server, TF_Status* status) {
  HaveAll("TF_ServerJoin", {server}, status);
}

const char* TF_ServerTarget(TF_Server* server) {
  HaveAll("TF_ServerTarget", {server});
  return nullptr;
}

void TF_DeleteServer(TF_Server* server) {
  if (server != nullptr) weir::capi::LogMisuse("TF_DeleteServer", "this is no server");
}
