#include "weir/tests/fuzz/marked_steps.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weir/tests/fuzz/mutate.h"

namespace weir::fuzz {

namespace {

// Returns the step and the output of a mark; -1 for a missing one.
std::pair<int, int> Numbers(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  int step = -1, output = -1;
  if (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &step)) step = -1;
  if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &output)) output = -1;
  return {step, output};
}

void AddMark(Node* node, absl::string_view name, const AttrValue& value,
             std::map<int, MarkedStep>* steps) {
  const auto [step, output] = Numbers(name);
  if (step < 0 || step >= kMaxSteps) return;
  const bool has_output = output >= 0 && output < node->num_outputs();
  if (absl::StartsWith(name, kTargetMark)) (*steps)[step].targets.emplace_back(node);
  if (absl::StartsWith(name, kFetchMark) && has_output)
    (*steps)[step].fetches.push_back(node->output(output));
  const Tensor* fed = value.get_if<Tensor>();
  if (absl::StartsWith(name, kFeedMark) && has_output && fed != nullptr)
    (*steps)[step].feeds.emplace_back(node->output(output), *fed);
}

}  // namespace

std::map<int, MarkedStep> MarkedSteps(const Graph& graph) {
  std::map<int, MarkedStep> steps;
  for (const auto& node : graph.nodes()) {
    for (const auto& [name, value] : node->attrs()) {
      if (absl::StartsWith(name, "_")) AddMark(node.get(), name, value, &steps);
    }
  }
  return steps;
}

}  // namespace weir::fuzz
