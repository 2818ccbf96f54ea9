#include "weir/tools/data/scan_progress.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "weir/tools/lib/text_table.h"

namespace weir::tools {

namespace {
constexpr char kEraseLine[] = "\r\x1b[K";
}  // namespace

void ScanProgress::Update(uint64_t bytes) {
  if (!console_.color) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kPeriod;
  is_shown_ = true;
  const auto human = [](uint64_t n) { return HumanBytes(static_cast<int64_t>(n)); };
  console_.out << kEraseLine << "read " << human(bytes);
  if (total_ > 0) {
    const double part =
        std::clamp(static_cast<double>(bytes) / static_cast<double>(total_), 0., 1.);
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    console_.out << absl::StrFormat(" of %s, %.0f%%", human(total_), 100 * part);
    if (part > 0) console_.out << absl::StrFormat(", ETA %.0f s", seconds * (1 - part) / part);
  }
  console_.out << std::flush;
}

ScanProgress::~ScanProgress() {
  if (is_shown_) console_.out << kEraseLine << std::flush;
}

}  // namespace weir::tools
