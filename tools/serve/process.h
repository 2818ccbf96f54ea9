#ifndef WEIR_TOOLS_SERVE_PROCESS_H_
#define WEIR_TOOLS_SERVE_PROCESS_H_

#include <chrono>
#include <csignal>
#include <thread>

#include "absl/synchronization/notification.h"

// What a server needs of its process.
namespace weir::tools {

// Blocks SIGTERM, SIGINT and SIGHUP in all threads during its lifetime, so that Wait() can receive
// them.
class Signals {
 public:
  Signals();
  ~Signals();
  int Wait() const;

 private:
  sigset_t signals_, before_;
};

// Ends the process if it has not stopped in time: a kernel in a library (one call of LAPACK) cannot
// be interrupted, and its session cannot be destroyed before it ends.
class StopTimer {
 public:
  // The process ends with `status` so long after Start, unless this object is destroyed before.
  void Start(std::chrono::seconds limit, int status);
  ~StopTimer();

 private:
  absl::Notification stopped_;
  std::thread thread_;
};

// Sets how the process uses memory. Call it before threads start.
//
// Messages of several megabytes, and the tensors in them, are read into newly allocated memory. The
// C library would return each freed block to the system, and touching a new page costs more than
// copying into one. So freed memory is kept for the next message.
//
// The C library has few arenas, which keep 64 MB each that nobody else can use. Where the address
// space or the data of the process are limited (RLIMIT_AS, RLIMIT_DATA), it has one, and threads
// get stacks of 2 MB: 400 nested calls of functions, the most that are allowed, take about half.
void PrepareMemory();

// Returns the largest number of threads for whose stacks there is room beside everything else, up
// to `wanted`.
int AffordableThreads(int wanted);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_SERVE_PROCESS_H_
