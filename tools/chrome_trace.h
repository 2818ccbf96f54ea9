#ifndef WEIR_TOOLS_CHROME_TRACE_H_
#define WEIR_TOOLS_CHROME_TRACE_H_

#include <string>
#include <vector>

#include "weir/session/session.h"

namespace weir::tools {

// A traced run as trace-event JSON, for chrome://tracing and ui.perfetto.dev: a process for each
// device, a row for each thread, a box for each node, and arrows along the data edges of `graph`.
// Times are relative to the first start.
std::string ChromeTrace(const std::vector<NodeTrace>& trace, const Graph& graph);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CHROME_TRACE_H_
