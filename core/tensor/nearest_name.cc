#include "weir/core/tensor/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

namespace weir {
namespace {

// Longer words are compared by their scopes only, since the distance takes quadratic time.
constexpr size_t kMaxLength = 200;

size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

bool IsUnderScope(absl::string_view name, absl::string_view word) {
  return name.size() > word.size() && absl::EndsWith(name, word) &&
         name[name.size() - word.size() - 1] == '/';
}

}  // namespace

std::string NearestName(absl::string_view word, absl::Span<const std::string> names) {
  const std::string* nearest = nullptr;
  size_t least = 2 + word.size() / 3;
  for (const std::string& name : names) {
    if (IsUnderScope(name, word) || IsUnderScope(word, name)) return name;
    const size_t longer = std::max(name.size(), word.size());
    const size_t shorter = std::min(name.size(), word.size());
    if (longer > kMaxLength || longer - shorter >= least) continue;
    const size_t distance = Distance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = &name;
  }
  return nearest == nullptr ? "" : *nearest;
}

}  // namespace weir
