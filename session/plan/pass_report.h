#ifndef WEIR_SESSION_PLAN_PASS_REPORT_H_
#define WEIR_SESSION_PLAN_PASS_REPORT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

#include "weir/core/tensor/api.h"

// What a session reports of the passes that compile its steps. docs/PASSES.md and `weir passes`
// list the passes.
//
//   SessionOptions options;
//   options.on_pass = [](const PassReport& report) {
//     std::cerr << report.name << ": " << report.ns << " ns, " << report.num_nodes << " nodes\n";
//   };
namespace WEIR_API weir {

struct PlanGraph;

// What a pass did to the nodes of a plan.
struct PlanChanges {
  int removed = 0;  // nodes that are gone
  int added = 0;    // new nodes
  int fused = 0;    // nodes that became a part of another node
  int moved = 0;    // uses that take another, equal value from now on
  // The number of nodes after the pass minus the number before it.
  int difference() const { return added - removed - fused; }
};

// A pass that has run, for SessionOptions::on_pass. The names and texts are valid for as long as
// the process runs; the report and its plan only during the call.
struct PassReport {
  absl::string_view name;  // as SessionOptions::disable takes it: "fuse_softmax"
  // "prepare": once for each set of feeds, fetches and targets; "optimize", "fuse" and "lower":
  // once for each set of feed shapes.
  absl::string_view phase;
  absl::string_view doc;  // one sentence: what the pass does
  int64_t ns = 0;         // how long it ran, in nanoseconds
  PlanChanges changes;
  int num_nodes = 0;      // of the plan after it
  const PlanGraph& plan;  // the plan after it, whose type is internal (session/plan/plan_graph.h)
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PASS_REPORT_H_
