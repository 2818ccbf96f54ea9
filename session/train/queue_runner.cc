#include "weir/session/train/queue_runner.h"

#include <algorithm>
#include <atomic>

namespace weir {

namespace {

// A queue runner with its prepared steps.
struct PreparedRunner {
  std::shared_ptr<const QueueRunner> runner;
  std::vector<Step> enqueues;
  Step close, cancel;
};

absl::StatusOr<PreparedRunner> Prepare(std::shared_ptr<const QueueRunner> runner,
                                       Session& session) {
  PreparedRunner out;
  for (const Operation& op : runner->enqueue_ops) {
    WEIR_ASSIGN_OR_RETURN(Step step, session.Prepare({}, {}, {op}));
    out.enqueues.push_back(std::move(step));
  }
  WEIR_ASSIGN_OR_RETURN(out.close, session.Prepare({}, {}, {runner->close_op}));
  if (runner->cancel_op.valid()) {
    WEIR_ASSIGN_OR_RETURN(out.cancel, session.Prepare({}, {}, {runner->cancel_op}));
  }
  out.runner = std::move(runner);
  return out;
}

// The loop of one thread. Errors of closing are ignored: the queue may be closed already.
void RunEnqueueLoop(const PreparedRunner& prepared, size_t index, std::atomic<size_t>* left,
                    Coordinator* coordinator) {
  const auto& end_codes = prepared.runner->end_of_input;
  while (!coordinator->ShouldStop()) {
    const absl::Status status = prepared.enqueues[index].Run({}, nullptr);
    if (status.ok()) continue;
    if (std::find(end_codes.begin(), end_codes.end(), status.code()) == end_codes.end()) {
      coordinator->RequestStop(status);
    } else if (left->fetch_sub(1) == 1) {
      (void)prepared.close.Run({}, nullptr);
    }
    return;
  }
}

void StartThreads(PreparedRunner from, Coordinator& coordinator) {
  const auto prepared = std::make_shared<const PreparedRunner>(std::move(from));
  const auto left = std::make_shared<std::atomic<size_t>>(prepared->enqueues.size());
  const std::string name = absl::StrCat("QueueRunnerThread-", prepared->runner->queue_name, "-");
  for (size_t i = 0; i < prepared->enqueues.size(); ++i) {
    coordinator.Start(name + prepared->runner->enqueue_ops[i].name(),
                      [prepared, i, left, coordinator = &coordinator] {
                        RunEnqueueLoop(*prepared, i, left.get(), coordinator);
                      });
  }
  if (!prepared->runner->cancel_op.valid()) return;
  coordinator.Start(name + "close_on_stop", [prepared, coordinator = &coordinator] {
    coordinator->WaitForStop();
    (void)prepared->cancel.Run({}, nullptr);
  });
}

}  // namespace

absl::Status StartQueueRunner(std::shared_ptr<const QueueRunner> runner, Session& session,
                              Coordinator& coordinator) {
  WEIR_ASSIGN_OR_RETURN(PreparedRunner prepared, Prepare(std::move(runner), session));
  StartThreads(std::move(prepared), coordinator);
  return absl::OkStatus();
}

absl::Status StartQueueRunners(Session& session, Coordinator& coordinator,
                               absl::string_view collection) {
  std::vector<PreparedRunner> all;
  using Objects = std::shared_ptr<CollectionObject>;
  for (const Objects& object : session.graph().collection_as<Objects>(collection)) {
    const auto runner = std::dynamic_pointer_cast<const QueueRunner>(object);
    if (runner == nullptr)
      return InvalidArgument("collection \"", collection,
                             "\" contains items other than queue runners");
    WEIR_ASSIGN_OR_RETURN(PreparedRunner prepared, Prepare(runner, session));
    all.push_back(std::move(prepared));
  }
  for (PreparedRunner& prepared : all) StartThreads(std::move(prepared), coordinator);
  return absl::OkStatus();
}

}  // namespace weir
