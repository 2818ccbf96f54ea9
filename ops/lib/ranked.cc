#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/shape_context.h"
#include "weir/core/graph/signature.h"
#include "weir/ops/lib/ranked_internal.h"

namespace weir {

namespace {

struct RankRule {
  std::string argument;
  absl::StatusOr<Shape> (ShapeContext::*check)(int i, int rank) const;
  int rank = 0;
};

RankRule ParseRule(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, ": ");
  absl::string_view rank = parts.second;
  RankRule rule{std::string(parts.first), &ShapeContext::WithRank};
  if (absl::ConsumePrefix(&rank, ">=")) rule.check = &ShapeContext::WithRankAtLeast;
  if (absl::ConsumePrefix(&rank, "<=")) rule.check = &ShapeContext::WithRankAtMost;
  if (!absl::SimpleAtoi(rank, &rule.rank)) std::abort();
  return rule;
}

absl::Status Check(const ShapeContext& c, const std::vector<RankRule>& rules) {
  int first = 0;
  for (const ArgSpec& arg : c.node().op().inputs()) {
    const int end = first + static_cast<int>(ArgLength(arg, c.node().attrs()));
    for (const RankRule& rule : rules) {
      if (rule.argument != arg.name) continue;
      for (int i = first; i < end; ++i)
        WEIR_RETURN_IF_ERROR((c.*rule.check)(i, rule.rank).status());
    }
    first = end;
  }
  return absl::OkStatus();
}

}  // namespace

ShapeFn Ranked(absl::string_view ranks, ShapeFn rule) {
  std::vector<RankRule> rules;
  for (const absl::string_view text : absl::StrSplit(ranks, ", ")) rules.push_back(ParseRule(text));
  return [rules = std::move(rules), rule = std::move(rule)](ShapeContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(Check(c, rules));
    return rule(c);
  };
}

}  // namespace weir
