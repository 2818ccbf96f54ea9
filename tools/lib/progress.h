#ifndef WEIR_TOOLS_LIB_PROGRESS_H_
#define WEIR_TOOLS_LIB_PROGRESS_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "weir/core/tensor/mutex.h"
#include "weir/tools/lib/cli.h"

namespace weir::tools {

// What a command has done at one moment.
struct ProgressState {
  std::string what;  // "Verifying runs/model-500"
  std::string unit;  // "tensors"; empty: bytes
  double done = 0;
  double total = 0;    // 0: not known
  double seconds = 0;  // since the start
};

// Returns the line that shows a state: a bar, the part that is done, and the time that is left if
// the rest takes as long. It is shorter than `width` columns.
std::string FormatProgress(const ProgressState& state, size_t width, bool unicode);

// Shows on standard error how far a command is, while this object lives, if standard error is a
// terminal and the command takes longer than a second. A thread of its own redraws the line, so the
// command may be busy with one part for long. Add is thread-safe.
class ProgressBar {
 public:
  // `measure`, if given, returns what has been done, and is called by the thread.
  ProgressBar(Console& console, std::string what, std::string unit, double total,
              std::function<double()> measure = nullptr);
  // Removes the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void Add(double done) { done_.fetch_add(done, std::memory_order_relaxed); }

 private:
  void Draw();

  Console& console_;
  ProgressState state_;
  const std::function<double()> measure_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<double> done_ = 0;
  Mutex mutex_;
  CondVar ended_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // not joinable if nothing is shown
};

// Bars of the bytes that this process reads from files, or writes to them, in any thread: for
// functions that do not report what they have done. `total` is what they are expected to be.
ProgressBar ShowReading(Console& console, const std::string& path, double total);
ProgressBar ShowWriting(Console& console, const std::string& path, double total);

// The bytes of a checkpoint's files, given its prefix; 0 if there is none.
double CheckpointBytes(const std::string& prefix);

// Bytes that this process has read and written by system calls; 0 where the system does not say.
struct FileTraffic {
  double read = 0, written = 0;
};
FileTraffic ReadFileTraffic();

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_PROGRESS_H_
