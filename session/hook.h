#ifndef WEIR_SESSION_HOOK_H_
#define WEIR_SESSION_HOOK_H_

#include <map>
#include <memory>
#include <string>

#include "weir/core/event_writer.h"
#include "weir/session/scaffold.h"
#include "weir/session/session.h"

namespace weir {

// What a hook adds to a step: tensors to fetch for itself, and tensors to feed.
struct HookRequest {
  Feeds feeds;
  Outputs fetches;
};

// What a hook may ask and do while a monitored session calls it.
class HookContext {
 public:
  virtual ~HookContext() = default;

  // Runs things by themselves, without hooks.
  virtual Session& session() = 0;
  virtual const Scaffold& scaffold() const = 0;
  // The graph's step counter as it is now: before a step in BeforeRun, after it in AfterRun.
  // FAILED_PRECONDITION if the graph has none.
  virtual absl::StatusOr<int64_t> GlobalStep() = 0;
  // The event file of a directory, the same for all hooks; makes both.
  virtual absl::StatusOr<EventWriter*> Events(const std::string& directory) = 0;
  // No further step: ShouldStop is true once this one is over.
  virtual void RequestStop() = 0;
};

// Called around the steps of a monitored session, in the order in which the hooks are given. An
// error of any call is the error of what the caller asked for. Kinds: hooks.h.
class SessionHook {
 public:
  virtual ~SessionHook() = default;

  // Once, at first; nodes can still be added.
  virtual absl::Status Begin(Graph& /*graph*/) { return absl::OkStatus(); }
  // The session has values in its variables; again after each recovery. The graph is finalized.
  virtual absl::Status AfterCreateSession(HookContext& /*context*/) { return absl::OkStatus(); }
  // Before a step. A step that no hook adds anything to runs as the caller prepared it.
  virtual absl::Status BeforeRun(HookContext& /*context*/, HookRequest* /*request*/) {
    return absl::OkStatus();
  }
  // After a step that went well; `values` are those of the tensors that BeforeRun asked for.
  virtual absl::Status AfterRun(HookContext& /*context*/, absl::Span<const Tensor> /*values*/) {
    return absl::OkStatus();
  }
  // When the session is closed, not after an error.
  virtual absl::Status End(HookContext& /*context*/) { return absl::OkStatus(); }
};
using SessionHooks = std::vector<std::shared_ptr<SessionHook>>;

}  // namespace weir

#endif  // WEIR_SESSION_HOOK_H_
