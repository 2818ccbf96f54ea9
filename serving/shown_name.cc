#include "weir/serving/shown_name.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace weir::serving {

std::string ShownName(absl::string_view name) {
  constexpr size_t kMaxBytes = 100;
  if (name.size() <= kMaxBytes) return absl::CHexEscape(name);
  return absl::StrCat(absl::CHexEscape(name.substr(0, kMaxBytes)), "...");
}

}  // namespace weir::serving
