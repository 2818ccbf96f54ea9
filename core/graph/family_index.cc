#include "weir/core/graph/family_index.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir {

FamilyIndexEntries::FamilyIndexEntries(FamilyOps ops)
    : ops_(std::move(ops)), starts_(FamilyIndex::kBuckets + 1, 0) {
  for (size_t family = 0; family < ops_.size(); ++family) {
    for (const std::string& op : ops_[family]) {
      entries_.push_back({op, static_cast<int32_t>(family)});
      ++starts_[FamilyIndex::BucketOf(op) + 1];
    }
  }
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  const auto key = [](const FamilyIndex::Entry& e) {
    return std::tuple(FamilyIndex::BucketOf(e.op), e.op, e.family);
  };
  std::sort(entries_.begin(), entries_.end(),
            [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

std::string FamilyIndexSource(FamilyOps ops, absl::string_view function) {
  const FamilyIndexEntries entries(std::move(ops));
  const FamilyIndex index = entries.index();
  const auto entry = [](std::string* out, const FamilyIndex::Entry& e) {
    absl::StrAppend(out, "    {\"", e.op, "\", ", e.family, "},\n");
  };
  return absl::StrCat(
      "#include \"weir/core/graph/families.h\"\n\nnamespace weir {\n\n", "FamilyIndex ", function,
      "() {\n", "  static constexpr FamilyIndex::Entry kEntries[] = {\n",
      absl::StrJoin(index.entries, "", entry), "  };\n",
      "  static constexpr uint16_t kStarts[] = {\n    ", absl::StrJoin(index.starts, ", "), "};\n",
      "  return {kEntries, kStarts};\n}\n\n}  // namespace weir\n");
}

}  // namespace weir
