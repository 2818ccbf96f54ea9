#ifndef WEIR_TESTS_FUZZ_CASE_GRAPH_H_
#define WEIR_TESTS_FUZZ_CASE_GRAPH_H_

#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

namespace weir::fuzz {

// Returns the serialized graph of a recorded case (tools/case/case_runner.h), with marks (mutate.h)
// for the feeds, fetches and targets of its first steps. Returns UNIMPLEMENTED for a case that
// needs more than a graph.
absl::StatusOr<std::string> CaseGraph(const std::string& folder);

// Returns the seed graphs: files that end in ".pb", and the cases, in these directories and their
// subdirectories.
absl::StatusOr<std::vector<std::string>> ReadGraphs(const std::vector<std::string>& paths);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_CASE_GRAPH_H_
