#ifndef WEIR_SESSION_TRAIN_QUEUE_RUNNER_H_
#define WEIR_SESSION_TRAIN_QUEUE_RUNNER_H_

#include "weir/core/tensor/api.h"
#include "weir/ops/train/queue_runner.h"
#include "weir/session/session.h"
#include "weir/session/train/coordinator.h"

namespace WEIR_API weir {

// Starts the threads of one queue runner. Each thread runs its enqueue operation until the
// coordinator stops or the operation reaches the end of its input; the last thread to do so closes
// the queue. Any other error is reported to the coordinator. If the runner has a cancel_op, one
// more thread waits for the coordinator's stop, and then cancels the pending operations of the
// queue. Session and coordinator must outlive the threads: Coordinator::Join waits for them.
absl::Status StartQueueRunner(std::shared_ptr<const QueueRunner> runner, Session& session,
                              Coordinator& coordinator);
// Starts all queue runners in a collection of the session's graph. Nothing is started if one of
// them names operations that cannot be run.
absl::Status StartQueueRunners(Session& session, Coordinator& coordinator,
                               absl::string_view collection = collections::kQueueRunners);

}  // namespace weir

#endif  // WEIR_SESSION_TRAIN_QUEUE_RUNNER_H_
