#include "weir/core/runtime/rendezvous.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "weir/core/tensor/status.h"

namespace weir {

absl::StatusOr<RendezvousKey> RendezvousKey::Parse(std::string text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ';');
  RendezvousKey key;
  bool valid = parts.size() == 5 && !parts[0].empty() && !parts[2].empty();
  if (valid) {
    const char *const begin = parts[1].data(), *const end = begin + parts[1].size();
    const auto [last, error] = std::from_chars(begin, end, key.incarnation, 16);
    valid = error == std::errc() && last == end;
  }
  if (!valid) return InvalidArgument("Invalid  rendezvous key: ", text);
  key.send_device = parts[0];
  key.receive_device = parts[2];
  key.edge = parts[3];
  key.text = std::move(text);
  return key;
}

// A wait for a value. Whoever takes it out of its queue, under the lock, calls `done`.
struct LocalRendezvous::Waiter {
  Done done;
  Cancellation* cancellation = nullptr;  // null: cannot be cancelled
  int64_t token = 0;
};

LocalRendezvous::~LocalRendezvous() {
  Abort(absl::CancelledError("The step of this rendezvous has ended"));
}

absl::Status LocalRendezvous::Send(const RendezvousKey& key, SentValue value) {
  std::shared_ptr<Waiter> waiter;
  {
    const MutexLock lock(mutex_);
    WEIR_RETURN_IF_ERROR(aborted_);
    Meeting& meeting = meetings_[key.text];
    if (meeting.waiters.empty()) {
      meeting.values.push_back(std::move(value));
      return absl::OkStatus();
    }
    waiter = std::move(meeting.waiters.front());
    meeting.waiters.pop_front();
    if (meeting.waiters.empty()) meetings_.erase(key.text);
  }
  if (waiter->cancellation != nullptr) waiter->cancellation->Unregister(waiter->token);
  waiter->done(std::move(value));
  return absl::OkStatus();
}

void LocalRendezvous::Receive(const RendezvousKey& key, Cancellation* cancellation, Done done) {
  const auto waiter = std::make_shared<Waiter>();
  absl::StatusOr<SentValue> result = SentValue();
  {
    const MutexLock lock(mutex_);
    const auto found = meetings_.find(key.text);
    if (!aborted_.ok()) {
      result = aborted_;
    } else if (found != meetings_.end() && !found->second.values.empty()) {
      result = std::move(found->second.values.front());
      found->second.values.pop_front();
      if (found->second.values.empty()) meetings_.erase(found);
    } else {
      waiter->done = std::move(done);
      waiter->cancellation = cancellation;
      // Under the lock, so that nobody unregisters a token that is not set yet. Cancel() does not
      // run the callback on this thread.
      const auto on_cancel = [this, text = key.text, waiter, cancellation] {
        Cancel(text, waiter, cancellation->status());
      };
      if (cancellation == nullptr || cancellation->OnCancel(on_cancel, &waiter->token)) {
        meetings_[key.text].waiters.push_back(waiter);
        return;
      }
      done = std::move(waiter->done);
      result = cancellation->status();
    }
  }
  done(std::move(result));
}

void LocalRendezvous::Cancel(const std::string& key, const std::shared_ptr<Waiter>& waiter,
                             const absl::Status& why) {
  {
    const MutexLock lock(mutex_);
    const auto found = meetings_.find(key);
    if (found == meetings_.end()) return;
    auto& waiters = found->second.waiters;
    const auto at = std::find(waiters.begin(), waiters.end(), waiter);
    if (at == waiters.end()) return;  // it has its value, or the error of Abort
    waiters.erase(at);
    if (waiters.empty()) meetings_.erase(found);
  }
  waiter->done(why);
}

void LocalRendezvous::Abort(const absl::Status& why) {
  absl::flat_hash_map<std::string, Meeting> meetings;
  {
    const MutexLock lock(mutex_);
    if (!aborted_.ok()) return;
    aborted_ = why;
    meetings.swap(meetings_);
  }
  for (auto& [key, meeting] : meetings) {
    for (const std::shared_ptr<Waiter>& waiter : meeting.waiters) {
      if (waiter->cancellation != nullptr) waiter->cancellation->Unregister(waiter->token);
      waiter->done(why);
    }
  }
}

}  // namespace weir
