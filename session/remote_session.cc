#include "weir/session/remote_session.h"

#include <map>

#include "weir/core/tensor/mutex.h"

namespace weir {

namespace {

struct Connectors {
  Mutex mutex;
  std::map<std::string, SessionConnector, std::less<>> by_scheme ABSL_GUARDED_BY(mutex);
};

Connectors& AllConnectors() {
  static Connectors* const connectors = new Connectors;
  return *connectors;
}

}  // namespace

void SetSessionConnector(absl::string_view scheme, SessionConnector connector) {
  Connectors& all = AllConnectors();
  const MutexLock lock(all.mutex);
  all.by_scheme[std::string(scheme)] = std::move(connector);
}

absl::StatusOr<std::unique_ptr<RemoteSession>> ConnectSession(const Graph& graph,
                                                              const SessionOptions& options) {
  const std::string scheme = options.target.substr(0, options.target.find("://"));
  SessionConnector connector;
  {
    Connectors& all = AllConnectors();
    const MutexLock lock(all.mutex);
    if (const auto it = all.by_scheme.find(scheme); it != all.by_scheme.end())
      connector = it->second;
  }
  if (connector) return connector(graph, options);
  return Unimplemented("cannot open a session on target '", options.target,
                       "': targets are grpc://host:port, in programs that link //rpc:client and "
                       "call weir::rpc::EnableGrpcTargets()");
}

}  // namespace weir
