#ifndef WEIR_TOOLS_RUN_RUN_H_
#define WEIR_TOOLS_RUN_RUN_H_

#include <cstdint>
#include <string>

#include "weir/tools/run/request.h"

namespace weir::tools {

struct RunCommandOptions {
  RequestOptions request;
  std::string trace;     // the file that it is written to; empty: none
  int64_t repeat = 1;    // times
  double timeout_s = 0;  // 0: none
};

// Runs the step and prints or writes its results; then saves the variables, if it is asked to.
// Returns the errors of PrepareRequest and of the step.
absl::Status RunGraph(const RunCommandOptions& options, Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_RUN_H_
