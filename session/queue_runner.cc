#include "weir/session/queue_runner.h"

#include <algorithm>
#include <atomic>

namespace weir {

namespace {

// A queue runner with its prepared steps.
struct Prepared {
  std::shared_ptr<const QueueRunner> runner;
  std::vector<Step> enqueues;
  Step close, cancel;
};

absl::StatusOr<Prepared> Prepare(std::shared_ptr<const QueueRunner> runner, Session& session) {
  Prepared out;
  for (const Operation& op : runner->enqueue_ops) {
    WEIR_ASSIGN_OR_RETURN(Step step, session.Prepare({}, {}, {op}));
    out.enqueues.push_back(std::move(step));
  }
  WEIR_ASSIGN_OR_RETURN(out.close, session.Prepare({}, {}, {runner->close_op}));
  WEIR_ASSIGN_OR_RETURN(out.cancel, session.Prepare({}, {}, {runner->cancel_op}));
  out.runner = std::move(runner);
  return out;
}

// The loop of one thread. Errors of closing are ignored: the queue may be closed already.
void KeepEnqueueing(const Prepared& prepared, size_t which, std::atomic<size_t>* left,
                    Coordinator* coordinator) {
  const auto& ends = prepared.runner->end_of_input;
  while (!coordinator->ShouldStop()) {
    const absl::Status status = prepared.enqueues[which].Run({}, nullptr);
    if (status.ok()) continue;
    if (std::find(ends.begin(), ends.end(), status.code()) == ends.end()) {
      coordinator->RequestStop(status);
    } else if (left->fetch_sub(1) == 1) {
      (void)prepared.close.Run({}, nullptr);
    }
    return;
  }
}

void StartThreads(Prepared from, Coordinator& coordinator) {
  const auto prepared = std::make_shared<const Prepared>(std::move(from));
  const auto left = std::make_shared<std::atomic<size_t>>(prepared->enqueues.size());
  const std::string name = absl::StrCat("QueueRunnerThread-", prepared->runner->queue_name, "-");
  for (size_t i = 0; i < prepared->enqueues.size(); ++i) {
    coordinator.Start(name + prepared->runner->enqueue_ops[i].name(),
                      [prepared, i, left, coordinator = &coordinator] {
                        KeepEnqueueing(*prepared, i, left.get(), coordinator);
                      });
  }
  coordinator.Start(name + "close_on_stop", [prepared, coordinator = &coordinator] {
    coordinator->WaitForStop();
    (void)prepared->cancel.Run({}, nullptr);
  });
}

}  // namespace

absl::Status StartQueueRunner(std::shared_ptr<const QueueRunner> runner, Session& session,
                              Coordinator& coordinator) {
  WEIR_ASSIGN_OR_RETURN(Prepared prepared, Prepare(std::move(runner), session));
  StartThreads(std::move(prepared), coordinator);
  return absl::OkStatus();
}

absl::Status StartQueueRunners(Session& session, Coordinator& coordinator,
                               absl::string_view collection) {
  std::vector<Prepared> all;
  using Objects = std::shared_ptr<CollectionObject>;
  for (const Objects& object : session.graph().collection_as<Objects>(collection)) {
    const auto runner = std::dynamic_pointer_cast<const QueueRunner>(object);
    if (runner == nullptr)
      return InvalidArgument("The collection \"", collection, "\" holds more than queue runners");
    WEIR_ASSIGN_OR_RETURN(Prepared prepared, Prepare(runner, session));
    all.push_back(std::move(prepared));
  }
  for (Prepared& prepared : all) StartThreads(std::move(prepared), coordinator);
  return absl::OkStatus();
}

}  // namespace weir
