#ifndef WEIR_TOOLS_RUN_REQUEST_H_
#define WEIR_TOOLS_RUN_REQUEST_H_

#include <ostream>
#include <string>
#include <vector>

#include "weir/tools/graph/model.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/run/feeds.h"
#include "weir/tools/run/pass_recorder.h"
#include "weir/tools/run/results.h"

// Options shared by the commands that run a graph: the model, its state, and the step to run.
namespace weir::tools {

struct RequestOptions {
  std::string file, signature;
  RestoreFlags restore;
  std::string save;  // a checkpoint to write at the end; with it, there need not be a step
  std::vector<std::string> disable;                         // SessionOptions::disable
  std::vector<std::string> feeds, fetches, targets, inits;  // as on the command line
  bool calls_signature = false;     // with all inputs; `signature` may be empty: ChooseSignature
  bool initializes_tables = false;  // runs the initializers that the model lists
  bool round = false;               // fed numbers that the tensor's type cannot represent
  std::string pixels;               // PixelRange of fed images, "BLACK,WHITE"
  std::string out;                  // a file for the fetches that name none
  int64_t batch = 0;                // rows that are fed to a step; 0: all
  ModelOptions model;
  std::string dump_plan;        // a folder for the plan after each pass; empty: none
  bool records_passes = false;  // fills PreparedRequest::passes
};

// Add the options --feed, --round and --pixels, and --out and --batch. `word` is the form of the
// value of --feed.
void AddFeedOptions(Command& command, RequestOptions* options, const char* word);
void AddBatchOptions(Command& command, RequestOptions* options);
// Adds the options: GRAPH, --checkpoint, --feed, --round, --pixels, --fetch, --target, --init,
// --signature, --tags, --strict, --device, --threads, --disable, --dump-plan. `fetch_word` is the
// form of the value of --fetch, and `fetch_help` its help text. `options` must live until the
// command has run.
void AddRequestOptions(Command& command, RequestOptions* options, const char* fetch_word,
                       const char* fetch_help, bool needs_graph = true);

// A step to run, with its names resolved.
struct Request {
  Outputs feeds, fetches;
  Tensors values;                     // of the feeds; empty if they are fed in batches
  std::vector<FeedSource> sources;    // of the feeds
  std::vector<ResultTarget> results;  // of the fetches
  std::vector<Operation> targets;

  bool empty() const { return fetches.empty() && targets.empty(); }
};

// A model with its state, and a prepared step of it.
struct PreparedRequest {
  Model model;
  Request request;
  Step step;
  // The passes that compile the step, when it runs; null unless they are asked for.
  std::shared_ptr<PassRecorder> passes;
};

// Loads the model, runs the nodes of --init, restores the checkpoint and prepares the step, if
// there is one. NOT_FOUND for missing files and names, INVALID_ARGUMENT for values that cannot be
// parsed and if there is nothing to run; also returns the errors of the steps that it runs.
// Notes of ReadFeeds and RestoreModel go to `err`.
absl::StatusOr<PreparedRequest> PrepareRequest(const RequestOptions& options, std::ostream& err);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_REQUEST_H_
