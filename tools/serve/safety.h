#ifndef WEIR_TOOLS_SERVE_SAFETY_H_
#define WEIR_TOOLS_SERVE_SAFETY_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/rpc/lib/clients.h"
#include "weir/rpc/server.h"
#include "weir/tools/lib/command.h"

// The options of `weir serve` that say whom it serves, and what clients may do.
namespace weir::tools {

// The values of the options.
struct SafetyOptions {
  bool untrusted = false;
  // Zero: with --untrusted, the limits that the help texts name; otherwise none.
  int64_t max_graph_nodes = 0, max_graph_mb = 0;
  int max_call_depth = 0;
  std::string clients_file;  // empty: clients are not distinguished
  bool isolate_sessions = false;
  int64_t session_memory_mb = 0, step_memory_mb = 0, session_cpu_seconds = 0;  // zero: no limit
};

// Adds the options to a command.
void AddSafetyOptions(Command& serve, SafetyOptions* options);

// Sets what the options say. `allowed` are the directories that clients may access. Returns
// INVALID_ARGUMENT for options that exclude each other, and for a mistake in the file of clients.
absl::Status ApplySafety(const SafetyOptions& options, const std::vector<std::string>& allowed,
                         rpc::ServerOptions* server);

// Reads the file of clients again. Prints what happened.
void ReloadClients(const SafetyOptions& options, rpc::Clients* clients, Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_SERVE_SAFETY_H_
