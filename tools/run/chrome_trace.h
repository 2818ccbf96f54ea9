#ifndef WEIR_TOOLS_RUN_CHROME_TRACE_H_
#define WEIR_TOOLS_RUN_CHROME_TRACE_H_

#include <string>
#include <vector>

#include "weir/session/session.h"

namespace weir::tools {

// Returns a traced run as trace-event JSON, for chrome://tracing and ui.perfetto.dev: one process
// per device, one row per thread, one box per node, and arrows along the data edges of `graph`.
// Times are relative to the first start.
std::string ChromeTrace(const std::vector<NodeTrace>& trace, const Graph& graph);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_CHROME_TRACE_H_
