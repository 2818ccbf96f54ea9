#ifndef WEIR_TOOLS_SERVE_ACCESS_H_
#define WEIR_TOOLS_SERVE_ACCESS_H_

#include <memory>

#include "weir/core/io/file.h"
#include "weir/tools/lib/cli.h"
#include "weir/tools/serve/options.h"

// Who may reach a server, and what of it.
namespace weir::tools {

// Checks the options, and sets `options->server`, but for what is served.
absl::Status CompleteServerOptions(ServeOptions* options);

// Returns the file system of a server that runs clients' graphs; null if it runs none: models are
// the operator's, and open what they need. INVALID_ARGUMENT for models that clients' graphs could
// not read.
absl::StatusOr<std::unique_ptr<FileSystem>> RestrictedFiles(const ServeOptions& options);

// Prints a warning if strangers can reach the server.
void WarnIfExposed(const ServeOptions& options, Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_SERVE_ACCESS_H_
