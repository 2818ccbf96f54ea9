#ifndef WEIR_SESSION_REMOTE_SESSION_H_
#define WEIR_SESSION_REMOTE_SESSION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/session/session.h"

namespace weir {

// What a Session with a target calls instead of running steps itself. Thread-safe.
class RemoteSession {
 public:
  virtual ~RemoteSession() = default;
  // What a step is made of, or one piece of a partial run.
  struct Request {
    const Outputs& feeds;
    const Outputs& fetches;
    const std::vector<Operation>& targets;
    std::string partial_run = "";  // the server's name of the partial run; "": a whole step
  };
  // Sends nodes that the graph has got since. `values` by feed; `fetches` is resized.
  virtual absl::Status Run(const Request& request, absl::Span<const Tensor> values,
                           Tensors* fetches, const RunOptions& options) = 0;
  // Begins a partial run of all this, and returns the server's name of it.
  virtual absl::StatusOr<std::string> SetUpPartialRun(const Request& whole) = 0;
  virtual absl::Status Reset(const std::vector<std::string>& containers) = 0;
  // Later calls may fail in any way.
  virtual void Close() = 0;
};

// Opens sessions with targets of one kind. `graph` and `options.target` outlive the session.
using SessionConnector = std::function<absl::StatusOr<std::unique_ptr<RemoteSession>>(
    const Graph& graph, const SessionOptions& options)>;

// Gives targets that begin with "<scheme>://" to this connector, in all of the process.
void SetSessionConnector(absl::string_view scheme, SessionConnector connector);
// UNIMPLEMENTED if no connector is for the target, saying what a program must do.
absl::StatusOr<std::unique_ptr<RemoteSession>> ConnectSession(const Graph& graph,
                                                              const SessionOptions& options);

}  // namespace weir

#endif  // WEIR_SESSION_REMOTE_SESSION_H_
