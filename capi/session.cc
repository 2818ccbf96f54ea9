#include "weir/capi/session.h"

#include <algorithm>

#include "weir/capi/plugins.h"
#include "weir/proto/config.pb.h"

// Sessions.

absl::Status TF_Graph::Change(const std::function<absl::Status(weir::Graph&)>& change) {
  const weir::MutexLock lock(mutex);
  const std::vector<TF_Session*> users(sessions.begin(), sessions.end());
  // The steps of every session prepare from the graph: each one waits while it changes.
  const auto add = [&]() -> absl::Status {
    const absl::Status status = change(*graph);
    const absl::Status left = graph->TakeStatus();
    return status.ok() ? left : status;
  };
  const std::function<absl::Status(size_t)> extend = [&](size_t i) -> absl::Status {
    if (i == users.size()) return add();
    return users[i]->session->Extend([&] { return extend(i + 1); });
  };
  return extend(0);
}

namespace weir::capi {

SessionOptions DefaultOptions() {
  SessionOptions options;
  options.kernels = &Plugins::Instance().kernels();
  return options;
}

TF_Session* Register(TF_Graph* graph, std::unique_ptr<Session> session) {
  auto* const made = new TF_Session{.graph = graph, .session = std::move(session)};
  graph->sessions.insert(made);
  return made;
}

namespace {

absl::Status SetConfig(absl::string_view bytes, SessionOptions* options) {
  proto::ConfigProto config;
  if (!ParseMessage(bytes, &config)) return InvalidArgument("Unparseable ConfigProto");
  options->num_threads = std::clamp(config.intra_op_parallelism_threads(), 0, 1024);
  options->allow_soft_placement = config.allow_soft_placement();
  options->log_device_placement = config.log_device_placement();
  options->operation_timeout =
      std::chrono::milliseconds(std::max<int64_t>(0, config.operation_timeout_in_ms()));
  return absl::OkStatus();
}

}  // namespace

}  // namespace weir::capi

using weir::MutexLock;
using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_SessionOptions* TF_NewSessionOptions() {
  auto* const options = new TF_SessionOptions{weir::capi::DefaultOptions()};
  options->options.allow_soft_placement = false;  // as in an empty ConfigProto
  return options;
}

void TF_DeleteSessionOptions(TF_SessionOptions* options) { delete options; }

void TF_SetTarget(TF_SessionOptions* options, const char* target) {
  if (HaveAll("TF_SetTarget", {options})) options->options.target = target == nullptr ? "" : target;
}

void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len,
                  TF_Status* status) {
  if (!HaveAll("TF_SetConfig", {options}, status)) return;
  if (proto == nullptr) proto_len = 0;
  SetStatus(status,
            weir::capi::SetConfig({static_cast<const char*>(proto), proto_len}, &options->options));
}

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts, TF_Status* status) {
  if (!HaveAll("TF_NewSession", {graph}, status)) return nullptr;
  const MutexLock lock(graph->mutex);
  absl::StatusOr<weir::Session> session = weir::Session::Create(
      *graph->graph, opts == nullptr ? weir::capi::DefaultOptions() : opts->options);
  SetStatus(status, session.status());
  if (!session.ok()) return nullptr;
  return weir::capi::Register(graph, std::make_unique<weir::Session>(*std::move(session)));
}

void TF_CloseSession(TF_Session* session, TF_Status* status) {
  if (!HaveAll("TF_CloseSession", {session}, status)) return;
  session->is_closed = true;
  session->session->Close();
  SetStatus(status, absl::OkStatus());
}

void TF_DeleteSession(TF_Session* session, TF_Status* status) {
  if (status != nullptr) SetStatus(status, absl::OkStatus());
  if (session == nullptr) return;
  TF_Graph* const graph = session->graph;
  bool is_last = false;
  {
    const MutexLock lock(graph->mutex);
    graph->sessions.erase(session);
    is_last = graph->is_deleted && graph->sessions.empty();
  }
  delete session;
  if (is_last) delete graph;
}
