#ifndef WEIR_TOOLS_GRAPH_MODEL_H_
#define WEIR_TOOLS_GRAPH_MODEL_H_

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "weir/session/model/saved_model.h"
#include "weir/session/session.h"
#include "weir/tools/graph/graph_file.h"

namespace weir::tools {

// A graph from a file in a new session, and the metadata of the file.
struct Model {
  std::shared_ptr<const proto::MetaGraphDef> file;  // for MetaGraphDef files only
  std::unique_ptr<Graph> graph;
  MetaGraph meta;
  std::vector<SavedFunction> functions;  // of a SavedModel of TensorFlow 2
  std::vector<std::string> trainable;    // the same: the nodes of the variables to train
  std::unique_ptr<Session> session;      // for a SavedModel: restored and initialized
};

struct ModelOptions {
  std::vector<std::string> tags;  // of the meta graph, which they select in a SavedModel
  bool strict = false;            // ops and attributes that Weir does not know are errors
  std::string device;             // for nodes without a requested device; not for a SavedModel
  SessionOptions session;
};

absl::StatusOr<Model> LoadModel(GraphFileKind kind, const std::string& path,
                                const ModelOptions& options = {});

// Adds the option --strict.
void AddStrictOption(Command& command, bool* strict);

// How variables are restored, as the command line says it.
struct RestoreFlags {
  std::string checkpoint;  // or a folder, whose newest one is read; empty: nothing is restored
  std::string mode;        // strict, needed or available
  bool ema = false;
  std::string ema_suffix = "ExponentialMovingAverage";
  std::vector<std::string> renames;  // RenameRules
};
// Adds the options --checkpoint, --restore, --ema, --ema-suffix and --rename. `mode` is the default
// of --restore.
void AddRestoreOptions(Command& command, RestoreFlags* flags, const char* mode);
// INVALID_ARGUMENT if writing to `out` would change what the model is read from: the file, or the
// folder of a SavedModel.
absl::Status CheckOutsideInput(const std::string& out, const std::string& file, GraphFileKind kind);

// NOT_FOUND if the graph has no such node.
absl::StatusOr<Operation> FindOperation(const Graph& graph, const std::string& name);

// Restores the variables from a checkpoint. Uses the model's saver, or (for a GraphDef) the saver
// whose nodes are in the scope "save", or otherwise restores variables of the graph by name.
// `needed` is what is going to run. With --restore available, lines on `err` name what was not
// restored. INVALID_ARGUMENT for a wrong mode or pattern.
absl::Status RestoreModel(Model& model, const RestoreFlags& flags, std::vector<Operation> needed,
                          std::ostream& err);

// Saves the variables to a checkpoint, with the same saver.
absl::Status SaveModel(Model& model, const std::string& prefix);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_MODEL_H_
