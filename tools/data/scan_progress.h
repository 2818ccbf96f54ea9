#ifndef WEIR_TOOLS_DATA_SCAN_PROGRESS_H_
#define WEIR_TOOLS_DATA_SCAN_PROGRESS_H_

#include <chrono>

#include "weir/tools/data/data_file.h"
#include "weir/tools/lib/cli.h"

namespace weir::tools {

// A line on the terminal with the bytes that have been read and the time that is left, for work
// that takes longer than a second. Prints nothing if the output is not a terminal.
class ScanProgress final : public DataProgress {
 public:
  // `total` is the number of bytes of all files; 0 if it is unknown.
  ScanProgress(Console& console, uint64_t total)
      : console_(console), total_(total), begin_(Clock::now()), next_(begin_ + kDelay) {}
  ~ScanProgress() override;
  void Update(uint64_t bytes) override;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kDelay{1000}, kPeriod{100};

  Console& console_;
  const uint64_t total_;
  const Clock::time_point begin_;
  Clock::time_point next_;
  bool is_shown_ = false;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_SCAN_PROGRESS_H_
