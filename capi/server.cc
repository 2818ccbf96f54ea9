#include "weir/capi/server_library.h"

#include <dlfcn.h>

#include "weir/capi/objects.h"

// Servers, which another library has: libweir_server.so.

struct TF_Server {
  const WeirServerFunctions& functions;
  void* server;
};

namespace weir::capi {

namespace {

constexpr char kLibrary[] = "libweir_server.so";

// Loads the library. The first success lasts; after a failure the next call tries again.
absl::StatusOr<const WeirServerFunctions*> LoadServerLibrary() {
  static Mutex mutex;
  static const WeirServerFunctions* loaded = nullptr;
  const MutexLock lock(mutex);
  if (loaded != nullptr) return loaded;
  void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return Unimplemented(
        "TF_NewServer needs the package libweir-server, which has ", kLibrary,
        "; or run `weir serve --cluster`. The loader says: ", why == nullptr ? "nothing" : why);
  }
  const auto get = reinterpret_cast<WeirServerLibraryFn>(dlsym(handle, "WeirServerLibrary"));
  const WeirServerFunctions* const found = get == nullptr ? nullptr : get();
  if (found == nullptr || found->version != kWeirServerVersion) {
    return Unimplemented("TF_NewServer: the installed ", kLibrary, " is of another version; ",
                         "install the package libweir-server of this one");
  }
  return loaded = found;
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;

TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status) {
  if (!HaveAll("TF_NewServer", {proto}, status)) return nullptr;
  const auto functions = weir::capi::LoadServerLibrary();
  if (!functions.ok()) {
    weir::capi::SetStatus(status, functions.status());
    return nullptr;
  }
  void* const server = (*functions)->create(proto, proto_len, TF_SetStatus, status);
  return server == nullptr ? nullptr : new TF_Server{**functions, server};
}

void TF_ServerStart(TF_Server* server, TF_Status* status) {
  if (HaveAll("TF_ServerStart", {server}, status))
    server->functions.start(server->server, TF_SetStatus, status);
}

void TF_ServerStop(TF_Server* server, TF_Status* status) {
  if (HaveAll("TF_ServerStop", {server}, status))
    server->functions.stop(server->server, TF_SetStatus, status);
}

void TF_ServerJoin(TF_Server* server, TF_Status* status) {
  if (HaveAll("TF_ServerJoin", {server}, status))
    server->functions.join(server->server, TF_SetStatus, status);
}

const char* TF_ServerTarget(TF_Server* server) {
  return HaveAll("TF_ServerTarget", {server}) ? server->functions.target(server->server) : nullptr;
}

void TF_DeleteServer(TF_Server* server) {
  if (server == nullptr) return;
  server->functions.destroy(server->server);
  delete server;
}
