#include "weir/rpc/cluster/step_exchange.h"

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/session_requests.h"

namespace weir::rpc {

namespace {

constexpr size_t kMaxSteps = 10'000;
constexpr int kMaxWaits = 100'000;
constexpr absl::string_view kPassedOn = "\nAdditional GRPC error information from remote target ";

absl::Status Ended(int64_t step_id) {
  return absl::AbortedError(absl::StrCat("Cleanup ", step_id));
}

}  // namespace

absl::StatusOr<StepTable::Entry*> StepTable::FindLocked(int64_t step_id) {
  if (ended_.IsKnown(nullptr, step_id)) return Ended(step_id);
  const auto found = steps_.find(step_id);
  if (found != steps_.end()) return &found->second;
  if (steps_.size() >= kMaxSteps) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The task has ", kMaxSteps, " steps in progress, and begins no more"));
  }
  Entry& entry = steps_[step_id];
  entry.step = std::make_shared<TaskStep>();
  return &entry;
}

absl::StatusOr<std::shared_ptr<TaskStep>> StepTable::Join(int64_t step_id,
                                                          const std::string& session) {
  const MutexLock lock(mutex_);
  WEIR_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(step_id));
  entry->has_part = true;
  if (!session.empty()) entry->session = session;
  return entry->step;
}

absl::StatusOr<std::shared_ptr<TaskStep>> StepTable::BeginWait(int64_t step_id) {
  const MutexLock lock(mutex_);
  if (num_waits_ >= kMaxWaits) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxWaits, " values of this task are waited for, and no more can be"));
  }
  WEIR_ASSIGN_OR_RETURN(Entry* const entry, FindLocked(step_id));
  ++entry->waits;
  ++num_waits_;
  return entry->step;
}

std::shared_ptr<TaskStep> StepTable::EndWait(int64_t step_id) {
  const MutexLock lock(mutex_);
  --num_waits_;
  const auto found = steps_.find(step_id);
  if (found == steps_.end()) return nullptr;
  std::shared_ptr<TaskStep> step = found->second.step;
  if (--found->second.waits == 0 && !found->second.has_part) steps_.erase(found);
  return step;
}

template <class F>
void StepTable::RemoveIf(const F& which) {
  std::vector<std::pair<int64_t, std::shared_ptr<TaskStep>>> removed;
  {
    const MutexLock lock(mutex_);
    for (auto entry = steps_.begin(); entry != steps_.end();) {
      const auto next = std::next(entry);
      if (which(entry->second)) {
        removed.emplace_back(entry->first, std::move(entry->second.step));
        steps_.erase(entry);
      }
      entry = next;
    }
    for (const auto& [step_id, step] : removed) ended_.IsNew(nullptr, step_id);
  }
  for (const auto& [step_id, step] : removed) {
    step->exchange.Abort(Ended(step_id));
    step->cancellation.Cancel(Ended(step_id));
  }
}

void StepTable::Remove(int64_t step_id) {
  std::shared_ptr<TaskStep> step;
  {
    const MutexLock lock(mutex_);
    ended_.IsNew(nullptr, step_id);
    const auto found = steps_.find(step_id);
    if (found == steps_.end()) return;
    step = std::move(found->second.step);
    steps_.erase(found);
  }
  step->exchange.Abort(Ended(step_id));
  step->cancellation.Cancel(Ended(step_id));
}

void StepTable::RemoveSession(const std::string& session) {
  RemoveIf([&](const Entry& entry) { return entry.session == session; });
}

void StepTable::RemoveAll() {
  RemoveIf([](const Entry&) { return true; });
}

int StepTable::size() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(steps_.size());
}

absl::Status DeadFetchError(int64_t step_id, absl::string_view key) {
  return absl::InternalError(absl::StrCat("Failed to fetch outputs for step ", step_id,
                                          ". (Original error message: The tensor returned for ",
                                          key, " was not valid.)"));
}

absl::Status PassedOn(const std::string& task, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), kPassedOn, task,
                                   " while calling /tensorflow.WorkerService/RecvTensor"));
}

// The first mark is that of the task where the error began.
std::string PassedOnBy(const absl::Status& status) {
  const absl::string_view message = status.message();
  const size_t mark = message.find(kPassedOn);
  if (mark == absl::string_view::npos) return "";
  const absl::string_view rest = message.substr(mark + kPassedOn.size());
  return std::string(rest.substr(0, rest.find(' ')));
}

void StepExchange::Receive(const RendezvousKey& key, Cancellation* cancellation, Done done) {
  const absl::StatusOr<TaskName> sender = TaskName::OfDevice(key.send_device);
  if (!sender.ok()) return done(sender.status());
  if (*sender == own_) return local_->Receive(key, cancellation, std::move(done));
  const PeerTask from = {sender->ToString(), cluster_.AddressOf(*sender)};
  if (from.address.empty()) {
    return done(NotFound("The value ", key.edge, " comes from ", from.name,
                         ", which is not in the cluster of this task, ", own_.ToString()));
  }
  peers_.Receive(from, step_id_, key, cancellation,
                 [done = std::move(done), task = from.name,
                  memory = memory_](absl::StatusOr<SentValue> received) {
                   if (!received.ok()) return done(PassedOn(task, received.status()));
                   const ScopedMemoryQuota of_step(memory.get());
                   absl::StatusOr<Tensor> counted = CountMemory(std::move(received->value));
                   if (!counted.ok()) return done(counted.status());
                   received->value = *std::move(counted);
                   done(std::move(received));
                 });
}

}  // namespace weir::rpc
