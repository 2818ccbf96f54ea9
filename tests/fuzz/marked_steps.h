#ifndef WEIR_TESTS_FUZZ_MARKED_STEPS_H_
#define WEIR_TESTS_FUZZ_MARKED_STEPS_H_

#include <map>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/session/session.h"

namespace weir::fuzz {

// The feeds, fetches and targets of one step of a graph with marks (mutate.h).
struct MarkedStep {
  weir::Feeds feeds;
  Outputs fetches;
  std::vector<Operation> targets;
};

// Returns the steps by number; empty for a graph without marks.
std::map<int, MarkedStep> MarkedSteps(const Graph& graph);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_MARKED_STEPS_H_
