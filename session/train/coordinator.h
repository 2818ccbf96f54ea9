#ifndef WEIR_SESSION_TRAIN_COORDINATOR_H_
#define WEIR_SESSION_TRAIN_COORDINATOR_H_

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"

namespace WEIR_API weir {

// A group of threads that stop together (tf.train.Coordinator). Each thread asks from time to time
// whether to stop; the first one that has an error, or is finished, stops the others:
//
//   Coordinator coordinator;
//   coordinator.Start("producer", [&] {
//     while (!coordinator.ShouldStop()) { ...; if (!status.ok()) coordinator.RequestStop(status); }
//   });
//   ...
//   coordinator.RequestStop();
//   return coordinator.Join();
//
// Thread-safe.
class Coordinator {
 public:
  // Errors with the codes `clean_stops` mean the end of input: they stop the threads, but status()
  // stays OK.
  explicit Coordinator(std::vector<absl::StatusCode> clean_stops = {absl::StatusCode::kOutOfRange})
      : clean_stops_(std::move(clean_stops)) {}
  // Requests a stop and waits for all threads.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Runs `body` on a new thread. An exception that escapes it requests a stop, with an error that
  // names the thread.
  void Start(std::string name, std::function<void()> body);
  // Requests a stop. The first error is kept.
  void RequestStop(const absl::Status& why = absl::OkStatus());
  bool ShouldStop() const;
  // Returns false if no stop was requested within that time.
  bool WaitForStop(std::chrono::milliseconds at_most);
  void WaitForStop();
  // Returns the error with which a stop was requested, or OK.
  absl::Status status() const;

  // Waits until all threads have finished, or until `grace` after a stop was requested. Returns
  // status(); or, if that is OK, DEADLINE_EXCEEDED with the names of the threads that still run.
  absl::Status Join(std::chrono::milliseconds grace = std::chrono::seconds(120));
  // Clears the stop request and the status, once the threads have finished.
  void ClearStop();

 private:
  struct Worker {
    std::string name;
    std::thread thread;
    bool is_running = false;
  };
  bool AnyRunning() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JoinFinished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<absl::StatusCode> clean_stops_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::list<Worker> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_SESSION_TRAIN_COORDINATOR_H_
