#include "weir/capi/server_library.h"

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "weir/proto/tensorflow_server.pb.h"
#include "weir/rpc/cluster_server.h"

// libweir_server.so: servers for TF_NewServer, each of which is a task of its cluster. The library
// has a runtime of its own inside; it shares no state with sessions of the C API, which reach its
// servers as other clients do.

namespace weir::capi {

namespace {

struct TaskServer {
  std::unique_ptr<rpc::Server> server;
};

absl::StatusOr<std::unique_ptr<rpc::Server>> StartServer(absl::string_view bytes) {
  proto::ServerDef def;
  if (bytes.size() > INT32_MAX ||
      !def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("Could not parse provided bytes into a ServerDef protocol buffer");
  }
  if (def.protocol() != "grpc") {
    return NotFound("No server factory registered for the given ServerDef: its protocol is '",
                    def.protocol(), "', and Weir has 'grpc'");
  }
  const rpc::ClusterSpec cluster = rpc::ClusterSpec::FromProto(def.cluster());
  const rpc::TaskName task = {def.job_name(), def.task_index()};
  rpc::ServerOptions options;
  if (def.port() != 0) options.port = def.port();
  // A server of its own, which tests and examples ask for: at a free port, without other tasks.
  const bool is_alone = cluster.jobs().size() == 1 && cluster.NumTasks(task.job) == 1;
  if (is_alone && absl::EndsWith(cluster.AddressOf(task), ":0")) return rpc::Server::Start(options);
  return rpc::StartTask(cluster, task, options);
}

void Set(const absl::Status& status, WeirSetStatus set, TF_Status* to) {
  set(to, static_cast<TF_Code>(status.raw_code()), std::string(status.message()).c_str());
}

TaskServer& Of(void* server) { return *static_cast<TaskServer*>(server); }

void* Create(const void* server_def, size_t size, WeirSetStatus set, TF_Status* status) {
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      StartServer({static_cast<const char*>(server_def), size});
  Set(server.status(), set, status);
  return server.ok() ? new TaskServer{*std::move(server)} : nullptr;
}

// It listens since it was created, as TensorFlow's does, and answers since then too.
void Start(void*, WeirSetStatus set, TF_Status* status) { Set(absl::OkStatus(), set, status); }

void Stop(void* server, WeirSetStatus set, TF_Status* status) {
  Of(server).server->Drain(std::chrono::seconds(1));
  Set(absl::OkStatus(), set, status);
}

void Join(void* server, WeirSetStatus set, TF_Status* status) {
  Of(server).server->Join();
  Set(absl::OkStatus(), set, status);
}

const char* Target(void* server) { return Of(server).server->target().c_str(); }

void Destroy(void* server) { delete &Of(server); }

}  // namespace

}  // namespace weir::capi

extern "C" [[gnu::visibility("default")]] const WeirServerFunctions* WeirServerLibrary() {
  using namespace weir::capi;  // NOLINT: names of the table below
  static constexpr WeirServerFunctions kFunctions = {
      kWeirServerVersion, Create, Start, Stop, Join, Target, Destroy};
  return &kFunctions;
}
