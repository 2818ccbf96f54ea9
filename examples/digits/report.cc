#include "weir/examples/digits/report.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace digits {

namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(int64_t first_step, int64_t last_step)
    : first_(first_step), last_(last_step), terminal_(isatty(STDOUT_FILENO) != 0), start_(Now()) {}

void Progress::Show(int64_t step, float loss, float accuracy) {
  const double now = Now(), period = terminal_ ? 0.1 : 1.0;
  if (step != last_ && now - shown_ < period) return;
  shown_ = now;
  const double rate = static_cast<double>(step - first_) / std::max(now - start_, 1e-9);
  std::printf("%sstep %lld/%lld  loss %.4f  accuracy %.1f%%  %.0f steps/s  ETA %.0f s%s",
              terminal_ ? "\r\x1b[K" : "", static_cast<long long>(step),
              static_cast<long long>(last_), loss, 100 * accuracy, rate,
              static_cast<double>(last_ - step) / std::max(rate, 1e-9), terminal_ ? "" : "\n");
  std::fflush(stdout);
}

void Progress::Finish() {
  if (terminal_) std::printf("\n");
}

void PrintConfusion(const weir::Tensor& labels, const weir::Tensor& predictions) {
  int counts[kClasses][kClasses] = {};
  for (int64_t i = 0; i < labels.num_elements(); ++i) {
    ++counts[labels.data<int64_t>()[i]][predictions.data<int64_t>()[i]];
  }
  std::printf("\ntrue \\ pred ");
  for (int c = 0; c < kClasses; ++c) std::printf("%4d", c);
  std::printf("\n");
  const bool color = isatty(STDOUT_FILENO) != 0;
  for (int r = 0; r < kClasses; ++r) {
    std::printf("%12d", r);
    for (int c = 0; c < kClasses; ++c) {
      const char* on = !color || counts[r][c] == 0 ? "" : r == c ? "\x1b[32m" : "\x1b[31;1m";
      counts[r][c] == 0 ? std::printf("   .")
                        : std::printf("%s%4d%s", on, counts[r][c], *on ? "\x1b[0m" : "");
    }
    std::printf("\n");
  }
}

void PrintMisclassified(const Examples& examples, const weir::Tensor& predictions) {
  constexpr int kShown = 5;
  constexpr char kShades[] = " .:-=+*#%@";
  std::vector<int64_t> misclassified;
  for (int64_t i = 0; i < examples.size(); ++i) {
    if (examples.labels.data<int64_t>()[i] != predictions.data<int64_t>()[i])
      misclassified.push_back(i);
  }
  if (misclassified.empty()) return;
  std::printf("\nMisclassified (%zu of %lld):\n", misclassified.size(),
              static_cast<long long>(examples.size()));
  misclassified.resize(std::min<size_t>(misclassified.size(), kShown));
  for (int y = 0; y < kSide; ++y) {
    for (const int64_t i : misclassified) {
      std::printf("  ");
      for (int x = 0; x < kSide; ++x) {
        const float v = examples.images.data<float>()[i * kPixels + y * kSide + x];
        const char shade = kShades[std::min(9, static_cast<int>(v * 9.99f))];
        std::printf("%c%c", shade, shade);
      }
    }
    std::printf("\n");
  }
  for (const int64_t i : misclassified) {
    std::printf("  %d, predicted %d  ", static_cast<int>(examples.labels.data<int64_t>()[i]),
                static_cast<int>(predictions.data<int64_t>()[i]));
  }
  std::printf("\n");
}

}  // namespace digits
