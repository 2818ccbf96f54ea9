#include "weir/rpc/cluster/peer_watch.h"

#include <algorithm>
#include <cstdio>

namespace weir::rpc {

namespace {

// How often waits are looked at, at most and in a fraction of the time-out.
constexpr std::chrono::milliseconds kPeriod(1000);
constexpr int kLooksPerTimeout = 16;

// Whether the answer says that nobody is there. A task that refuses the question is alive.
bool IsSilence(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

void Log(absl::string_view text) {
  std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace

PeerWatch::PeerWatch(Timer& timer, std::chrono::milliseconds timeout, Probe probe)
    : timer_(timer), timeout_(timeout), probe_(std::move(probe)) {}

int64_t PeerWatch::Begin(PeerWait wait) {
  if (timeout_.count() == 0) return 0;
  const Clock::time_point now = Clock::now();
  const MutexLock lock(mutex_);
  calls_[next_call_] = {std::make_shared<const PeerWait>(std::move(wait)), now, now};
  ScheduleLocked();
  return next_call_++;
}

void PeerWatch::End(int64_t call) {
  if (call == 0) return;
  Entry entry;  // destroyed without the lock
  const MutexLock lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  entry = std::move(found->second);
  calls_.erase(found);
}

void PeerWatch::ScheduleLocked() {
  if (is_scheduled_ || calls_.empty()) return;
  is_scheduled_ = true;
  timer_.At(Clock::now() + std::min(kPeriod, timeout_ / kLooksPerTimeout),
            [weak = weak_from_this()] {
              if (const std::shared_ptr<PeerWatch> watch = weak.lock()) watch->Look();
            });
}

// Nothing is called with the lock held: a call that ends comes back to End.
void PeerWatch::Look() {
  const Clock::time_point now = Clock::now();
  std::vector<PeerTask> tasks;
  Groups late;
  {
    const MutexLock lock(mutex_);
    is_scheduled_ = false;
    tasks = TasksToAsk(now);
    late = WaitsToLog(now);
    ScheduleLocked();
  }
  for (const auto& [key, group] : late)
    Log(absl::StrCat(Describe(group, now), ", which answers: the wait goes on"));
  for (const PeerTask& task : tasks) {
    probe_(task, timeout_ / 2,
           [weak = weak_from_this(), task, now](const absl::StatusOr<uint64_t>& answer) {
             if (const std::shared_ptr<PeerWatch> watch = weak.lock())
               watch->Hear(task, now, answer);
           });
  }
}

std::vector<PeerTask> PeerWatch::TasksToAsk(Clock::time_point now) {
  std::vector<PeerTask> tasks;
  for (const auto& [number, entry] : calls_) {
    const PeerTask& task = entry.wait->task;
    Peer& peer = peers_[task.address];
    if (peer.is_asked || now - std::max(entry.begin, peer.asked) < timeout_ / 2) continue;
    peer.is_asked = true;
    peer.asked = now;
    tasks.push_back(task);
  }
  if (calls_.empty()) std::erase_if(peers_, [](const auto& peer) { return !peer.second.is_asked; });
  return tasks;
}

PeerWatch::Groups PeerWatch::WaitsToLog(Clock::time_point now) {
  Groups groups;
  for (auto& [number, entry] : calls_) {
    // Again when the wait has become twice as long.
    const Clock::duration pause = std::max<Clock::duration>(timeout_, entry.logged - entry.begin);
    if (now - entry.logged < pause || peers_[entry.wait->task.address].answered < entry.begin)
      continue;
    entry.logged = now;
    Group& group = groups[{entry.wait->task.address, entry.wait->step_id}];
    group.waits.push_back(entry.wait);
    group.begin = std::min(group.begin, entry.begin);
  }
  return groups;
}

void PeerWatch::Hear(const PeerTask& task, Clock::time_point asked,
                     const absl::StatusOr<uint64_t>& answer) {
  const Clock::time_point now = Clock::now();
  const bool is_silent = IsSilence(answer.status());
  Groups ended;
  {
    const MutexLock lock(mutex_);
    Peer& peer = peers_[task.address];
    peer.is_asked = false;
    if (!is_silent) peer.answered = asked;
    const auto is_over = [&](const Entry& entry) {
      if (entry.wait->task.address != task.address || entry.begin > asked) return false;
      const uint64_t expected = entry.wait->incarnation;
      return is_silent || (answer.ok() && expected != 0 && expected != *answer);
    };
    absl::erase_if(calls_, [&](const auto& call) {
      const Entry& entry = call.second;
      if (!is_over(entry)) return false;
      Group& group = ended[{task.address, entry.wait->step_id}];
      group.waits.push_back(entry.wait);
      group.begin = std::min(group.begin, entry.begin);
      return true;
    });
  }
  for (const auto& [key, group] : ended) {
    const std::string wait = Describe(group, now);
    const absl::Status why =
        is_silent ? absl::UnavailableError(
                        absl::StrCat(wait, ", which does not answer (weir serve --peer-timeout)"))
                  : absl::AbortedError(absl::StrCat(wait, ", which was restarted meanwhile"));
    Log(why.message());
    for (const std::shared_ptr<const PeerWait>& call : group.waits) call->end(why);
  }
}

std::string PeerWatch::Describe(const Group& group, Clock::time_point now) {
  // The name of an edge says more than that of a method.
  const PeerWait& first =
      **std::max_element(group.waits.begin(), group.waits.end(),
                         [](const auto& a, const auto& b) { return a->is_edge < b->is_edge; });
  const size_t others = group.waits.size() - 1;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      now - group.begin + std::chrono::milliseconds(500));
  return absl::StrCat(
      first.step_id == 0 ? "a call" : absl::StrCat("step ", first.step_id), " waits for ",
      first.task.name, " (", first.what,
      others == 0 ? "" : absl::StrCat(" and ", others, others == 1 ? " other" : " others"),
      ") for ", seconds.count(), " s");
}

}  // namespace weir::rpc
