#ifndef WEIR_CORE_RUNTIME_RENDEZVOUS_H_
#define WEIR_CORE_RUNTIME_RENDEZVOUS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/tensor.h"

// Where the parts of a step meet that run on different tasks of a cluster.
namespace WEIR_API weir {

// What a part of a step sends: a value, or the news that it is dead, the output of a branch not
// taken.
struct SentValue {
  Tensor value;          // uninitialized if it is dead
  bool is_dead = false;  // whether it is
};

// The name of a value that crosses from one device to another, as TensorFlow's tasks write it:
//
//   SEND_DEVICE;INCARNATION;RECEIVE_DEVICE;EDGE;FRAME:ITERATION
//
// The incarnation, 16 hexadecimal digits, tells a task from the one that ran at its address before
// it was restarted. Frame and iteration are those of the loop that the edge is in, 0:0 outside of
// loops.
struct RendezvousKey {
  std::string text;                         // the whole key
  std::string send_device, receive_device;  // full names
  uint64_t incarnation = 0;                 // of the task that sends
  std::string edge;                         // unique among those of the two devices

  // INVALID_ARGUMENT unless `text` has the five parts above.
  static absl::StatusOr<RendezvousKey> Parse(std::string text);
};

// One step's place of exchange. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Receives the value, or an error. Called once, on any thread, perhaps before Receive returns.
  using Done = std::function<void(absl::StatusOr<SentValue>)>;

  // Sends a value, which outlives the step that computed it. Never waits. Values of one key queue
  // up. Returns the error of Abort, if it was called.
  virtual absl::Status Send(const RendezvousKey& key, SentValue value) = 0;
  // Takes a value of this key as soon as there is one. Waiters of one key are served in order.
  // Cancelling `cancellation` (may be null; outlives the call of `done`) ends the wait with its
  // status.
  virtual void Receive(const RendezvousKey& key, Cancellation* cancellation, Done done) = 0;
};

// The exchange of one process.
class LocalRendezvous final : public Rendezvous {
 public:
  LocalRendezvous() = default;
  ~LocalRendezvous() override;  // aborts

  absl::Status Send(const RendezvousKey& key, SentValue value) override;
  void Receive(const RendezvousKey& key, Cancellation* cancellation, Done done) override;
  // Ends all waits with this error, now and later, and drops what has been sent. The first call
  // counts.
  void Abort(const absl::Status& why);

 private:
  struct Waiter;
  // Of one key; one of the two queues is empty.
  struct Meeting {
    std::deque<SentValue> values;
    std::deque<std::shared_ptr<Waiter>> waiters;
  };

  void Cancel(const std::string& key, const std::shared_ptr<Waiter>& waiter,
              const absl::Status& why);

  Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Meeting> meetings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_CORE_RUNTIME_RENDEZVOUS_H_
