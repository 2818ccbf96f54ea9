#ifndef WEIR_RPC_CLUSTER_PEER_WATCH_H_
#define WEIR_RPC_CLUSTER_PEER_WATCH_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/timer.h"

namespace weir::rpc {

// A task, and where it is.
struct PeerTask {
  std::string name;     // "/job:ps/replica:0/task:1"
  std::string address;  // "10.0.0.1:2222"
};

// A call to another task that has no answer yet.
struct PeerWait {
  PeerTask task;
  uint64_t incarnation = 0;  // that the task must have; 0: any
  int64_t step_id = 0;       // 0: the call belongs to no step
  std::string what;          // the method, or the edge whose value it waits for
  bool is_edge = false;      // which of the two
  // Ends the call with this error.
  std::function<void(const absl::Status&)> end;
};

// Ends calls to tasks that have died without a sign: stopped, or on a machine that cannot be
// reached, so that the connection says nothing. A call may take long for good reasons, such as a
// queue that is empty. So the time of a call decides nothing: a task that has not answered a call
// for half of `timeout` is asked for its status, on a connection of its own, and has the other half
// to answer. Each wait beyond `timeout` on a task that answers is logged, and goes on.
//
//   UNAVAILABLE  the task does not answer
//   ABORTED      the task was restarted since the call began
//
// The errors say who waits for what: "step 812 waits for /job:ps/replica:0/task:1 (edge_14_w/read
// and 11 others) for 60 s". Thread-safe.
class PeerWatch : public std::enable_shared_from_this<PeerWatch> {
 public:
  // The incarnation of a task, or the error of asking for it.
  using Answered = std::function<void(const absl::StatusOr<uint64_t>&)>;
  // Asks a task for its status, without holding a thread. DEADLINE_EXCEEDED after `limit`.
  using Probe =
      std::function<void(const PeerTask&, std::chrono::milliseconds limit, const Answered&)>;

  // `timer` outlives the watch. Zero: never.
  PeerWatch(Timer& timer, std::chrono::milliseconds timeout, Probe probe);

  // A call begins, and ends; `Begin` returns what `End` takes.
  int64_t Begin(PeerWait wait);
  void End(int64_t call);

 private:
  using Clock = Timer::Clock;
  struct Entry {
    std::shared_ptr<const PeerWait> wait;
    Clock::time_point begin, logged;  // `logged`: last, or when it began
  };
  struct Peer {
    bool is_asked = false;       // a probe is in progress
    Clock::time_point asked;     // when the last one began
    Clock::time_point answered;  // when the last one began that was answered
  };
  // The calls of one step, or of none, to one task.
  struct Group {
    std::vector<std::shared_ptr<const PeerWait>> waits;
    Clock::time_point begin = Clock::time_point::max();  // of the first
  };
  using Groups = std::map<std::pair<std::string, int64_t>, Group>;  // by address and step

  static std::string Describe(const Group& group, Clock::time_point now);
  void ScheduleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Look();
  // The tasks to be asked now.
  std::vector<PeerTask> TasksToAsk(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The waits to be logged now.
  Groups WaitsToLog(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The answer to a probe that began at `asked`.
  void Hear(const PeerTask& task, Clock::time_point asked, const absl::StatusOr<uint64_t>& answer);

  Timer& timer_;
  const std::chrono::milliseconds timeout_;
  const Probe probe_;
  Mutex mutex_;
  absl::flat_hash_map<int64_t, Entry> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);  // by address
  int64_t next_call_ ABSL_GUARDED_BY(mutex_) = 1;
  bool is_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_PEER_WATCH_H_
