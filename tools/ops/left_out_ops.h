#ifndef WEIR_TOOLS_OPS_LEFT_OUT_OPS_H_
#define WEIR_TOOLS_OPS_LEFT_OUT_OPS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::tools {

// Returns the ops that TensorFlow 2.21 runs on a CPU, sorted: tensorflow_ops.txt.
std::vector<std::string> TensorFlowOps();
// Returns those that Weir leaves out, each with the reason: left_out_ops.txt.
std::map<std::string, std::string> LeftOutOps();

// The two files, compiled into the program when Weir is built.
absl::string_view TensorFlowOpsText();
absl::string_view LeftOutOpsText();

}  // namespace weir::tools

#endif  // WEIR_TOOLS_OPS_LEFT_OUT_OPS_H_
