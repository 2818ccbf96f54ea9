#ifndef WEIR_SESSION_REMOTE_SESSION_H_
#define WEIR_SESSION_REMOTE_SESSION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/session/session.h"

namespace weir {

// A session on a server. A Session with a target calls it instead of running steps itself.
// Thread-safe.
class RemoteSession {
 public:
  virtual ~RemoteSession() = default;
  // The feeds, fetches and targets of a step, or of one piece of a partial run.
  struct Request {
    const Outputs& feeds;
    const Outputs& fetches;
    const std::vector<Operation>& targets;
    std::string partial_run = "";  // the server's handle of the partial run; "": a whole step
  };
  // Runs a step, after sending the nodes that were added to the graph since the last call. `values`
  // by feed; `fetches` is resized.
  virtual absl::Status Run(const Request& request, absl::Span<const Tensor> values,
                           Tensors* fetches, const RunOptions& options) = 0;
  // Starts a partial run with these feeds, fetches and targets, and returns the server's handle of
  // it.
  virtual absl::StatusOr<std::string> SetUpPartialRun(const Request& whole) = 0;
  virtual absl::Status Reset(const std::vector<std::string>& containers) = 0;
  // After this, calls may fail with any error.
  virtual void Close() = 0;
};

// Opens sessions for one scheme of targets. `graph` and `options.target` must outlive the session.
using SessionConnector = std::function<absl::StatusOr<std::unique_ptr<RemoteSession>>(
    const Graph& graph, const SessionOptions& options)>;

// Registers this connector for targets that begin with "<scheme>://", in the whole process.
void SetSessionConnector(absl::string_view scheme, SessionConnector connector);
// Returns UNIMPLEMENTED, with instructions for the program, if no connector is registered for the
// target.
absl::StatusOr<std::unique_ptr<RemoteSession>> ConnectSession(const Graph& graph,
                                                              const SessionOptions& options);

}  // namespace weir

#endif  // WEIR_SESSION_REMOTE_SESSION_H_
