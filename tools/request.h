#ifndef WEIR_TOOLS_REQUEST_H_
#define WEIR_TOOLS_REQUEST_H_

#include <string>
#include <vector>

#include "weir/tools/command.h"
#include "weir/tools/model.h"

// What commands that run a graph have in common: which model, with what state, and which step of
// it.
namespace weir::tools {

struct RequestOptions {
  std::string file, checkpoint, signature;
  std::string save;  // a checkpoint to write afterward, for which there need be nothing to run
  std::vector<std::string> feeds, fetches, targets, inits;  // as on the command line
  ModelOptions model;
};

// Declares them: GRAPH, --checkpoint, --feed, --fetch, --target, --init, --signature, --tags,
// --device, --threads. The value of --fetch is of the form `fetch_word`, and `fetch_help` says what
// happens to it. `options` lives until the command has run.
void AddRequestOptions(Command& command, RequestOptions* options, const char* fetch_word,
                       const char* fetch_help);

// What to run, with names looked up.
struct Request {
  Outputs feeds, fetches;
  Tensors values;  // of the feeds
  std::vector<std::string> labels,
      files;  // of the fetches; a file is empty if none is named
  std::vector<Operation> targets;

  bool empty() const { return fetches.empty() && targets.empty(); }
};

// A model with its state, and a step of it that is ready to run.
struct PreparedRequest {
  Model model;
  Request request;
  Step step;
};

// Loads the model, runs the nodes of --init, restores the checkpoint and binds the step, if there
// is one. NOT_FOUND for files and names that are not there, INVALID_ARGUMENT for values that cannot
// be read and if there is nothing to run, and the errors of the steps that it runs.
absl::StatusOr<PreparedRequest> PrepareRequest(const RequestOptions& options);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_REQUEST_H_
