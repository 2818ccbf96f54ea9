#ifndef WEIR_OPS_LIB_EXTERNAL_ACCESS_H_
#define WEIR_OPS_LIB_EXTERNAL_ACCESS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

// Which ops reach beyond the memory of their process. A server that does not trust its clients
// refuses graphs with these ops.
namespace weir {

// What an op accesses. No op accesses the network, or runs code that is not in the graph.
enum class ExternalAccess : uint8_t {
  kNone,
  kFiles,  // Reads, writes or lists files; or creates an object that does: ReadFile,
           // TFRecordReader.
  kLog,    // Writes to the standard output or the standard error of the process: Print.
};

// Returns what the built-in op of this name accesses; kNone if there is no such op.
ExternalAccess ExternalAccessOf(absl::string_view op);

}  // namespace weir

#endif  // WEIR_OPS_LIB_EXTERNAL_ACCESS_H_
