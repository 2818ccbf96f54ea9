#include "weir/tools/lib/rename_rules.h"

#include <re2/re2.h>

#include "absl/strings/str_split.h"

namespace weir::tools {

absl::StatusOr<RenameRules> RenameRules::Parse(const std::vector<std::string>& values) {
  RenameRules rules;
  for (const std::string& value : values) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(value, absl::MaxSplits('=', 1));
    if (parts.first.empty() || !absl::StrContains(value, '='))
      return InvalidArgument("--rename ", value, ": expected REGEX=TEXT");
    auto pattern = std::make_shared<RE2>(parts.first, RE2::Quiet);
    std::string error = pattern->error();
    if (!pattern->ok() || !pattern->CheckRewriteString(parts.second, &error))
      return InvalidArgument("--rename ", value, ": invalid regular expression: ", error);
    rules.rules_.emplace_back(std::move(pattern), parts.second);
  }
  return rules;
}

std::string RenameRules::Apply(std::string name) const {
  for (const auto& [pattern, text] : rules_) RE2::GlobalReplace(&name, *pattern, text);
  return name;
}

}  // namespace weir::tools
