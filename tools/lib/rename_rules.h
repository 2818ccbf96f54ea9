#ifndef WEIR_TOOLS_LIB_RENAME_RULES_H_
#define WEIR_TOOLS_LIB_RENAME_RULES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/status.h"

namespace re2 {
class RE2;
}  // namespace re2

namespace weir::tools {

// How names are changed, by the values of --rename: each is REGEX=TEXT (RE2), and replaces every
// match in a name by the text, in which \1 is the first group. The rules apply in their order.
class RenameRules {
 public:
  // INVALID_ARGUMENT for a value that is no rule.
  static absl::StatusOr<RenameRules> Parse(const std::vector<std::string>& values);
  std::string Apply(std::string name) const;

 private:
  std::vector<std::pair<std::shared_ptr<const re2::RE2>, std::string>> rules_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_RENAME_RULES_H_
