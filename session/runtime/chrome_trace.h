#ifndef WEIR_SESSION_RUNTIME_CHROME_TRACE_H_
#define WEIR_SESSION_RUNTIME_CHROME_TRACE_H_

#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/session/plan/session_options.h"

namespace weir {

// Returns a traced run as trace-event JSON, for chrome://tracing and ui.perfetto.dev: one process
// per device, one row per thread, one box per node, and arrows along the data edges of `graph`.
// Times are relative to the first start.
std::string ChromeTrace(const std::vector<NodeTrace>& trace, const Graph& graph);

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_CHROME_TRACE_H_
