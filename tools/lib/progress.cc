#include "weir/tools/lib/progress.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weir/core/io/file.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {

namespace {

constexpr std::chrono::milliseconds kDelay{1000}, kInterval{100};
constexpr int kBarWidth = 20;
constexpr char kClearLine[] = "\r\x1b[K";

std::string Bar(double part, bool unicode) {
  const int full = static_cast<int>(part * kBarWidth);
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i)
    bar += i < full ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
  return bar;
}

// "45 s", "3 min 20 s", "2 h 5 min".
std::string Remaining(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole / 60 % 60, " min");
}

std::string Amount(double amount, const std::string& unit) {
  const auto whole = static_cast<int64_t>(amount);
  return unit.empty() ? HumanBytes(whole) : WithCommas(whole);
}

}  // namespace

std::string FormatProgress(const ProgressState& state, size_t width, bool unicode) {
  const std::string unit = state.unit.empty() ? "" : " " + state.unit;
  std::string line =
      absl::StrCat("  ", Amount(state.done, state.unit), unit, ", ", Remaining(state.seconds));
  if (state.total > 0) {
    // More than was expected: it is almost done.
    const double part = std::clamp(state.done / state.total, 0., 0.999);
    line = absl::StrFormat("  %s %3d%%  %s of %s%s", Bar(part, unicode),
                           static_cast<int>(part * 100), Amount(state.done, state.unit),
                           Amount(std::max(state.total, state.done), state.unit), unit);
    if (state.done <= 0)
      absl::StrAppend(&line, ", ", Remaining(state.seconds));
    else
      absl::StrAppend(&line, ", ", Remaining(state.seconds * (1 - part) / part), " left");
  }
  const size_t room = width > TextWidth(line) + 10 ? width - TextWidth(line) - 1 : 9;
  line = Shorten(Printable(state.what, unicode), room, unicode) + line;
  return TextWidth(line) < width ? line : Shorten(line, width - 1, unicode);
}

ProgressBar::ProgressBar(Console& console, std::string what, std::string unit, double total,
                         std::function<double()> measure)
    : console_(console),
      state_{.what = std::move(what), .unit = std::move(unit), .total = total},
      measure_(std::move(measure)),
      start_(std::chrono::steady_clock::now()) {
  if (console_.live) thread_ = std::thread([this] { Draw(); });
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  ended_.NotifyAll();
  thread_.join();
}

void ProgressBar::Draw() {
  const MutexLock lock(mutex_);
  auto next = start_ + kDelay;
  bool drawn = false;
  while (!ends_) {
    if (ended_.WaitUntil(mutex_, next)) continue;
    const auto now = std::chrono::steady_clock::now();
    state_.done = measure_ ? measure_() : done_.load(std::memory_order_relaxed);
    state_.seconds = std::chrono::duration<double>(now - start_).count();
    console_.err << kClearLine << FormatProgress(state_, console_.width, console_.unicode)
                 << std::flush;
    drawn = true;
    next = now + kInterval;
  }
  if (drawn) console_.err << kClearLine << std::flush;
}

ProgressBar ShowReading(Console& console, const std::string& path, double total) {
  const double before = ReadFileTraffic().read;
  return ProgressBar(console, "Reading " + path, "", total,
                     [before] { return ReadFileTraffic().read - before; });
}

ProgressBar ShowWriting(Console& console, const std::string& path, double total) {
  const double before = ReadFileTraffic().written;
  return ProgressBar(console, "Writing " + path, "", total,
                     [before] { return ReadFileTraffic().written - before; });
}

double CheckpointBytes(const std::string& prefix) {
  double bytes = 0;
  for (const char* const ending : {"", ".index", ".data-*"}) {
    const absl::StatusOr<std::vector<std::string>> files = MatchFiles(prefix + ending);
    for (const std::string& file : files.ok() ? *files : std::vector<std::string>()) {
      const auto opened = Files().Open(file);
      if (opened.ok()) bytes += static_cast<double>((*opened)->size());
    }
  }
  return bytes;
}

FileTraffic ReadFileTraffic() {
  FileTraffic traffic;
  std::ifstream file("/proc/self/io");
  for (std::string name; file >> name;) {
    double bytes = 0;
    file >> bytes;
    if (name == "rchar:") traffic.read = bytes;
    if (name == "wchar:") traffic.written = bytes;
  }
  return traffic;
}

}  // namespace weir::tools
