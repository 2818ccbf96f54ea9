#include "weir/examples/digits/dataset.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace digits {

namespace {

constexpr int kMaxPixel = 16;
constexpr uint32_t kSplitSeed = 17;

absl::StatusOr<std::string> Unzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr)
    return weir::NotFound(
        path, ": file not found; run this program from the project's folder, or pass --data");
  std::string text;
  char buffer[1 << 16];
  int n = 0;
  while ((n = gzread(file, buffer, sizeof(buffer))) > 0) text.append(buffer, n);
  gzclose(file);
  if (n < 0) return weir::DataLoss(path, ": not a gzip file, or damaged");
  return text;
}

// Shuffles identically with every standard library, which std::shuffle does not guarantee.
void Shuffle(std::vector<int64_t>& v, uint32_t seed) {
  std::mt19937 random(seed);
  for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[random() % i]);
}

}  // namespace

Examples Examples::Pick(const std::vector<int64_t>& positions) const {
  const int64_t n = static_cast<int64_t>(positions.size());
  Examples out{weir::Tensor(weir::DT_FLOAT, weir::Shape({n, kSide, kSide, 1})),
               weir::Tensor(weir::DT_INT64, weir::Shape({n}))};
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(out.images.data<float>() + i * kPixels,
                images.data<float>() + positions[i] * kPixels, kPixels * sizeof(float));
    out.labels.data<int64_t>()[i] = labels.data<int64_t>()[positions[i]];
  }
  return out;
}

absl::StatusOr<Dataset> LoadDigits(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::string text, Unzip(path));
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  const int64_t n = static_cast<int64_t>(lines.size());
  Examples all{weir::Tensor(weir::DT_FLOAT, weir::Shape({n, kSide, kSide, 1})),
               weir::Tensor(weir::DT_INT64, weir::Shape({n}))};
  for (int64_t i = 0; i < n; ++i) {
    const std::vector<absl::string_view> fields = absl::StrSplit(lines[i], ',');
    if (fields.size() != kPixels + 1)
      return weir::DataLoss(path, ": line ", i + 1, " has ", fields.size(), " fields");
    for (int k = 0; k <= kPixels; ++k) {
      int value = 0;
      if (!absl::SimpleAtoi(fields[k], &value) || value < 0 ||
          value > (k < kPixels ? kMaxPixel : kClasses - 1)) {
        return weir::DataLoss(path, ": line ", i + 1, ", field ", k + 1, " is '", fields[k], "'");
      }
      if (k < kPixels) {
        all.images.data<float>()[i * kPixels + k] = static_cast<float>(value) / kMaxPixel;
      } else {
        all.labels.data<int64_t>()[i] = value;
      }
    }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  Shuffle(order, kSplitSeed);
  const auto cut = order.begin() + n * 4 / 5;
  return Dataset{all.Pick({order.begin(), cut}), all.Pick({cut, order.end()})};
}

std::vector<int64_t> EpochOrder(int64_t n, int64_t epoch) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  Shuffle(order, static_cast<uint32_t>(epoch + 1));
  return order;
}

}  // namespace digits
