#ifndef WEIR_SESSION_TRAIN_HOOK_H_
#define WEIR_SESSION_TRAIN_HOOK_H_

#include <map>
#include <memory>
#include <string>

#include "weir/core/io/event_writer.h"
#include "weir/core/tensor/api.h"
#include "weir/session/session.h"
#include "weir/session/train/scaffold.h"

namespace WEIR_API weir {

class Coordinator;

// What a hook adds to a step: tensors to feed, and tensors that the hook fetches.
struct HookRequest {
  Feeds feeds;      // in addition to the step's own
  Outputs fetches;  // their values are passed to AfterRun, in this order
};

// The monitored session as a hook sees it during a call.
class HookContext {
 public:
  virtual ~HookContext() = default;

  // Returns the underlying session, which runs steps without hooks.
  virtual Session& session() = 0;
  virtual const Scaffold& scaffold() const = 0;
  // Returns the present value of the graph's global step: before the step in BeforeRun, after it in
  // AfterRun. FAILED_PRECONDITION if the graph has none.
  virtual absl::StatusOr<int64_t> GlobalStep() = 0;
  // Returns the event file of a directory, which all hooks share. Creates the directory and the
  // file if necessary.
  virtual absl::StatusOr<EventWriter*> Events(const std::string& directory) = 0;
  // Returns the coordinator of the session's threads (queue runners, and what hooks start). They
  // must end when it stops and the session is closed; the next step returns their first error.
  virtual Coordinator& coordinator() = 0;
  // Makes ShouldStop return true once the present step is over.
  virtual void RequestStop() = 0;
};

// An object that is called around the steps of a monitored session. Hooks are called in the order
// in which they are given. The error of any call becomes the error of the session's call. Kinds:
// hooks.h.
class SessionHook {
 public:
  virtual ~SessionHook() = default;

  // Called once, at first; nodes can still be added.
  virtual absl::Status Begin(Graph& /*graph*/) { return absl::OkStatus(); }
  // Called when the variables of the session have values; again after each recovery. The graph is
  // finalized.
  virtual absl::Status AfterCreateSession(HookContext& /*context*/) { return absl::OkStatus(); }
  // Called before a step. If no hook adds anything to it, the step runs as the caller has prepared
  // it.
  virtual absl::Status BeforeRun(HookContext& /*context*/, HookRequest* /*request*/) {
    return absl::OkStatus();
  }
  // Called after a successful step; `values` are those of the tensors that BeforeRun has requested.
  virtual absl::Status AfterRun(HookContext& /*context*/, absl::Span<const Tensor> /*values*/) {
    return absl::OkStatus();
  }
  // Called when the session is closed, but not after an error.
  virtual absl::Status End(HookContext& /*context*/) { return absl::OkStatus(); }
};
// Hooks, which are called in order.
using SessionHooks = std::vector<std::shared_ptr<SessionHook>>;

}  // namespace weir

#endif  // WEIR_SESSION_TRAIN_HOOK_H_
