#ifndef WEIR_SESSION_COORDINATOR_H_
#define WEIR_SESSION_COORDINATOR_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/status.h"

namespace weir {

// Threads that stop together (tf.train.Coordinator). Each asks now and then whether to stop; the
// first that meets an error, or is through, tells the others:
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
  // Errors with these codes are the end of input, and stop the threads without being errors.
  explicit Coordinator(std::vector<absl::StatusCode> clean_stops = {absl::StatusCode::kOutOfRange})
      : clean_stops_(std::move(clean_stops)) {}
  // Requests a stop, and waits for all threads.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Runs `body` on a thread of its own. An exception that comes out of it requests a stop, with an
  // error that names the thread.
  void Start(std::string name, std::function<void()> body);
  // The first error counts.
  void RequestStop(const absl::Status& why = absl::OkStatus());
  bool ShouldStop() const;
  // False if no stop was requested in that time.
  bool WaitForStop(std::chrono::milliseconds at_most);
  void WaitForStop();
  // The error that a stop was requested with, or OK.
  absl::Status status() const;

  // Waits until all threads are through, or a stop is requested and they have had `grace` since.
  // Returns status(); or, if that is OK, DEADLINE_EXCEEDED with the names of threads that still
  // run.
  absl::Status Join(std::chrono::milliseconds grace = std::chrono::seconds(120));
  // Makes it as new, once the threads are through.
  void ClearStop();

 private:
  struct Worker {
    std::string name;
    std::thread thread;
    bool is_running = true;
  };
  bool AnyRuns() const;
  void Reap();

  const std::vector<absl::StatusCode> clean_stops_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  absl::Status status_;
  std::list<Worker> workers_;
};

}  // namespace weir

#endif  // WEIR_SESSION_COORDINATOR_H_
