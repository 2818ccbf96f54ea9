#ifndef WEIR_TESTS_FUZZ_CASE_GRAPH_H_
#define WEIR_TESTS_FUZZ_CASE_GRAPH_H_

#include <string>
#include <vector>

#include "weir/core/status.h"

namespace weir::fuzz {

// The graph of a recorded case (tools/case_runner.h), serialized, with marks (mutate.h) that say
// what its first steps feed, fetch and run. UNIMPLEMENTED for a case that is no graph alone.
absl::StatusOr<std::string> CaseGraph(const std::string& folder);

// The graphs to begin with: files that end in ".pb", and the cases in folders and below them.
absl::StatusOr<std::vector<std::string>> ReadGraphs(const std::vector<std::string>& paths);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_CASE_GRAPH_H_
