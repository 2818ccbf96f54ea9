#include "weir/core/graph/closest_names.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace weir {

namespace {

// Returns the case-insensitive edit distance (changed, added or removed letters) from `a` to `b`,
// or `limit` if it is at least that.
int EditDistance(absl::string_view a, absl::string_view b, int limit) {
  if (std::abs(static_cast<int>(a.size()) - static_cast<int>(b.size())) >= limit) return limit;
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (size_t j = 1; j <= b.size(); ++j) {
      const int change =
          diagonal + (absl::ascii_tolower(a[i - 1]) != absl::ascii_tolower(b[j - 1]) ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return std::min(row.back(), limit);
}

// The edit distance takes time in proportion to the product of both lengths.
constexpr size_t kMaxLength = 100;

bool IsUnderScope(absl::string_view name, absl::string_view word) {
  return name.size() > word.size() && absl::EndsWith(name, word) &&
         name[name.size() - word.size() - 1] == '/';
}

int Distance(absl::string_view a, absl::string_view b, int limit) {
  if (IsUnderScope(a, b) || IsUnderScope(b, a)) return 0;
  return std::max(a.size(), b.size()) > kMaxLength ? limit : EditDistance(a, b, limit);
}

}  // namespace

std::vector<std::string> ClosestNames(absl::string_view name,
                                      const std::vector<std::string>& candidates) {
  constexpr int kDistanceLimit = 4;
  constexpr size_t kMaxNames = 3;
  const int limit = std::min(kDistanceLimit, 1 + static_cast<int>(name.size()) / 2);
  std::vector<std::pair<int, std::string>> close;
  for (const std::string& candidate : candidates) {
    const int distance = Distance(name, candidate, limit);
    if (distance < limit) close.emplace_back(distance, candidate);
  }
  std::sort(close.begin(), close.end());
  if (close.size() > kMaxNames) close.resize(kMaxNames);
  std::vector<std::string> names;
  for (auto& [distance, candidate] : close) names.push_back(std::move(candidate));
  return names;
}

}  // namespace weir
