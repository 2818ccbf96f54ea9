#include "weir/rpc/cluster/step_exchange.h"

#include <utility>

#include "weir/core/tensor/status.h"

namespace weir::rpc {

std::shared_ptr<TaskStep> StepTable::Find(int64_t step_id) {
  const MutexLock lock(mutex_);
  std::shared_ptr<TaskStep>& step = steps_[step_id];
  if (step == nullptr) step = std::make_shared<TaskStep>();
  return step;
}

void StepTable::Remove(int64_t step_id) {
  std::shared_ptr<TaskStep> step;
  {
    const MutexLock lock(mutex_);
    const auto found = steps_.find(step_id);
    if (found == steps_.end()) return;
    step = std::move(found->second);
    steps_.erase(found);
  }
  const absl::Status why = absl::AbortedError(absl::StrCat("Cleanup ", step_id));
  step->exchange.Abort(why);
  step->cancellation.Cancel(why);
}

absl::Status DeadFetchError(int64_t step_id, absl::string_view key) {
  return absl::InternalError(absl::StrCat("Failed to fetch outputs for step ", step_id,
                                          ". (Original error message: The tensor returned for ",
                                          key, " was not valid.)"));
}

void StepExchange::Receive(const RendezvousKey& key, Cancellation* cancellation, Done done) {
  const absl::StatusOr<TaskName> sender = TaskName::OfDevice(key.send_device);
  if (!sender.ok()) return done(sender.status());
  if (*sender == own_) return local_->Receive(key, cancellation, std::move(done));
  const std::string address = cluster_.AddressOf(*sender);
  if (address.empty()) {
    return done(NotFound("The value ", key.edge, " comes from ", sender->ToString(),
                         ", which is not in the cluster of this task, ", own_.ToString()));
  }
  peers_.Receive(
      address, step_id_, key, cancellation,
      [done = std::move(done), from = sender->ToString()](absl::StatusOr<SentValue> received) {
        if (received.ok()) return done(std::move(received));
        // TensorFlow's words, by which its masters tell an error that was passed on.
        done(absl::Status(received.status().code(),
                          absl::StrCat(received.status().message(),
                                       "\nAdditional GRPC error information from remote "
                                       "target ",
                                       from,
                                       " while calling "
                                       "/tensorflow.WorkerService/RecvTensor")));
      });
}

}  // namespace weir::rpc
