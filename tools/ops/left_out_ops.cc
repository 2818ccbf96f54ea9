#include "weir/tools/ops/left_out_ops.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace weir::tools {

std::vector<std::string> TensorFlowOps() {
  std::vector<std::string> ops;
  for (const absl::string_view line :
       absl::StrSplit(TensorFlowOpsText(), '\n', absl::SkipWhitespace())) {
    if (!absl::StartsWith(line, "#")) ops.emplace_back(line);
  }
  return ops;
}

std::map<std::string, std::string> LeftOutOps() {
  std::map<std::string, std::string> reasons;
  std::string reason;
  for (const absl::string_view line :
       absl::StrSplit(LeftOutOpsText(), '\n', absl::SkipWhitespace())) {
    if (absl::StartsWith(line, "#")) continue;
    if (absl::StartsWith(line, " ")) {
      reasons[std::string(absl::StripAsciiWhitespace(line))] = reason;
    } else {
      reason = std::string(line);
    }
  }
  return reasons;
}

}  // namespace weir::tools
